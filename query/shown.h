/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown.h - the answer of a named query as a table for people
 *
 * The answer is kept as a table of DuckDB. From its rows come
 *
 *      the verdict    sentences of query/named/NAME.verdict.sql, if the query has one
 *      the columns    those of the header's line `shown` that have values, or all
 *      the last row   the number and sum of the folded rows, if the header has a line `fold`
 *
 * Call the function between statements, from the thread that drives the query.
 */
#ifndef HEADRACE_QUERY_SHOWN_H
#define HEADRACE_QUERY_SHOWN_H

#include <stdio.h>

#include "query/named.h"
#include "query/query.h"

struct hr_shown_style {
	unsigned width; /* of the terminal; 0: unlimited */
	bool colour;
	bool all_columns;
	bool raw;	    /* numbers without units, and all rows */
	const char *folder; /* paths below this folder are shown relative to it; NULL: none */
};

/* Whether the header has a line `shown`. Otherwise, show the answer like that of any SQL. */
bool hr_shown_has(const struct hr_named *q);

/* Writes verdict and table. *ret_rows: number of rows of the answer. Errors of hr_query_run. */
int hr_shown_answer(struct hr_query *q, const struct hr_named_args *args,
		    const struct hr_shown_style *style, FILE *to, uint64_t *ret_rows,
		    char **ret_error);

#endif
