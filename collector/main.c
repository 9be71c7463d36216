/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace-collector - stores the streams of many daemons in one store, and answers queries
 *
 *      headrace-collector [--config FILE] [--KEY VALUE]...
 *      headrace-collector close-job JOB [--node NODE] | remove-job JOB [--config FILE] [--store FOLDER]
 *      headrace-collector schema clickhouse [OPTIONS]
 *      headrace-collector query-worker FD          started by the collector for one query
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/admin.h"
#include "collector/check.h"
#include "collector/config.h"
#include "collector/manual.h"
#include "collector/queries.h"
#include "collector/schema.h"
#include "collector/server.h"
#include "common/text.h"

#define EXIT_USAGE 2

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
		hr_collector_help(stdout);
		return EXIT_SUCCESS;
	}
	if (argc == 3 && strcmp(argv[1], "--generate") == 0 && strcmp(argv[2], "man") == 0) {
		hr_collector_man(stdout);
		return EXIT_SUCCESS;
	}
	if (argc >= 2 && strcmp(argv[1], "schema") == 0)
		return hr_schema_command(argc - 2, argv + 2);
	if (argc >= 2 && (strcmp(argv[1], "close-job") == 0 || strcmp(argv[1], "remove-job") == 0))
		return administer(argc - 1, argv + 1);
	return main_run(argc - 1, argv + 1, (struct options){0});
}
