/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hr_busy(): the table function around busy.h. All of DuckDB's threads that come do the work; the one that
 * ends it hands out the rows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/query/busy.h"
#include "common/ops.h"

#define DEFAULT_BY "rank"

enum column {
	CLUSTER,
	JOB,
	ATTEMPT,
	NODE,
	PROC,
	RANK,
	WORKER,
	CLASS,
	BUSY_NS,
	DUR_NS,
	COUNT,
	FIRST_NS,
	LAST_NS,
	COLUMNS
};

static const struct hr_sql_column columns[COLUMNS] = {
    {"cluster", HR_SQL_VARCHAR}, {"job", HR_SQL_VARCHAR},   {"attempt", HR_SQL_BIGINT},
    {"node", HR_SQL_VARCHAR},	 {"proc", HR_SQL_UBIGINT},  {"rank", HR_SQL_BIGINT},
    {"worker", HR_SQL_BIGINT},	 {"class", HR_SQL_VARCHAR}, {"busy_ns", HR_SQL_BIGINT},
    {"dur_ns", HR_SQL_BIGINT},	 {"count", HR_SQL_BIGINT},  {"first_ns", HR_SQL_BIGINT},
    {"last_ns", HR_SQL_BIGINT},
};
static const struct hr_sql_table table = {"busy", columns, COLUMNS, COLUMNS};

static const char *const parameters[] = {"by", "scope", NULL};

/* What a statement asks for. */
struct asked {
	unsigned by;
	enum hr_busy_scope scope;
};

/* One use of hr_busy() in a running plan. */
struct scan {
	struct hr_busy *busy;
	unsigned by;
	unsigned n_columns;
	uint16_t columns[];
};

/* One thread's place in it. */
struct worker {
	struct hr_busy_worker *w;
	bool worked;
	const struct hr_busy_row *rows;
	size_t n_rows, at;
};

static void scan_free(void *data)
{
	struct scan *s = data;

	hr__busy_free(s->busy);
	free(s);
}

static void worker_free(void *data)
{
	struct worker *w = data;

	hr__busy_worker_free(w->w);
	free(w);
}

/* ---- what is asked for -------------------------------------------------------------- */

static bool parse_by(const char *text, unsigned *ret)
{
	static const struct {
		const char *name;
		unsigned by;
	} names[] = {
	    {"node", HR_BUSY_NODE},   {"proc", HR_BUSY_NODE | HR_BUSY_PROC},
	    {"rank", HR_BUSY_RANK},   {"worker", HR_BUSY_WORKER},
	    {"class", HR_BUSY_CLASS},
	};

	*ret = 0;
	for (size_t n; *(text += strspn(text, ", ")) != '\0'; text += n) {
		size_t i = 0;

		n = strcspn(text, ", ");
		while (i < sizeof(names) / sizeof(names[0]) &&
		       (strlen(names[i].name) != n || strncmp(names[i].name, text, n) != 0))
			i++;
		if (i == sizeof(names) / sizeof(names[0]))
			return false;
		*ret |= names[i].by;
	}
	return true;
}

bool hr__busy_scope(const char *text, enum hr_busy_scope *ret)
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

char *hr__busy_parameter(duckdb_bind_info info, const char *name)
{
	duckdb_value value = hr_duckdb.bind_get_named_parameter(info, name);
	char *text = NULL;

	if (value != NULL && !hr_duckdb.is_null_value(value))
		text = hr_duckdb.get_varchar(value);

	hr_duckdb.destroy_value(&value);
	return text;
}

static void bind(duckdb_bind_info info)
{
	char *by = hr__busy_parameter(info, "by"), *scope = hr__busy_parameter(info, "scope");
	struct asked *a = calloc(1, sizeof(*a));

	hr__table_bind(info, &table);
	if (a == NULL)
		hr_duckdb.bind_set_error(info, "out of memory");
	else if (!parse_by(by != NULL ? by : DEFAULT_BY, &a->by))
		hr_duckdb.bind_set_error(
		    info,
		    "hr_busy: `by` is a list of node, proc, rank, worker, class: 'rank, class'");
	else if (!hr__busy_scope(scope != NULL ? scope : "all", &a->scope))
		hr_duckdb.bind_set_error(info, "hr_busy: `scope` is data, runtime or all");
	hr_duckdb.bind_set_bind_data(info, a, free);
	hr_duckdb.free(by);
	hr_duckdb.free(scope);
}

static void init(duckdb_init_info info)
{
	struct hr_query *q = hr_duckdb.init_get_extra_info(info);
	const struct asked *a = hr_duckdb.init_get_bind_data(info);
	idx_t n = hr_duckdb.init_get_column_count(info);
	struct scan *s = calloc(1, sizeof(*s) + n * sizeof(s->columns[0]));
	size_t batches;

	if (s == NULL || hr__busy_new(q, a->by, a->scope, NULL, &s->busy) < 0) {
		free(s);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	s->by = a->by;
	s->n_columns = (unsigned)n;
	for (idx_t i = 0; i < n; i++) {
		idx_t column = hr_duckdb.init_get_column_index(info, i);

		s->columns[i] = column < COLUMNS ? (uint16_t)column : COLUMNS;
	}
	batches = hr__busy_batches(s->busy);
	hr_duckdb.init_set_max_threads(info, batches < q->threads ? batches + 1 : q->threads);
	hr_duckdb.init_set_init_data(info, s, scan_free);
}

static void init_worker(duckdb_init_info info)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL || (w->w = hr__busy_worker_new()) == NULL) {
		free(w);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	hr_duckdb.init_set_init_data(info, w, worker_free);
}

/* ---- rows --------------------------------------------------------------------------- */

static void put_class(struct hr_out *out, size_t k, unsigned class, unsigned by)
{
	const char *name = by & HR_BUSY_CLASS ? hr_class_name((uint8_t) class) : NULL;

	hr__out_text(out, k, hr__string(name, name != NULL ? strlen(name) : 0), name == NULL);
}

static void put(const struct hr_busy_row *row, enum column column, unsigned by, size_t k,
		struct hr_out *out)
{
	switch (column) {
	case CLUSTER:
		hr__out_text(out, k, row->st->cluster, false);
		break;
	case JOB:
		hr__out_text(out, k, row->st->job, false);
		break;
	case ATTEMPT:
		hr__out_number(out, k, row->st->s->attempt, false);
		break;
	case NODE:
		hr__out_text(out, k, row->st->node, !(by & HR_BUSY_NODE));
		break;
	case PROC:
		hr__out_number(out, k, row->proc, row->proc == 0);
		break;
	case RANK:
		hr__out_number(out, k, (uint64_t)row->rank, row->rank < 0);
		break;
	case WORKER:
		hr__out_number(out, k, (uint64_t)row->worker, row->worker < 0);
		break;
	case CLASS:
		put_class(out, k, row->class, by);
		break;
	case BUSY_NS:
		hr__out_number(out, k, row->busy_ns, false);
		break;
	case DUR_NS:
		hr__out_number(out, k, row->dur_ns, false);
		break;
	case COUNT:
		hr__out_number(out, k, row->count, false);
		break;
	case FIRST_NS:
		hr__out_number(out, k, (uint64_t)row->first_ns, false);
		break;
	default:
		hr__out_number(out, k, (uint64_t)row->last_ns, false);
	}
}

/* False: an error was set. */
static bool work(const struct scan *s, struct worker *w, duckdb_function_info info)
{
	int r = w->worked ? 0 : hr__busy_work(s->busy, w->w);

	w->worked = true;
	if (r == 1)
		w->n_rows = hr__busy_rows(s->busy, &w->rows);
	else if (r < 0)
		hr_duckdb.function_set_error(
		    info, r == -EINTR ? "interrupted" : "out of memory while uniting intervals");
	return r >= 0;
}

static void scan_chunk(duckdb_function_info info, duckdb_data_chunk output)
{
	const struct scan *s = hr_duckdb.function_get_init_data(info);
	struct worker *w = hr_duckdb.function_get_local_init_data(info);
	size_t n = hr_duckdb.vector_size();

	if (!work(s, w, info))
		return;
	n = n < w->n_rows - w->at ? n : w->n_rows - w->at;
	for (unsigned i = 0; i < s->n_columns; i++) {
		struct hr_out out;

		if (s->columns[i] == COLUMNS)
			continue;
		out = hr__out(hr_duckdb.data_chunk_get_vector(output, i));
		for (size_t k = 0; k < n; k++)
			put(&w->rows[w->at + k], s->columns[i], s->by, k, &out);
	}
	w->at += n;
	hr_duckdb.data_chunk_set_size(output, n);
}

int hr__busy_register(struct hr_query *q)
{
	static const struct hr_table_function busy = {bind, init, init_worker, scan_chunk,
						      parameters};

	return hr__table_register(q, "hr_busy", q, &busy);
}
