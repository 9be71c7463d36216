/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/manual.h"

#include "collector/config.h"

void hr_collector_help(FILE *to)
{
	fputs(
	    "headrace-collector [--config FILE] [--KEY VALUE]...\n"
	    "headrace-collector close-job JOB [--node NODE] [--config FILE] [--store FOLDER]\n"
	    "headrace-collector remove-job JOB [--config FILE] [--store FOLDER]\n"
	    "headrace-collector schema clickhouse [--database NAME] [--cluster NAME] "
	    "[--replicated]\n"
	    "                   [--keep TIME] [--old]\n"
	    "\n"
	    "Receives the streams of many nodes, keeps them in one store, and answers "
	    "`headrace query tcp://...`.\n"
	    "The configuration file (default: " HR_COLLECTOR_CONFIG_FILE
	    ", if it exists) has lines `key = value`.\n"
	    "Each key is also an option, which overrides the file.\n"
	    "\n"
	    "  close-job        mark as closed the streams of nodes that will not come back\n"
	    "  remove-job       remove the data of a job, as retention does\n"
	    "                   (both also work while a collector runs)\n"
	    "  schema           print the SQL that creates the tables for `sink` (clickhouse.md)\n"
	    "  --config FILE    read this configuration file\n"
	    "  --check-config   check file, options and the files and addresses that they name,\n"
	    "                   report mistakes, and end\n"
	    "  --help, --version\n"
	    "\n",
	    to);
	hr_config_help(hr_collector_keys, hr_collector_n_keys, to);
	fputs("\nSIGTERM ends the collector after all received data is on disk. SIGHUP makes it "
	      "read configuration and certificates again.\n",
	      to);
}

void hr_collector_man(FILE *to)
{
	fputs(
	    ".TH HEADRACE-COLLECTOR 8 \"\" \"headrace " HEADRACE_VERSION
	    "\" \"System Administration\"\n"
	    ".SH NAME\nheadrace-collector \\- receive the streams of many nodes, and answer "
	    "queries\n"
	    ".SH SYNOPSIS\n\\fBheadrace-collector\\fR [\\fB\\-\\-config\\fR \\fIFILE\\fR] "
	    "[\\fB\\-\\-\\fIKEY VALUE\\fR]...\n"
	    ".br\n\\fBheadrace-collector close-job\\fR \\fIJOB\\fR [\\fB\\-\\-node\\fR "
	    "\\fINODE\\fR] [\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fB\\-\\-store\\fR "
	    "\\fIFOLDER\\fR]\n"
	    ".br\n\\fBheadrace-collector remove-job\\fR \\fIJOB\\fR [\\fB\\-\\-config\\fR "
	    "\\fIFILE\\fR] [\\fB\\-\\-store\\fR \\fIFOLDER\\fR]\n"
	    ".SH DESCRIPTION\nheadrace-collector appends the frames that daemons send to the "
	    "store, each frame once, syncs the store and acknowledges them. Each query runs in a "
	    "child process with limits. Only one collector may use a store. \\fBheadrace run "
	    "\\-o\\fR with the folder of its store fails and prints the address of the collector.\n"
	    ".PP\nThe configuration file has lines \\fBkey = value\\fR; \\fB#\\fR begins a "
	    "comment. Each key is also an option, with hyphens instead of underscores. An option "
	    "overrides the file.\n"
	    ".SH COMMANDS\nBoth commands work with and without a running collector, for users who "
	    "may write to the store. They do not change streams that a daemon has open.\n"
	    ".TP\n\\fBclose-job\\fR\nmark as closed the streams of the job (on one node) that have "
	    "not ended. Answers then report when they were closed, not that they are silent. If a "
	    "node comes back, it continues its stream.\n"
	    ".TP\n\\fBremove-job\\fR\nremove the data of the job, as retention does.\n"
	    ".TP\n\\fBschema clickhouse\\fR\nprint the SQL that creates the tables and views for "
	    "\\fBsink\\fR; it can be run again at any time. \\fB\\-\\-database\\fR (default: "
	    "headrace); \\fB\\-\\-cluster\\fR: also tables over all shards of this cluster, in "
	    "which case the SQL must be run on each server; \\fB\\-\\-replicated\\fR: "
	    "ReplicatedMergeTree; \\fB\\-\\-keep\\fR 365d: delete older data; "
	    "\\fB\\-\\-old\\fR: tables for ClickHouse before 20.1, which stores data, but "
	    "cannot answer questions.\n"
	    ".SH OPTIONS\n"
	    ".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\nread this file instead "
	    "of " HR_COLLECTOR_CONFIG_FILE ".\n"
	    ".TP\n\\fB\\-\\-check\\-config\\fR\ncheck file and options, and the files, folders, "
	    "addresses, group and munged socket that they name; report all mistakes, and end. The "
	    "check applies to the user who runs it: run it as the user of the collector.\n"
	    ".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR\nprint help or the version.\n",
	    to);
	hr_config_man(hr_collector_keys, hr_collector_n_keys, to);
	fputs(
	    ".SH SIGNALS\n"
	    ".TP\n\\fBSIGTERM\\fR, \\fBSIGINT\\fR\ncommit and acknowledge received data, seal "
	    "segments, and end, within 10 s.\n"
	    ".TP\n\\fBSIGHUP\\fR\nread configuration and certificates again. Certificates and "
	    "operators apply to new connections, retention and alerts at once.\n"
	    ".SH EXIT STATUS\n0: ended by SIGTERM or SIGINT; 1: failed; 2: mistake in file or "
	    "options; 125: the store cannot be used, for example because another collector uses "
	    "it.\n"
	    ".SH FILES\n" HR_COLLECTOR_CONFIG_FILE ", /var/lib/headrace\n"
	    ".SH SEE ALSO\nheadrace(1); collector.md and storage.md in share/doc/headrace/docs.\n",
	    to);
}
