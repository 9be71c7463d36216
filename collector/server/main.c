/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace-collector - takes the streams of many daemons into one store, and answers queries about it
 *
 *      headrace-collector [--config FILE] [--KEY VALUE]...
 *      headrace-collector close-job JOB [--node NODE] | remove-job JOB [--config FILE] [--store FOLDER]
 *      headrace-collector query-worker FD          its own child, which runs one query
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/server/admin.h"
#include "collector/server/check.h"
#include "collector/server/config.h"
#include "collector/server/manual.h"
#include "collector/server/queries.h"
#include "collector/server/server.h"
#include "common/text.h"

#define EXIT_USAGE 2

struct options {
	struct hr_collector_config config;
	const char *file; /* NULL: the usual one, if it is there */
	bool check;
	bool remove;
	const char *job; /* of close-job, remove-job; NULL: to serve */
	const char *node;
};

static void say(const char *text)
{
	fprintf(stderr, "headrace-collector: %s\n", text);
}

/* Each line of it. Frees it. */
static int complain(char *error, int r)
{
	char *rest = error, *line;

	if (!error)
		say(strerrordesc_np(-r));
	while ((line = strsep(&rest, "\n")) != NULL)
		say(line);
	free(error);
	return r;
}

static int read_file(struct options *o)
{
	const char *path = o->file ? o->file : HR_COLLECTOR_CONFIG_FILE;
	char *error = NULL;
	int r;

	if (!o->file && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = hr_config_file(hr_collector_keys, hr_collector_n_keys, &o->config, path,
			   o->check ? NULL : say, &error);
	return r < 0 ? complain(error, r) : 0;
}

/* --config and --check-config, wherever they stand: the file is read before the flags, which win over it. */
static int find_file(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--config=", 9) == 0)
			o->file = argv[i] + 9;
		else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
			o->file = argv[++i];
		else if (strcmp(argv[i], "--check-config") == 0)
			o->check = true;
	}
	return read_file(o);
}

static int read_flags(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc;) {
		char *error = NULL;
		int r;

		if (strcmp(argv[i], "--check-config") == 0 ||
		    strncmp(argv[i], "--config=", 9) == 0) {
			i++;
			continue;
		}
		if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) {
			i += 2;
			continue;
		}
		if (strcmp(argv[i], "--node") == 0 && i + 1 < argc && o->job && !o->remove) {
			o->node = argv[i + 1];
			i += 2;
			continue;
		}
		r = hr_config_flag(hr_collector_keys, hr_collector_n_keys, &o->config, argc, argv,
				   &i, &error);
		if (r == -ENOENT) {
			fprintf(stderr, "headrace-collector: %s is no option; --help lists them\n",
				argv[i]);
			return r;
		}
		if (r < 0)
			return complain(error, r);
	}
	return 0;
}

static int do_what_was_asked(const struct options *o)
{
	if (o->remove)
		return hr_admin_remove_job(o->config.store, o->job);
	if (o->job)
		return hr_admin_close_job(o->config.store, o->job, o->node);
	return o->check ? EXIT_SUCCESS : hr_server_run(&o->config);
}

/* All mistakes are said, not only the first. */
static int run(int argc, char **argv, struct options o)
{
	int r = hr_config_init(hr_collector_keys, hr_collector_n_keys, &o.config), status;
	bool good;

	if (r < 0)
		return complain(NULL, r), EXIT_FAILURE;
	good = find_file(argc, argv, &o) == 0;
	good &= read_flags(argc, argv, &o) == 0;
	good &= hr_collector_config_check(&o.config, say);
	if (o.check && !hr_collector_check(&o.config, say))
		status = good ? EXIT_FAILURE : EXIT_USAGE;
	else if (!good)
		status = EXIT_USAGE;
	else
		status = do_what_was_asked(&o);
	hr_config_done(hr_collector_keys, hr_collector_n_keys, &o.config);
	return status;
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
	if (argc >= 2 &&
	    (strcmp(argv[1], "close-job") == 0 || strcmp(argv[1], "remove-job") == 0)) {
		if (argc == 2 || argv[2][0] == '-') {
			fprintf(stderr, "headrace-collector: %s needs the job's name\n", argv[1]);
			return EXIT_USAGE;
		}
		return run(argc - 2, argv + 2,
			   (struct options){.job = argv[2], .remove = argv[1][0] == 'r'});
	}
	return run(argc, argv, (struct options){0});
}
