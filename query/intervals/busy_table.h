/* SPDX-License-Identifier: Apache-2.0 */
/* busy_table.h - code for table functions that add up all events before their first row */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_TABLE_H
#define HEADRACE_QUERY_INTERVALS_BUSY_TABLE_H

#include "query/intervals/busy.h"
#include "query/tables/rows.h"

struct hr_busy_table;

struct hr_busy_use {
	const struct hr_busy_table *table;
	struct hr_query *q;
	struct hr_busy *busy;
	const struct hr_during *during; /* owned by `busy`; NULL for hr_busy() */
	unsigned by;			/* bits of enum hr_busy_by */
	bool empty;
	unsigned n_columns;
	/* The column of each output vector; UINT16_MAX: a column that DuckDB added. */
	uint16_t columns[];
};

struct hr_busy_table {
	enum hr_sql_table_id id;
	size_t row_size;
	/* Makes use->busy from the parameters in `args`. Returns 0 or -ENOMEM. */
	int (*start)(struct hr_busy_use *use, const void *args);
	size_t (*rows)(const struct hr_busy_use *use, const void **ret);
	void (*cell)(const struct hr_busy_use *use, const void *row, unsigned column,
		     struct hr_cell *ret);
};

/* Returns the text of a parameter (free it with duckdb_free). NULL: not given, or SQL NULL. */
char *hr__busy_parameter(duckdb_bind_info info, const char *name);

/* Reads the parameters `scope` and `rank`. False: sets an error in `info`. */
bool hr__busy_bind(duckdb_bind_info info, const char *function, struct hr_busy_args *ret);

int hr__busy_table_register(struct hr_query *q, const char *name, duckdb_table_function_bind_t bind,
			    const char *const *parameters, const struct hr_busy_table *table);

#endif
