/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_table.h - table functions whose rows are there when all intervals are united: hr_busy(), hr_during()
 *
 * Purpose   What the two have in common. All of DuckDB's threads that come do the work (busy.h); the one that ends it hands
 *           out the rows.
 * Lifetime  A struct hr_busy_use lives in a running plan; the query outlives it.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_TABLE_H
#define HEADRACE_QUERY_INTERVALS_BUSY_TABLE_H

#include "query/intervals/busy.h"

struct hr_busy_table;

/* One use of a table function in a plan. */
struct hr_busy_use {
	const struct hr_busy_table *table;
	struct hr_query *q;
	struct hr_busy *busy;
	const struct hr_during *during; /* busy's own; NULL: none */
	unsigned by;			/* enum hr_busy_by */
	bool empty;			/* there is no batch to work on */
	unsigned n_columns;
	uint16_t columns[]; /* by output vector; table->n_columns: none of the table's */
};

struct hr_busy_table {
	unsigned n_columns;
	size_t row_size;
	/* Makes use->busy of what bind has read; use->columns are there. -ENOMEM. */
	int (*start)(struct hr_busy_use *use, const void *asked);
	size_t (*rows)(const struct hr_busy_use *use, const void **ret);
	void (*put)(const struct hr_busy_use *use, const void *row, unsigned column, size_t k,
		    struct hr_query_out *out);
};

/* The text of a parameter, to be freed by DuckDB; NULL: not given, or NULL. */
char *hr__busy_parameter(duckdb_bind_info info, const char *name);

/* Reads `scope` and `rank` of a function's call; false: the error is set. */
bool hr__busy_bind(duckdb_bind_info info, const char *function, struct hr_busy_asked *ret);

int hr__busy_table_register(struct hr_query *q, const char *name, duckdb_table_function_bind_t bind,
			    const char *const *parameters, const struct hr_busy_table *table);

#endif
