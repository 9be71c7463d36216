/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "common/text.h"

#define THREADS_MAX 4096u

enum {
	OPT_MEMORY = 256,
	OPT_THREADS,
	OPT_TIME,
};

#define TEXT(member) HR_OPTION_TEXT(struct hr_query_request, member)
#define FLAG(member) HR_OPTION_FLAG(struct hr_query_request, member)

const struct hr_option hr_query_option_table[] = {
    {"job", TEXT(job), "JOB", "query only this job", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text list json csv arrow parquet"),
    {"all-columns", FLAG(style.all_columns), NULL,
     "show all columns of a named query (default: the most important)", NULL},
    {"raw", FLAG(style.raw), NULL, "show all rows of a named query, and numbers without units",
     NULL},
    {"output", 'o', "FILE", "write the answer to FILE; required for parquet", NULL},
    {"list", FLAG(list), NULL, "list the named queries (to list tables, query 'SHOW TABLES')",
     NULL},
    {"explain", TEXT(explain), "NAME",
     "print a named query: what it answers, its arguments and its SQL", HR_VALUES_QUERIES},
    {"threads", OPT_THREADS, "N", "use at most N threads (default: all that are available)",
     HR_VALUES_OTHER},
    {"memory", OPT_MEMORY, "SIZE", "use at most SIZE of memory (default: half of the machine's)",
     HR_VALUES_OTHER},
    {"time", OPT_TIME, "TIME", "end the query after TIME, for example 5m (default: no limit)",
     HR_VALUES_OTHER},
    {"progress", FLAG(progress), NULL, "print progress even if standard error is not a terminal",
     NULL},
    HR_OPTIONS_END,
};

static void each_topic(const struct hr_named *list, hr_topic *topic)
{
	for (const struct hr_named *q = list; q->name != NULL; q++) {
		const char *about;
		size_t n;

		hr_named_about(q, &about, &n);
		topic(q->name, about, n);
	}
}

void hr_query_topics(hr_topic *topic)
{
	each_topic(hr_named_list, topic);
}

static void list_query(const char *name, const char *about, size_t n)
{
	printf("%-10s  %.*s\n", name, (int)n, about);
}

void hr_request_list(const struct hr_named *list, enum hr_ask_format format)
{
	struct hr_json j;

	if (format != HR_FORMAT_JSON) {
		each_topic(list, list_query);
		return;
	}
	hr_json_init(&j, stdout);
	hr_json_document(&j, "headrace-queries/1");
	for (size_t i = 0; hr_json_row(&j, "queries", i, i + (list[i].name != NULL)); i++) {
		const char *about;
		size_t n;

		hr_named_about(&list[i], &about, &n);
		hr_json_string(&j, "name", list[i].name);
		hr_json_path(&j, "about", about, n);
	}
	hr_json_end(&j);
}

static void report_line(void *self, const char *text)
{
	(void)self;
	hr_report("%s", text);
}

const struct hr_sink hr_request_messages = {report_line, NULL};

static int query_request_explain(const char *name)
{
	const struct hr_named *q = hr_named_find(name);
	struct hr_near near = hr_near(name);

	if (q == NULL) {
		hr_question_no_name(&near, "query", &hr_request_messages);
		return HR_EXIT_USAGE;
	}
	fputs(q->sql, stdout);
	return EXIT_SUCCESS;
}

static int take_argument(void *self, int id, const char *value)
{
	struct hr_query_request *r = self;
	uint64_t number;

	switch (id) {
	case HR_OPTION_FORMAT:
		hr_ask_format(value, &r->format);
		return 0;
	case 'o':
		r->output = value;
		return 0;
	case OPT_THREADS:
		if (hr_text_parse_uint(value, THREADS_MAX, &number) < 0 || number == 0)
			return hr_option_wrong("threads", "a number from 1 to 4096", value);
		r->threads = (unsigned)number;
		return 0;
	case OPT_MEMORY:
		return hr_text_parse_size(value, &r->memory_bytes) == 0
			   ? 0
			   : hr_option_wrong("memory", "a size such as 4GiB", value);
	case OPT_TIME:
		return hr_text_parse_duration(value, &r->limit_ns) == 0 && r->limit_ns > 0
			   ? 0
			   : hr_option_wrong("time", "a time such as 30s or 5m", value);
	default: /* an operand */
		r->words[r->n_words++] = (char *)value;
		return 0;
	}
}

int hr_request_parse(int argc, char **argv, struct hr_query_request *ret, int *ret_status)
{
	*ret = (struct hr_query_request){0};
	*ret_status = EXIT_FAILURE;
	ret->stores = calloc((size_t)argc, sizeof(*ret->stores));
	ret->words = calloc((size_t)argc, sizeof(*ret->words));
	if (ret->stores == NULL || ret->words == NULL ||
	    !hr_arguments(argc, argv, hr_query_option_table, take_argument, ret, ret_status))
		return 1;
	if (ret->explain != NULL)
		*ret_status = query_request_explain(ret->explain);
	else if (ret->list)
		hr_request_list(hr_named_list, ret->format);
	else
		*ret_status = hr_operands_sort(ret);
	return ret->explain != NULL || ret->list || *ret_status != 0;
}

void hr_request_done(struct hr_query_request *r)
{
	hr_question_done(&r->question);
	free(r->folder);
	free(r->newest);
	free(r->last_run);
	free(r->stores);
	free(r->words);
}

int hr_query_report_output(const struct hr_query_request *r, int err)
{
	hr_report("cannot write the answer to %s: %s",
		  r->output != NULL ? r->output : "standard output", strerrordesc_np(-err));
	return HR_ASK_FAILED;
}
