/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "query/intervals/busy_table.h"

struct busy_bound {
	struct hr_query *q;
	const struct hr_busy_table *table;
};

struct busy_thread {
	struct hr_busy_worker *w;
	bool worked;
	const char *rows;
	size_t n_rows, at;
};

/* ---- parameters ---- */

static bool parse_scope(const char *text, enum hr_busy_scope *ret)
{
	static const char *const names[] = {
	    [HR_BUSY_ALL] = "all", [HR_BUSY_DATA] = "data", [HR_BUSY_RUNTIME] = "runtime"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Parses a rank. `text` NULL: any rank. False: `text` is not a rank. */
static bool parse_rank(const char *text, int32_t *ret)
{
	char *end;
	long rank;

	*ret = HR_BUSY_ANY_RANK;
	if (text == NULL)
		return true;
	errno = 0;
	rank = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || rank < 0 || rank > INT32_MAX)
		return false;
	*ret = (int32_t)rank;
	return true;
}

char *hr__busy_parameter(duckdb_bind_info info, const char *name)
{
	duckdb_value value = hr_duckdb.bind_get_named_parameter(info, name);
	char *text = NULL;

	if (value != NULL && !hr_duckdb.is_null_value(value))
		text = hr_duckdb.get_varchar(value);

	hr_duckdb.destroy_value(&value);
	return text;
}

bool hr__busy_bind(duckdb_bind_info info, const char *function, struct hr_busy_args *ret)
{
	char *scope = hr__busy_parameter(info, "scope"), *rank = hr__busy_parameter(info, "rank");
	const char *wrong = NULL;
	char error[80];

	if (!parse_scope(scope != NULL ? scope : "all", &ret->scope))
		wrong = "`scope` must be data, runtime or all";
	else if (!parse_rank(rank, &ret->rank))
		wrong = "`rank` must be a number from 0 up";
	if (wrong != NULL) {
		snprintf(error, sizeof(error), "%s: %s", function, wrong);
		hr_duckdb.bind_set_error(info, error);
	}
	hr_duckdb.free(scope);
	hr_duckdb.free(rank);
	return wrong == NULL;
}

/* ---- a use ---- */

static void use_free(void *data)
{
	struct hr_busy_use *use = data;

	hr__busy_free(use->busy);
	free(use);
}

static void busy_table_worker_free(void *data)
{
	struct busy_thread *w = data;

	hr__busy_worker_free(w->w);
	free(w);
}

static void busy_table_init(duckdb_init_info info)
{
	const struct busy_bound *bound = hr_duckdb.init_get_extra_info(info);
	const struct hr_busy_table *table = bound->table;
	struct hr_query *q = bound->q;
	idx_t n = hr_duckdb.init_get_column_count(info);
	struct hr_busy_use *use = calloc(1, sizeof(*use) + n * sizeof(use->columns[0]));
	size_t batches;

	if (use != NULL) {
		use->table = table;
		use->q = q;
	}
	for (idx_t i = 0; use != NULL && i < n; i++) {
		idx_t column = hr_duckdb.init_get_column_index(info, i);

		use->columns[i] =
		    column < hr_tables[table->id].n_columns ? (uint16_t)column : UINT16_MAX;
		use->n_columns = (unsigned)(i + 1);
	}
	if (use == NULL || table->start(use, hr_duckdb.init_get_bind_data(info)) < 0) {
		free(use);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	batches = hr__busy_batches(use->busy);
	use->empty = batches == 0;
	hr_duckdb.init_set_max_threads(info, batches < q->threads ? batches + 1 : q->threads);
	hr_duckdb.init_set_init_data(info, use, use_free);
}

static void busy_table_init_worker(duckdb_init_info info)
{
	struct busy_thread *w = calloc(1, sizeof(*w));

	if (w == NULL || (w->w = hr__busy_worker_new()) == NULL) {
		free(w);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	hr_duckdb.init_set_init_data(info, w, busy_table_worker_free);
}

/* ---- rows ---- */

/* Adds up batches of events. The thread that adds up the last one gets the rows. False: error. */
static bool work(const struct hr_busy_use *use, struct busy_thread *w, duckdb_function_info info)
{
	const void *rows = NULL;
	int r;

	if (w->worked)
		return true;
	w->worked = true;
	r = hr__busy_work(use->busy, w->w);
	if (r == 1 || (r == 0 && use->empty))
		w->n_rows = use->table->rows(use, &rows);
	else if (r < 0)
		hr_duckdb.function_set_error(
		    info, r == -EINTR ? "interrupted" : "out of memory while uniting intervals");
	w->rows = rows;
	return r >= 0;
}

static void busy_table_scan(duckdb_function_info info, duckdb_data_chunk output)
{
	const struct hr_busy_use *use = hr_duckdb.function_get_init_data(info);
	const struct hr_busy_table *table = use->table;
	struct busy_thread *w = hr_duckdb.function_get_local_init_data(info);
	size_t n = hr_duckdb.vector_size();

	if (!work(use, w, info))
		return;
	n = n < w->n_rows - w->at ? n : w->n_rows - w->at;
	for (unsigned i = 0; i < use->n_columns; i++) {
		unsigned column = use->columns[i];
		enum hr_sql_type type;
		struct hr_query_out out;

		if (column == UINT16_MAX)
			continue;
		type = hr_table_column(table->id, column)->type;
		out = hr_query_out_of(hr_duckdb.data_chunk_get_vector(output, i));
		for (size_t k = 0; k < n; k++) {
			struct hr_cell c = {.u = 0};

			table->cell(use, w->rows + (w->at + k) * table->row_size, column, &c);
			hr_cell_put(&c, type, k, &out);
		}
	}
	w->at += n;
	hr_duckdb.data_chunk_set_size(output, n);
}

int hr__busy_table_register(struct hr_query *q, const char *name, duckdb_table_function_bind_t bind,
			    const char *const *parameters, const struct hr_busy_table *table)
{
	const struct hr_table_function f = {bind, busy_table_init, busy_table_init_worker,
					    busy_table_scan, parameters};
	struct busy_bound *bound = hr_pool_get(&q->pool, sizeof(*bound));

	if (bound == NULL)
		return -ENOMEM;
	*bound = (struct busy_bound){q, table};
	return hr_table_register(q, name, bound, &f);
}
