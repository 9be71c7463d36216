/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the measures of runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/compare/compare.h"
#include "query/named.h"

enum { MEASURE, RANK, PHASE, NAME, MOUNT, PIECE, VALUE, JOB, ATTEMPT, COLUMNS };

static int64_t number_or(const char *text, int64_t other)
{
	return text != NULL ? strtoll(text, NULL, 10) : other;
}

static bool take_row(const struct hr_answer_rows *rows, size_t row, struct hr_measure *ret)
{
	const char *value = hr_rows_cell(rows, row, VALUE);

	*ret = (struct hr_measure){
	    .measure = hr_rows_cell(rows, row, MEASURE),
	    .phase = hr_rows_cell(rows, row, PHASE),
	    .name = hr_rows_cell(rows, row, NAME),
	    .mount = hr_rows_cell(rows, row, MOUNT),
	    .rank = number_or(hr_rows_cell(rows, row, RANK), -1),
	    .piece = (int)number_or(hr_rows_cell(rows, row, PIECE), -1),
	    .value = value != NULL ? strtod(value, NULL) : 0,
	};
	return ret->measure != NULL;
}

/* Whether two rows belong to the same run. */
static bool same_run(const struct hr_answer_rows *rows, size_t a, size_t b)
{
	for (int column = JOB; column <= ATTEMPT; column++) {
		const char *x = hr_rows_cell(rows, a, column), *y = hr_rows_cell(rows, b, column);

		if (strcmp(x != NULL ? x : "", y != NULL ? y : "") != 0)
			return false;
	}
	return true;
}

static bool is_taken(const struct hr_compare_runs *r, const char *store, const char *job)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->runs[i].store, store) == 0 && job != NULL &&
		    strcmp(r->runs[i].job, job) == 0)
			return true;
	return false;
}

/* The rows are sorted by run. Returns an exit status. */
static int take_runs(const struct hr_answer_rows *rows, struct hr_measure *list, const char *store,
		     struct hr_compare_runs *r)
{
	if (rows->n_rows > 0 && is_taken(r, store, hr_rows_cell(rows, 0, JOB))) {
		hr_report("%s: the same run is named twice on one side", store);
		return HR_EXIT_USAGE;
	}
	for (size_t i = 0; i < rows->n_rows; i++) {
		if (i == 0 || !same_run(rows, i, i - 1)) {
			if (r->n == HR_COMPARE_RUNS) {
				hr_report("more than %u runs on one side", HR_COMPARE_RUNS);
				return HR_EXIT_USAGE;
			}
			r->runs[r->n++] = (struct hr_compare_run){
			    .store = store, .job = hr_rows_cell(rows, i, JOB), .list = list + i};
		}
		if (!take_row(rows, i, &list[i])) {
			hr_report("the answer of %s has a row without a name", store);
			return EXIT_FAILURE;
		}
		r->runs[r->n - 1].n++;
	}
	return EXIT_SUCCESS;
}

static int read_store(const char *command, const char *store, const char *job,
		      struct hr_compare_runs *r)
{
	/* The text, not the name: a name would be about the last run only. */
	char *words[] = {(char *)hr_named_find("measures")->sql};
	const char *stores[2] = {store};
	struct hr_query_request q = {.stores = stores, .n_stores = 1, .job = job};
	struct hr_answer_rows *rows = &r->rows[r->n_stores];
	struct hr_measure *list;
	int status = hr_rows_read(&q, words, 1, command, rows);

	if (status != EXIT_SUCCESS)
		return status;
	r->n_stores++;
	if (rows->n_columns != COLUMNS || rows->n_rows == 0) {
		hr_report("%s has no measures%s" HR_HINT "`headrace query %s jobs` lists its jobs",
			  store, job != NULL ? " of this job" : "", store);
		return HR_ASK_NO_STORE;
	}
	list = calloc(rows->n_rows, sizeof(*list));
	r->measures[r->n_stores - 1] = list;
	if (list == NULL) {
		hr_report("%s: %s", command, strerrordesc_np(ENOMEM));
		return EXIT_FAILURE;
	}
	return take_runs(rows, list, store, r);
}

const char *hr_compare_bad_end(const struct hr_compare_run *run)
{
	const char *state = hr_compare_run_state(run);

	return state != NULL && strcmp(state, "ended") != 0 ? state : NULL;
}

int hr_compare_read(const char *command, const char *operand, struct hr_compare_runs *ret)
{
	int status = EXIT_SUCCESS;
	const char *last = "";
	char *at;

	*ret = (struct hr_compare_runs){.operand = strdup(operand)};
	at = ret->operand;
	if (at == NULL)
		return EXIT_FAILURE;
	while (status == EXIT_SUCCESS && at != NULL) {
		char *store = strsep(&at, ","), *job = strchr(store, '#');

		if (job != NULL)
			*job++ = '\0';
		if (*store != '\0' || job == NULL)
			last = store; /* else "store#1,#2" */
		if (*last == '\0' || (job != NULL && *job == '\0')) {
			hr_report("'%s' has an empty name of a store or job" HR_HINT
				  "write STORE,STORE or STORE#JOB,#JOB",
				  operand);
			return HR_EXIT_USAGE;
		}
		if (ret->n_stores == HR_COMPARE_RUNS) {
			hr_report("more than %u stores on one side", HR_COMPARE_RUNS);
			return HR_EXIT_USAGE;
		}
		status = read_store(command, last, job, ret);
	}
	return status;
}

void hr_compare_runs_done(struct hr_compare_runs *r)
{
	for (size_t i = 0; i < r->n_stores; i++) {
		hr_rows_done(&r->rows[i]);
		free(r->measures[i]);
	}
	free(r->operand);
	*r = (struct hr_compare_runs){0};
}
