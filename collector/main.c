/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace-collector - stores the streams of many daemons in one store, and answers queries
 *
 *      headrace-collector [--config FILE] [--KEY VALUE]...
 *      headrace-collector close-job JOB [--node NODE] | remove-job JOB [--config FILE] [--store FOLDER]
 *      headrace-collector schema clickhouse [OPTIONS]
 *      headrace-collector query-worker FD          started by the collector for one query
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/schema.h"
#include "clickhouse/target.h"
#include "collector/admin.h"
#include "collector/check.h"
#include "collector/config.h"
#include "collector/queries.h"
#include "collector/server.h"
#include "common/text.h"

#define EXIT_USAGE 2
#define DAY_NS	   (86400ull * 1000000000)

struct options {
	struct hr_collector_config config;
	bool check;
	bool remove;
	const char *job; /* the job of close-job or remove-job; NULL: run the collector */
	const char *node;
};

static void main_report(const char *text)
{
	hr_text_print(stderr, "headrace-collector: %s\n", text);
}

static int run_command(struct options *o, const struct hr_config_source *from)
{
	if (o->remove)
		return hr_admin_remove_job(o->config.store, o->job);
	if (o->job)
		return hr_admin_close_job(o->config.store, o->job, o->node);
	return o->check ? EXIT_SUCCESS : hr_server_run(from, &o->config);
}

static int main_run(int argc, char **argv, struct options o)
{
	const struct hr_config_source from = {
	    .keys = hr_collector_keys,
	    .n = hr_collector_n_keys,
	    .file = HR_COLLECTOR_CONFIG_FILE,
	    .argc = argc,
	    .argv = argv,
	    .help = "headrace-collector --help",
	    .report = main_report,
	};
	bool good = hr_config_load(&from, &o.config) == 0;
	int status;

	o.check = hr_config_asks_check(&from);
	good &= hr_collector_config_check(&o.config, main_report);
	if (o.check && !hr_collector_check(&o.config, main_report))
		status = good ? EXIT_FAILURE : EXIT_USAGE;
	else if (!good)
		status = EXIT_USAGE;
	else
		status = run_command(&o, &from);
	hr_config_done(hr_collector_keys, hr_collector_n_keys, &o.config);
	return status;
}

/* Removes `--node NODE` from the arguments. Returns NODE or, if it is absent, NULL. */
static const char *take_node(int *argc, char **argv)
{
	for (int i = 0; i + 1 < *argc; i++) {
		const char *node = argv[i + 1];

		if (strcmp(argv[i], "--node") != 0)
			continue;
		*argc -= 2;
		memmove(argv + i, argv + i + 2, (size_t)(*argc - i) * sizeof(*argv));
		return node;
	}
	return NULL;
}

static int administer(int argc, char **argv)
{
	struct options o = {.job = argv[1], .remove = argv[0][0] == 'r'};

	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "headrace-collector: %s requires a job id\n", argv[0]);
		return EXIT_USAGE;
	}
	argc -= 2;
	argv += 2;
	if (!o.remove)
		o.node = take_node(&argc, argv);
	return main_run(argc, argv, o);
}

/* ---- the schema of ClickHouse ---------------------------------------------------------------- */

static int schema_refuse(const char *text)
{
	hr_text_print(stderr, "headrace-collector schema: %s (see headrace-collector --help)\n",
		      text);
	return EXIT_USAGE;
}

/* Prints the SQL of `schema clickhouse`. The arguments follow the word `schema`. */
static int print_schema(int argc, char **argv)
{
	static const struct option options[] = {{"database", required_argument, NULL, 'd'},
						{"cluster", required_argument, NULL, 'c'},
						{"keep", required_argument, NULL, 'k'},
						{"replicated", no_argument, NULL, 'r'},
						{"old", no_argument, NULL, 'o'},
						{0}};
	struct hr_ch_schema schema = {.database = "headrace"};
	uint64_t keep_ns = 0;
	int option;

	if (argc < 1 || strcmp(argv[0], "clickhouse") != 0)
		return schema_refuse("the only schema is `schema clickhouse`");
	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			schema.database = optarg;
		else if (option == 'c')
			schema.cluster = optarg;
		else if (option == 'r')
			schema.replicated = true;
		else if (option == 'o')
			schema.old = true;
		else if (option != 'k')
			return EXIT_USAGE;
		else if (hr_text_parse_duration(optarg, &keep_ns) < 0 || keep_ns < DAY_NS)
			return schema_refuse("--keep: must be at least one day, for example 365d");
	}
	if (optind < argc)
		return schema_refuse("too many words");
	if (!hr_ch_is_name(schema.database) || (schema.cluster && !hr_ch_is_name(schema.cluster)))
		return schema_refuse("names must have letters, digits and _");
	if (schema.old && keep_ns > 0)
		return schema_refuse(
		    "--keep: ClickHouse before 20.1 deletes nothing by itself; use "
		    "ALTER TABLE ... DROP PARTITION");
	schema.keep_days = keep_ns / DAY_NS;
	hr_ch_schema_print(&schema, stdout);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- help and man page ----------------------------------------------------------------------- */

static void print_help(FILE *to)
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

static void print_man(FILE *to)
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
	hr_config_man(hr_collector_keys, hr_collector_n_keys, true, to);
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

/* ---- commands -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	uint64_t fd;

	if (argc == 3 && strcmp(argv[1], "query-worker") == 0 &&
	    hr_text_parse_uint(argv[2], 1u << 20, &fd) == 0)
		return hr_query_worker((int)fd);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("headrace-collector " HEADRACE_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_help(stdout);
		return EXIT_SUCCESS;
	}
	if (argc == 3 && strcmp(argv[1], "--generate") == 0 && strcmp(argv[2], "man") == 0) {
		print_man(stdout);
		return EXIT_SUCCESS;
	}
	if (argc >= 2 && strcmp(argv[1], "schema") == 0)
		return print_schema(argc - 2, argv + 2);
	if (argc >= 2 && (strcmp(argv[1], "close-job") == 0 || strcmp(argv[1], "remove-job") == 0))
		return administer(argc - 1, argv + 1);
	return main_run(argc - 1, argv + 1, (struct options){0});
}
