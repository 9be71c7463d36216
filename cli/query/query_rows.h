/* SPDX-License-Identifier: Apache-2.0 */
/* query_rows.h - the answer of a query as rows of texts, for commands that compute with it */
#ifndef HEADRACE_CLI_QUERY_QUERY_ROWS_H
#define HEADRACE_CLI_QUERY_QUERY_ROWS_H

#include "cli/query/query_request.h"

/* The texts are those of --format csv. NULL: the value is NULL. */
struct hr_answer_rows {
	char *text; /* memory of all cells */
	char **cells;
	size_t n_columns, n_rows; /* without the row of the columns' names */
	size_t room;
};

static inline char *hr_rows_cell(const struct hr_answer_rows *rows, size_t row, size_t column)
{
	return rows->cells[row * rows->n_columns + column];
}

/*
 * Runs the question `words` on the stores and the job of `r`, which it leaves as it was. Reports
 * failures, as what `headrace <command>` cannot do. Returns an exit status.
 */
int hr_rows_read(const struct hr_query_request *r, char *const *words, size_t n_words,
		 const char *command, struct hr_answer_rows *ret);

/* Takes `n` bytes of CSV (malloc'ed, with a NUL after them). Returns 0, -ENOMEM or -EINVAL. */
int hr_rows_parse(char *csv, size_t n, struct hr_answer_rows *ret);
void hr_rows_done(struct hr_answer_rows *rows); /* accepts a zeroed one */

#endif
