/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query_request.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/terminal.h"
#include "store/store.h"
#include "common/text.h"

enum {
	OPT_EXPLAIN = 256,
	OPT_LIST,
	OPT_MEMORY,
	OPT_THREADS,
	OPT_FORMAT,
	OPT_JOB,
	OPT_TIME,
	OPT_PROGRESS,
	OPT_ALL_COLUMNS,
	OPT_RAW
};

const struct hr_option hr_query_option_table[] = {
    {"job", OPT_JOB, "JOB", "query only this job", HR_VALUES_OTHER},
    {"format", OPT_FORMAT, "FORMAT", "table (default), list, json, csv or parquet",
     "table list json csv parquet"},
    {"all-columns", OPT_ALL_COLUMNS, NULL,
     "show all columns of a named query (default: the most important)", NULL},
    {"raw", OPT_RAW, NULL, "show numbers of a named query without units, and fold no rows", NULL},
    {"output", 'o', "FILE", "write the answer to FILE; required for parquet", NULL},
    {"list", OPT_LIST, NULL, "list the named queries (to list tables, query 'SHOW TABLES')", NULL},
    {"explain", OPT_EXPLAIN, "NAME",
     "print a named query: what it answers, its arguments and its SQL", HR_VALUES_QUERIES},
    {"threads", OPT_THREADS, "N", "use at most N threads (default: all that are available)",
     HR_VALUES_OTHER},
    {"memory", OPT_MEMORY, "SIZE", "use at most SIZE of memory (default: half of the machine's)",
     HR_VALUES_OTHER},
    {"time", OPT_TIME, "TIME", "end the query after TIME, for example 5m (default: no limit)",
     HR_VALUES_OTHER},
    {"progress", OPT_PROGRESS, NULL, "print progress even if standard error is not a terminal",
     NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

void hr_query_topics(hr_topic *topic)
{
	for (const struct hr_named *q = hr_named_list; q->name != NULL; q++) {
		const char *about;
		size_t n;

		hr_named_about(q, &about, &n);
		topic(q->name, about, n);
	}
}

static void list_query(const char *name, const char *about, size_t n)
{
	printf("%-10s  %.*s\n", name, (int)n, about);
}

static void report_line(void *self, const char *text)
{
	(void)self;
	hr_report("%s", text);
}

static const struct hr_sink messages = {report_line, NULL};

static int query_request_explain(const char *name)
{
	const struct hr_named *q = hr_named_find(name);

	if (q == NULL) {
		hr_question_no_name(name, "query", &messages);
		return HR_EXIT_USAGE;
	}
	fputs(q->sql, stdout);
	return EXIT_SUCCESS;
}

static bool parse_format(const char *text, enum hr_ask_format *ret)
{
	if (hr_ask_format(text, ret))
		return true;
	hr_report("--format: must be table, list, json, csv or parquet, not '%s'", text);
	return false;
}

/*
 * True: a store. The first operand is one. A later operand is one if it is an address or an
 * existing path, and not the NAME of a query.
 */
static bool is_store(const char *text, size_t index)
{
	struct stat st;

	if (index == 0)
		return true;
	if (hr_named_find(text) != NULL)
		return false;
	if (hr_address_is(text))
		return true;
	return stat(text, &st) == 0;
}

static void take_operand(struct hr_query_request *r, char *text)
{
	if (r->n_words == 0 && is_store(text, r->n_stores))
		r->stores[r->n_stores++] = text;
	else
		r->words[r->n_words++] = text;
}

/* Reads one option. 0: continue; 1: *ret_status is the result. */
static int query_request_take_option(struct hr_query_request *r, int id, const char *value,
				     int *ret_status)
{
	char *end;

	*ret_status = HR_EXIT_USAGE;
	switch (id) {
	case OPT_JOB:
		r->job = value;
		return 0;
	case OPT_FORMAT:
		return parse_format(value, &r->format) ? 0 : 1;
	case 'o':
		r->output = value;
		return 0;
	case OPT_THREADS:
		r->threads = (unsigned)strtoul(value, &end, 10);
		if (*end == '\0' && r->threads > 0 && r->threads <= 4096)
			return 0;
		hr_report("--threads: must be a number from 1 to 4096, not '%s'", value);
		return 1;
	case OPT_MEMORY:
		if (hr_text_parse_size(value, &r->memory_bytes) == 0)
			return 0;
		hr_report("--memory: must be a size, for example 4GiB, not '%s'", value);
		return 1;
	case OPT_TIME:
		if (hr_text_parse_duration(value, &r->limit_ns) == 0 && r->limit_ns > 0)
			return 0;
		hr_report("--time: must be a time, for example 30s or 5m, not '%s'", value);
		return 1;
	case OPT_PROGRESS:
		r->progress = true;
		return 0;
	case OPT_ALL_COLUMNS:
		r->style.all_columns = true;
		return 0;
	case OPT_RAW:
		r->style.raw = true;
		return 0;
	case OPT_LIST:
		hr_query_topics(list_query);
		*ret_status = EXIT_SUCCESS;
		return 1;
	case OPT_EXPLAIN:
		*ret_status = query_request_explain(value);
		return 1;
	case 'h':
		*ret_status = hr_command_help("query");
		return 1;
	default:
		return 1;
	}
}

/* True: SQL that begins with a comment, like the output of --explain. It is not an option. */
static bool is_comment(const char *word)
{
	return word != NULL && strncmp(word, "-- ", 3) == 0;
}

/* Accepts options between operands. 0: continue; 1: *ret_status is the result. */
static int query_request_parse(struct hr_query_request *r, int argc, char **argv, int *ret_status)
{
	struct hr_options o = {
	    .table = hr_query_option_table, .argv = argv, .argc = argc, .next = 1};

	for (;;) {
		int id = is_comment(argv[o.next]) ? HR_OPTION_END : hr_option_next(&o);

		if (id == HR_OPTION_END) {
			if (o.next >= argc)
				return 0;
			take_operand(r, argv[o.next++]);
		} else if (query_request_take_option(r, id, o.value, ret_status) != 0) {
			return 1;
		}
	}
}

/* Skips operands that are no stores: ./headrace-* may also match summaries or source folders. */
static void skip_others(struct hr_query_request *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_stores; i++) {
		const char *store = r->stores[i];

		if (!hr_store_is(store))
			continue;
		r->stores[i] = r->stores[kept];
		r->stores[kept++] = store;
	}
	if (kept == 0)
		return; /* opening the first operand reports what it is */
	for (size_t i = kept; i < r->n_stores; i++)
		hr_report("note: skipping %s: it is not a headrace store", r->stores[i]);
	r->n_stores = kept;
}

/* True: the stores are folders, or one collector. Otherwise reports the mistake. */
static bool check_collector(struct hr_query_request *r)
{
	char *error = NULL;
	size_t n;

	for (size_t i = 0; i < r->n_stores && !r->remote; i++)
		r->remote = hr_address_is(r->stores[i]);
	if (!r->remote) {
		skip_others(r);
		return true;
	}
	if (r->n_stores > 1) {
		hr_report(
		    "cannot query a collector together with other stores: query each separately");
		return false;
	}
	if (hr_address_parse_targets(r->stores[0], &r->collector, 1, &n, &error) == 0)
		return true;
	hr_report("%s", error != NULL ? error : "out of memory");
	free(error);
	return false;
}

/* Resolves the words. The collector may have a NAME that is unknown here. */
static int query_request_resolve(struct hr_query_request *r)
{
	if (r->remote && hr_question_is_name(r->words[0]) && hr_named_find(r->words[0]) == NULL)
		return 0;
	return hr_question_init(&r->question, r->words, r->n_words, &messages) ? 0 : HR_EXIT_USAGE;
}

static int query_request_check(struct hr_query_request *r)
{
	if (r->n_stores == 0) {
		hr_report("no store given" HR_HINT "`headrace query STORE summary`, "
			  "`headrace query --help`");
		return HR_EXIT_USAGE;
	}
	if (!check_collector(r))
		return HR_EXIT_USAGE;
	if (r->n_words == 0) {
		hr_report("no query given" HR_HINT "`headrace query %s summary`, or SQL in "
			  "quotes; `headrace query --list` lists the named queries",
			  r->stores[0]);
		return HR_EXIT_USAGE;
	}
	if (r->format == HR_FORMAT_PARQUET && r->output == NULL) {
		hr_report("--format parquet needs an output file: -o FILE");
		return HR_EXIT_USAGE;
	}
	return 0;
}

/* Finds the terminal's width and colours, and the working folder. */
static void find_style(struct hr_query_request *r)
{
	char *folder = getcwd(NULL, 0);
	size_t n = folder != NULL ? strlen(folder) : 0;

	if (r->output == NULL) {
		r->style.width = hr_terminal_width(STDOUT_FILENO);
		r->style.colour = hr_terminal_colour(STDOUT_FILENO);
	}
	r->folder = calloc(4 * n + 1, 1);
	if (r->folder != NULL && n > 1) /* not "/" */
		hr_text_escape(r->folder, 4 * n + 1, folder, n);
	r->style.folder = r->folder != NULL ? r->folder : "";
	free(folder);
}

int hr_request_parse(int argc, char **argv, struct hr_query_request *ret, int *ret_status)
{
	*ret = (struct hr_query_request){0};
	*ret_status = EXIT_FAILURE;
	ret->stores = calloc((size_t)argc, sizeof(*ret->stores));
	ret->words = calloc((size_t)argc, sizeof(*ret->words));
	if (ret->stores == NULL || ret->words == NULL ||
	    query_request_parse(ret, argc, argv, ret_status) != 0)
		return 1;
	*ret_status = query_request_check(ret);
	if (*ret_status == 0)
		*ret_status = query_request_resolve(ret);
	find_style(ret);
	return *ret_status == 0 ? 0 : 1;
}

void hr_request_done(struct hr_query_request *r)
{
	hr_question_done(&r->question);
	free(r->folder);
	free(r->stores);
	free(r->words);
}
