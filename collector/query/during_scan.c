/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hr_during(): the table function around during.h. As in hr_busy(), all threads that come do the work, and the one that
 * ends it hands out the rows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/query/during.h"

#define DEFAULT_KIND "step"

/* How many rows there are is not known before they are read. Taken for few, they would be joined by nested loops. */
#define GUESSED_ROWS 1000000u

enum column {
	CLUSTER,
	JOB,
	ATTEMPT,
	NODE,
	PROC,
	RANK,
	TID,
	KIND,
	DEPTH,
	OPEN,
	COUNT,
	START_NS,
	DUR_NS,
	STEP,
	EPOCH,
	OPS,
	BYTES_READ,
	BYTES_WRITTEN,
	IO_NS,
	BUSY_NS,
	TRAIN_BUSY_NS,
	COLUMNS
};

static const struct hr_sql_column columns[COLUMNS] = {
    {"cluster", HR_SQL_VARCHAR}, {"job", HR_SQL_VARCHAR},	{"attempt", HR_SQL_BIGINT},
    {"node", HR_SQL_VARCHAR},	 {"proc", HR_SQL_UBIGINT},	{"rank", HR_SQL_BIGINT},
    {"tid", HR_SQL_BIGINT},	 {"kind", HR_SQL_VARCHAR},	{"depth", HR_SQL_BIGINT},
    {"open", HR_SQL_BIGINT},	 {"count", HR_SQL_BIGINT},	{"start_ns", HR_SQL_BIGINT},
    {"dur_ns", HR_SQL_BIGINT},	 {"step", HR_SQL_BIGINT},	{"epoch", HR_SQL_BIGINT},
    {"ops", HR_SQL_BIGINT},	 {"bytes_read", HR_SQL_BIGINT}, {"bytes_written", HR_SQL_BIGINT},
    {"io_ns", HR_SQL_BIGINT},	 {"busy_ns", HR_SQL_BIGINT},	{"train_busy_ns", HR_SQL_BIGINT},
};
static const struct hr_sql_table table = {"during", columns, COLUMNS, COLUMNS};

static const char *const parameters[] = {"kind", "scope", NULL};

/* What a statement asks for. */
struct asked {
	uint32_t kinds;
	enum hr_busy_scope scope;
};

/* One use of hr_during() in a running plan. */
struct scan {
	struct hr_query *q;
	struct hr_busy *busy;
	const struct hr_during *during; /* the busy's own */
	const struct hr_busy_keys *keys;
	bool empty; /* there is no event to work on */
	unsigned n_columns;
	uint16_t columns[];
};

/* One thread's place in it. */
struct worker {
	struct hr_busy_worker *w;
	bool worked;
	const struct hr_during_row *rows;
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

static uint32_t kind_of(const char *text, size_t n)
{
	for (uint32_t kind = 1; kind < 32; kind++) {
		const char *name = hr_region_kind_name(kind);

		if (name != NULL && strlen(name) == n && memcmp(name, text, n) == 0)
			return kind;
	}
	return 0;
}

static bool parse_kinds(const char *text, uint32_t *ret)
{
	*ret = 0;
	for (size_t n; *(text += strspn(text, ", ")) != '\0'; text += n) {
		uint32_t kind;

		n = strcspn(text, ", ");
		kind = kind_of(text, n);
		if (kind == 0)
			return false;
		*ret |= 1u << kind;
	}
	return true;
}

static void bind(duckdb_bind_info info)
{
	char *kind = hr__busy_parameter(info, "kind"), *scope = hr__busy_parameter(info, "scope");
	struct asked *a = calloc(1, sizeof(*a));

	hr__table_bind(info, &table);
	hr_duckdb.bind_set_cardinality(info, GUESSED_ROWS, false);
	if (a == NULL)
		hr_duckdb.bind_set_error(info, "out of memory");
	else if (!parse_kinds(kind != NULL ? kind : DEFAULT_KIND, &a->kinds))
		hr_duckdb.bind_set_error(
		    info, "hr_during: `kind` is a list of kinds of regions: 'step, input_wait'");
	else if (!hr__busy_scope(scope != NULL ? scope : "all", &a->scope))
		hr_duckdb.bind_set_error(info, "hr_during: `scope` is data, runtime or all");
	hr_duckdb.bind_set_bind_data(info, a, free);
	hr_duckdb.free(kind);
	hr_duckdb.free(scope);
}

static void init(duckdb_init_info info)
{
	struct hr_query *q = hr_duckdb.init_get_extra_info(info);
	const struct asked *a = hr_duckdb.init_get_bind_data(info);
	idx_t n = hr_duckdb.init_get_column_count(info);
	struct scan *s = calloc(1, sizeof(*s) + n * sizeof(s->columns[0]));
	struct hr_during *during;
	size_t batches;

	if (s == NULL || hr__during_new(q, a->kinds, &during) < 0 ||
	    hr__busy_new(q, HR_BUSY_RANK, a->scope, during, &s->busy) < 0) {
		free(s);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	s->q = q;
	s->during = during;
	s->keys = hr__busy_keys(s->busy);
	s->n_columns = (unsigned)n;
	for (idx_t i = 0; i < n; i++) {
		idx_t column = hr_duckdb.init_get_column_index(info, i);

		s->columns[i] = column < COLUMNS ? (uint16_t)column : COLUMNS;
	}
	batches = hr__busy_batches(s->busy);
	s->empty = batches == 0;
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

static void put_stream(const struct scan *s, const struct hr_during_row *row, enum column column,
		       size_t k, struct hr_out *out)
{
	const struct hr_qstream *st = &s->q->streams[row->stream];

	if (column == ATTEMPT)
		hr__out_number(out, k, st->s->attempt, false);
	else
		hr__out_text(out, k,
			     column == CLUSTER ? st->cluster
			     : column == JOB   ? st->job
					       : st->node,
			     false);
}

static void put_region(const struct scan *s, const struct hr_during_row *row, enum column column,
		       size_t k, struct hr_out *out)
{
	const struct hr_region *g = &row->region;
	const char *kind = hr_region_kind_name(g->kind);
	uint64_t proc;

	switch (column) {
	case PROC:
		proc = hr_stream_proc(s->q->streams[row->stream].s, g->proc);
		hr__out_number(out, k, proc, proc == 0);
		break;
	case RANK:
		hr__out_number(out, k, (uint64_t)s->keys->list[row->key].rank,
			       s->keys->list[row->key].rank < 0);
		break;
	case TID:
		hr__out_number(out, k, g->tid, g->tid == 0);
		break;
	case KIND:
		hr__out_text(out, k, hr__string(kind, strlen(kind)), false);
		break;
	case DEPTH:
		hr__out_number(out, k, g->depth, false);
		break;
	case OPEN:
		hr__out_number(out, k, g->open, false);
		break;
	case COUNT:
		hr__out_number(out, k, g->count, false);
		break;
	case START_NS:
		hr__out_number(out, k, (uint64_t)row->start_ns, false);
		break;
	case DUR_NS:
		hr__out_number(out, k, g->dur_ns, false);
		break;
	default:
		hr__out_number(out, k, column == STEP ? g->step : g->epoch,
			       (column == STEP ? g->step : g->epoch) == HR_REGION_UNKNOWN);
	}
}

/* Of several regions that were added up it is not known. */
static void put_sum(const struct scan *s, const struct hr_during_row *row, enum column column,
		    size_t k, struct hr_out *out)
{
	const struct hr_during_sums *sums = hr__during_sums(s->during, row->key);
	const struct hr_during_sums *from = &sums[row->from], *to = &sums[row->to];
	uint64_t value;

	switch (column) {
	case OPS:
		value = to->ops - from->ops;
		break;
	case BYTES_READ:
		value = to->bytes_read - from->bytes_read;
		break;
	case BYTES_WRITTEN:
		value = to->bytes_written - from->bytes_written;
		break;
	case IO_NS:
		value = to->io_ns - from->io_ns;
		break;
	case BUSY_NS:
		value = to->busy_ns[0] - from->busy_ns[0];
		break;
	default:
		value = to->busy_ns[1] - from->busy_ns[1];
	}
	hr__out_number(out, k, value, row->region.count > 1);
}

/* False: an error was set. */
static bool work(const struct scan *s, struct worker *w, duckdb_function_info info)
{
	int r = w->worked ? 0 : hr__busy_work(s->busy, w->w);
	bool first = !w->worked;

	w->worked = true;
	if (r == 1 || (r == 0 && first && s->empty))
		w->n_rows = hr__during_rows(s->during, &w->rows);
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
		enum column column = s->columns[i];
		struct hr_out out;

		if (column == COLUMNS)
			continue;
		out = hr__out(hr_duckdb.data_chunk_get_vector(output, i));
		for (size_t k = 0; k < n; k++) {
			const struct hr_during_row *row = &w->rows[w->at + k];

			if (column <= NODE)
				put_stream(s, row, column, k, &out);
			else if (column < OPS)
				put_region(s, row, column, k, &out);
			else
				put_sum(s, row, column, k, &out);
		}
	}
	w->at += n;
	hr_duckdb.data_chunk_set_size(output, n);
}

int hr__during_register(struct hr_query *q)
{
	static const struct hr_table_function during = {bind, init, init_worker, scan_chunk,
							parameters};

	return hr__table_register(q, "hr_during", q, &during);
}
