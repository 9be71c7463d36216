/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/collector.h"
#include "cli/stores.h"
#include "clickhouse/target.h"
#include "common/text.h"

#define SKIPPED_NAMED 3u

static bool is_path(const char *text)
{
	struct stat st;

	return stat(text, &st) == 0 || errno == EACCES;
}

static bool is_marked_store(const char *text)
{
	struct hr_store_outline outline;

	return hr_store_outline(text, false, &outline) == 0;
}

/* Returns whether this is the address of a collector or of ClickHouse. */
static bool is_server(const char *text)
{
	return hr_address_is(text) || hr_ch_target_is(text);
}

/* Returns whether this is SQL or the name of a query. The first operand may also be a store. */
static bool is_question(const char *text, bool first)
{
	if (hr_named_find(text) != NULL)
		return !first || !is_marked_store(text);
	return strpbrk(text, " \t\n(;") != NULL && !is_server(text) && !is_path(text);
}

/* Returns whether the word is the first one of an SQL statement without quotes. */
static bool is_bare_sql(const char *text)
{
	static const char *const words[] = {"SELECT", "FROM", "WITH", "SHOW", "DESCRIBE"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

/* Reports a word that is neither a store nor a question. */
static int report_unknown(const char *word)
{
	struct hr_near near = hr_near(word);

	if (strpbrk(word, "/*") != NULL) {
		hr_stores_report_missing(word);
		return HR_ASK_NO_STORE;
	}
	hr_stores_near(&near);
	hr_question_no_name(&near, "query or store", &hr_request_messages);
	return HR_EXIT_USAGE;
}

/* Moves stores that follow the question to r->stores. */
static void take_later_stores(struct hr_query_request *r)
{
	size_t kept = 1;

	for (size_t i = 1; i < r->n_words; i++) {
		if (is_server(r->words[i]) || is_marked_store(r->words[i]))
			r->stores[r->n_stores++] = r->words[i];
		else
			r->words[kept++] = r->words[i];
	}
	r->n_words = kept;
}

/* Returns the index of the question, or r->n_words if there is none. */
static size_t find_question(const struct hr_query_request *r)
{
	size_t i = 0;

	while (i < r->n_words && !is_question(r->words[i], i == 0) && !is_bare_sql(r->words[i]))
		i++;
	return i;
}

int hr_operands_sort(struct hr_query_request *r)
{
	size_t question = find_question(r), n = 0;

	if (question < r->n_words && is_bare_sql(r->words[question])) {
		hr_report("the SQL statement must be one word" HR_HINT
			  "quote it: headrace query STORE '%s ...'",
			  r->words[question]);
		return HR_EXIT_USAGE;
	}
	for (; n < question; n++) {
		if (question == r->n_words && !is_server(r->words[n]) && !is_path(r->words[n]))
			break;
		r->stores[r->n_stores++] = r->words[n];
	}
	r->n_words -= n;
	memmove(r->words, r->words + n, r->n_words * sizeof(*r->words));
	/* A collector of a later version may have more queries. */
	if (question == n + r->n_words && r->n_words > 0 &&
	    (r->n_stores == 0 || !is_server(r->stores[0])))
		return report_unknown(r->words[0]);
	if (r->n_stores == 0 && r->n_words > 0)
		take_later_stores(r);
	return 0;
}

/* Parses the address of a collector. Refuses a collector together with other stores. */
static int check_collector(struct hr_query_request *r)
{
	size_t n;

	for (size_t i = 0; i < r->n_stores && !r->remote; i++)
		r->remote = is_server(r->stores[i]);
	if (!r->remote)
		return 0;
	if (r->n_stores > 1) {
		hr_report(
		    "cannot query a collector together with other stores: query each separately");
		return HR_EXIT_USAGE;
	}
	if (hr_ch_target_is(r->stores[0])) {
		hr_report(
		    "a question to ClickHouse is one of `headrace query`; other commands need "
		    "a store: headrace query ADDRESS --job JOB");
		return HR_EXIT_USAGE;
	}
	return hr_collector_parse("", r->stores[0], &r->collector, 1, &n) ? 0 : HR_EXIT_USAGE;
}

/* Reports "skipping a, b and 3 more: not headrace stores". */
static void report_skipped(const char *const *paths, size_t n)
{
	char names[3 * HR_NEAR_BYTES] = "";
	size_t at = 0;

	for (size_t i = 0; i < n && i < SKIPPED_NAMED; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i > 0 ? ", " : "",
				       hr_near_quoted(paths[i]).s);
	if (n > SKIPPED_NAMED)
		snprintf(names + at, sizeof(names) - at, " and %zu more", n - SKIPPED_NAMED);
	hr_report("note: skipping %s: not %s", names,
		  n == 1 ? "a headrace store" : "headrace stores");
}

/* Leaves out operands that are no stores: ./headrace-* also matches summaries and reports. */
static int check_folders(struct hr_query_request *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_stores; i++) {
		const char *store = r->stores[i];

		if (!is_path(store)) {
			hr_stores_report_missing(store);
			return HR_ASK_NO_STORE;
		}
		if (!hr_store_is(store))
			continue;
		memmove(r->stores + kept + 1, r->stores + kept, (i - kept) * sizeof(*r->stores));
		r->stores[kept++] = store;
	}
	if (kept == 0)
		return 0; /* the error of opening the first operand explains what it is */
	if (kept < r->n_stores)
		report_skipped(r->stores + kept, r->n_stores - kept);
	r->n_stores = kept;
	return 0;
}

int hr_operands_newest(struct hr_query_request *r)
{
	if (r->n_stores > 0)
		return 0;
	r->newest = hr_stores_take_newest();
	if (r->newest == NULL)
		return HR_ASK_NO_STORE;
	r->stores[r->n_stores++] = r->newest;
	return 0;
}

/* Resolves the words, except the name of a query that only the collector may have. */
static int resolve(struct hr_query_request *r)
{
	if (r->remote && hr_question_is_name(r->words[0]) && hr_named_find(r->words[0]) == NULL)
		return 0;
	return hr_question_init(&r->question, r->words, r->n_words, &hr_request_messages)
		   ? 0
		   : HR_EXIT_USAGE;
}

/*
 * If all jobs of the store are runs with the same -o (cli/run/job.h), a named query reads
 * only the last run, because sums over repeated runs mean nothing. SQL and the query `jobs` read
 * all runs.
 */
static void take_last_run(struct hr_query_request *r)
{
	struct hr_store_outline outline;
	char first[sizeof(outline.last_job)], last[sizeof(first) + 32];
	const char *dot;

	if (r->job != NULL || r->n_stores != 1 || !hr_question_is_name(r->words[0]) ||
	    strcmp(r->words[0], "jobs") == 0 ||
	    hr_store_outline(r->stores[0], false, &outline) < 0 || outline.jobs < 2)
		return;
	dot = strrchr(outline.last_job, '.');
	if (dot == NULL)
		return;
	snprintf(first, sizeof(first), "%.*s", (int)(dot - outline.last_job), outline.last_job);
	snprintf(last, sizeof(last), "%s.%zu", first, outline.jobs);
	if (strcmp(last, outline.last_job) != 0 || !hr_store_has_job(r->stores[0], first))
		return;
	r->last_run = strdup(last);
	r->job = r->last_run;
	hr_report("job: %s, the last of %zu runs into this store; --job chooses another one", last,
		  outline.jobs);
}

int hr_operands_check(struct hr_query_request *r)
{
	int status = check_collector(r);

	if (status == 0 && r->format == HR_FORMAT_PARQUET && r->output == NULL) {
		hr_report("--format parquet needs an output file: -o FILE");
		return HR_EXIT_USAGE;
	}
	if (status == 0 && r->format == HR_FORMAT_ARROW && r->output == NULL &&
	    isatty(STDOUT_FILENO)) {
		hr_report("--format arrow is no text for a terminal: -o FILE, or a pipe");
		return HR_EXIT_USAGE;
	}
	if (status == 0 && r->n_words > 0 && r->export == NULL)
		status = resolve(r);
	if (status == 0 && !r->remote)
		status = check_folders(r);
	if (status == 0)
		status = hr_operands_newest(r);
	if (status == 0 && !r->remote && r->n_words > 0 && r->export == NULL)
		take_last_run(r);
	return status;
}
