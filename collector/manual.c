/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/manual.h"

#include "collector/config.h"

void hr_collector_help(FILE *to)
{
	fputs(
	    "headrace-collector [--config FILE] [--KEY VALUE]...\n"
	    "headrace-collector close-job JOB [--node NODE] [--config FILE] [--store FOLDER]\n"
	    "headrace-collector remove-job JOB [--config FILE] [--store FOLDER]\n"
	    "\n"
	    "Takes the streams of many headraced into one store and answers `headrace query "
	    "tcp://...`.\n"
	    "The file has lines `key = value` with the same keys (" HR_COLLECTOR_CONFIG_FILE
	    ", if it is there); flags win over it.\n"
	    "\n"
	    "  close-job        expect nothing more of nodes that are gone; also while a collector "
	    "runs\n"
	    "  remove-job       remove a job's data, as retention does; also while a collector "
	    "runs\n"
	    "  --config FILE    read this file\n"
	    "  --check-config   say all that is wrong with file, flags and what they name, and "
	    "end\n"
	    "  --help, --version\n"
	    "\n",
	    to);
	hr_config_help(hr_collector_keys, hr_collector_n_keys, to);
	fputs("\nSIGTERM ends it when all that has come is on disk; SIGHUP reads configuration and "
	      "certificates "
	      "anew.\n",
	      to);
}

void hr_collector_man(FILE *to)
{
	fputs(
	    ".TH HEADRACE-COLLECTOR 8 \"\" \"headrace " HEADRACE_VERSION
	    "\" \"System Administration\"\n"
	    ".SH NAME\nheadrace-collector \\- take the streams of many headraced into one store, "
	    "and answer queries\n"
	    ".SH SYNOPSIS\n\\fBheadrace-collector\\fR [\\fB\\-\\-config\\fR \\fIFILE\\fR] "
	    "[\\fB\\-\\-\\fIKEY VALUE\\fR]...\n"
	    ".br\n\\fBheadrace-collector close-job\\fR \\fIJOB\\fR [\\fB\\-\\-node\\fR "
	    "\\fINODE\\fR] [\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fB\\-\\-store\\fR "
	    "\\fIFOLDER\\fR]\n"
	    ".br\n\\fBheadrace-collector remove-job\\fR \\fIJOB\\fR [\\fB\\-\\-config\\fR "
	    "\\fIFILE\\fR] [\\fB\\-\\-store\\fR \\fIFOLDER\\fR]\n"
	    ".SH DESCRIPTION\nAppends what daemons send to the store, each frame once, syncs, and "
	    "acknowledges. Each query runs in a child process with limits. One collector has a "
	    "store alone; runs and queries on the folder are told its address.\n"
	    ".PP\nThe configuration file has lines \\fBkey = value\\fR; \\fB#\\fR begins a "
	    "comment. "
	    "Each key is also a flag, with hyphens for underscores, which wins over the file.\n"
	    ".SH COMMANDS\nBoth work beside a collector that runs and without one, for whoever may "
	    "write into the store; what a daemon has open stays.\n"
	    ".TP\n\\fBclose-job\\fR\nexpect nothing more of the job's streams (of one node) that "
	    "have not ended: answers say when they were closed, not that they are silent. A node "
	    "that "
	    "comes back all the same goes on with its stream.\n"
	    ".TP\n\\fBremove-job\\fR\nremove the job's data, as retention does.\n"
	    ".SH OPTIONS\n"
	    ".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\nread this file instead of "
	    "" HR_COLLECTOR_CONFIG_FILE ".\n"
	    ".TP\n\\fB\\-\\-check\\-config\\fR\nsay all that is wrong with file and flags, and "
	    "with the files, folders, addresses, group and munged that they name, and end. For the "
	    "user who asks: be the collector's.\n"
	    ".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR\n",
	    to);
	hr_config_man(hr_collector_keys, hr_collector_n_keys, to);
	fputs(
	    ".SH SIGNALS\n"
	    ".TP\n\\fBSIGTERM\\fR, \\fBSIGINT\\fR\ncommit and acknowledge what has come, seal "
	    "segments, end; 10 s at most.\n"
	    ".TP\n\\fBSIGHUP\\fR\nread the configuration and certificates anew: certificates and "
	    "operators for new connections, retention at once.\n"
	    ".SH EXIT STATUS\n0 after SIGTERM or SIGINT; 2 for a mistake in file or flags; 125 "
	    "when the store cannot be had (another collector holds it); 1 for all else.\n"
	    ".SH FILES\n" HR_COLLECTOR_CONFIG_FILE ", /var/lib/headrace\n"
	    ".SH SEE ALSO\nheadrace(1); collector.md and storage.md in share/doc/headrace/docs.\n",
	    to);
}
