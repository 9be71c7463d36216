/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"

static const struct hr_row_kind *const kinds[] = {
    &hr__rollups_kind,	 &hr__file_records_kind, &hr__files_kind,	   &hr__processes_kind,
    &hr__levels_kind,	 &hr__losses_kind,	 &hr__jobs_kind,	   &hr__labels_kind,
    &hr__nodes_kind,	 &hr_regions_kind,	 &hr__kernel_records_kind, &hr_parts_kind,
    &hr_replays_kind,	 &hr_findings_kind,	 &hr_waits_kind,	   &hr_part_sums_kind,
    &hr_regions_of_kind,
};
/* The estimated number of rows. With a small estimate, DuckDB would join by nested loops. */
#define MANY_ROWS 1000000u
#define N_KINDS	  (sizeof(kinds) / sizeof(kinds[0]))

struct rows_bound {
	struct hr_query *q;
	const struct hr_row_kind *kind;
};

/* The values of a table function's parameters in a statement; duckdb_free frees them. */
struct parameters {
	char *texts[HR_ROW_PARAMETERS];
};

struct rows_scan {
	struct hr_query *q;
	const struct hr_row_kind *kind;
	const struct parameters *parameters;
	uint64_t want;
	size_t n_units;
	_Atomic size_t next;
	unsigned n_columns;
	uint16_t columns[];
};

struct rows_worker {
	const struct hr_row_kind *kind;
	bool loaded;
	struct hr_rows rows;
	size_t at;
};

static void unload(struct rows_worker *w)
{
	if (w->loaded && w->kind->done != NULL)
		w->kind->done(&w->rows);
	w->loaded = false;
}

static void rows_worker_free(void *data)
{
	struct rows_worker *w = data;

	unload(w);
	free(w);
}

static void parameters_free(void *data)
{
	struct parameters *p = data;

	for (unsigned i = 0; i < HR_ROW_PARAMETERS; i++)
		hr_duckdb.free(p->texts[i]);
	free(p);
}

static void bind_parameters(duckdb_bind_info info, const struct hr_row_kind *kind)
{
	struct parameters *p = calloc(1, sizeof(*p));
	const char *wrong;

	if (p == NULL) {
		hr_duckdb.bind_set_error(info, "out of memory");
		return;
	}
	for (unsigned i = 0; kind->parameters[i] != NULL; i++) {
		duckdb_value value = hr_duckdb.bind_get_named_parameter(info, kind->parameters[i]);

		if (value != NULL && !hr_duckdb.is_null_value(value))
			p->texts[i] = hr_duckdb.get_varchar(value);
		hr_duckdb.destroy_value(&value);
	}
	wrong = kind->check((const char *const *)p->texts);
	if (wrong != NULL)
		hr_duckdb.bind_set_error(info, wrong);
	hr_duckdb.bind_set_bind_data(info, p, parameters_free);
}

static void rows_bind(duckdb_bind_info info)
{
	const struct rows_bound *b = hr_duckdb.bind_get_extra_info(info);

	hr_table_bind(info, &hr_tables[b->kind->table]);
	if (b->kind->many)
		hr_duckdb.bind_set_cardinality(info, MANY_ROWS, false);
	if (b->kind->parameters != NULL)
		bind_parameters(info, b->kind);
}

static void rows_init(duckdb_init_info info)
{
	const struct rows_bound *b = hr_duckdb.init_get_extra_info(info);
	idx_t n = hr_duckdb.init_get_column_count(info);
	struct rows_scan *s = calloc(1, sizeof(*s) + n * sizeof(s->columns[0]));

	if (s == NULL) {
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	s->q = b->q;
	s->kind = b->kind;
	s->parameters = hr_duckdb.init_get_bind_data(info);
	s->n_units = b->kind->stream != NULL ? 1 : b->q->n_streams;
	s->n_columns = (unsigned)n;
	for (idx_t i = 0; i < n; i++) {
		idx_t column = hr_duckdb.init_get_column_index(info, i);
		unsigned end = hr_tables[b->kind->table].n_columns;

		s->columns[i] = column < end ? (uint16_t)column : UINT16_MAX;
		if (column < end)
			s->want |= UINT64_C(1) << column;
	}
	hr_duckdb.init_set_max_threads(info,
				       s->n_units < b->q->threads ? s->n_units + 1 : b->q->threads);
	/* Pairs with next_unit(), because thread sanitizers do not see DuckDB's queues. */
	atomic_store_explicit(&s->next, 0, memory_order_release);
	hr_duckdb.init_set_init_data(info, s, free);
}

static void init_worker(duckdb_init_info info)
{
	struct rows_worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		hr_duckdb.init_set_error(info, "out of memory");
	else
		hr_duckdb.init_set_init_data(info, w, rows_worker_free);
}

/* ---- cells ---- */

static void stream_cell(const struct hr_qstream *st, unsigned column, struct hr_cell *c)
{
	switch (column) {
	case HR_EVENTS_cluster:
		c->s = st->cluster;
		break;
	case HR_EVENTS_job:
		c->s = st->job;
		break;
	case HR_EVENTS_attempt:
		c->i = st->s->attempt;
		break;
	default:
		c->s = st->node;
	}
}

static void process_cell(const struct hr_stream *s, uint64_t proc, unsigned column,
			 struct hr_cell *c)
{
	const struct hr_process *p = proc != 0 ? hr_stream_process(s, proc) : NULL;

	c->null = p == NULL;
	if (column == HR_EVENTS_proc) {
		c->u = hr_stream_proc(s, proc);
		c->null = proc == 0;
		return;
	}
	if (p == NULL)
		return;
	switch (column) {
	case HR_EVENTS_pid:
		c->i = p->msg->pid;
		return;
	case HR_EVENTS_rank:
		c->i = p->rank;
		break;
	case HR_EVENTS_local_rank:
		c->i = p->local_rank;
		break;
	case HR_EVENTS_worker:
		c->i = p->worker;
		break;
	case HR_EVENTS_loader:
		c->i = (int64_t)p->msg->loader_plus1 - 1;
		break;
	default:
		c->i = (int64_t)p->msg->loader_worker_plus1 - 1;
		break;
	}
	c->null = c->i < 0;
}

static void rows_put(const struct hr_cell *c, enum hr_sql_type type, size_t k,
		     struct hr_query_out *out)
{
	if (c->null)
		hr__out_null(out, k);
	switch (type) {
	case HR_SQL_BIGINT:
	case HR_SQL_UBIGINT:
		((uint64_t *)out->data)[k] = c->u;
		break;
	case HR_SQL_VARCHAR:
		((duckdb_string_t *)out->data)[k] = c->s;
		break;
	case HR_SQL_HIST:
		break;
	}
}

static void emit(const struct rows_worker *w, unsigned column, size_t n, duckdb_vector vector,
		 size_t first)
{
	const struct hr_row_kind *kind = w->kind;
	enum hr_sql_type type = hr_tables[kind->table].columns[column].type;
	unsigned process_end = kind->proc != NULL ? HR_PROCESS_COLUMNS : HR_STREAM_COLUMNS;
	struct hr_query_out out = hr_query_out_of(vector);
	uint64_t *hists = NULL;

	if (type == HR_SQL_HIST) {
		hists = hr_duckdb.vector_get_data(hr_duckdb.array_vector_get_child(vector));
		hists += first * HR_HIST_BINS;
		memset(hists, 0, n * HR_HIST_BINS * sizeof(*hists));
	}
	for (size_t k = 0; k < n; k++) {
		const struct hr_qstream *st = kind->stream != NULL && column < process_end
						  ? kind->stream(&w->rows, w->at + k)
						  : w->rows.st;
		struct hr_cell c = {.u = 0};

		if (column < HR_STREAM_COLUMNS) {
			stream_cell(st, column, &c);
			c.null = column == HR_EVENTS_node && kind->of_job;
		} else if (column < process_end) {
			process_cell(st->s, kind->proc(&w->rows, w->at + k), column, &c);
		} else {
			c.hist = hists != NULL ? hists + k * HR_HIST_BINS : NULL;
			kind->cell(&w->rows, w->at + k, column, &c);
		}
		rows_put(&c, type, first + k, &out);
	}
}

/* ---- the scan ---- */

static bool next_unit(struct rows_scan *s, struct rows_worker *w, int *ret_error)
{
	size_t unit = atomic_fetch_add_explicit(&s->next, 1, memory_order_acquire);

	unload(w);
	w->at = 0;
	w->kind = s->kind;
	if (unit >= s->n_units)
		return false;
	w->rows = (struct hr_rows){
	    .q = s->q,
	    .parameters = s->parameters != NULL ? (const char *const *)s->parameters->texts : NULL,
	    .st = s->kind->stream != NULL ? NULL : &s->q->streams[unit]};
	w->loaded = true;
	*ret_error = s->kind->gather(&w->rows, s->want);
	return *ret_error == 0;
}

static void scan_chunk(duckdb_function_info info, duckdb_data_chunk output)
{
	struct rows_scan *s = hr_duckdb.function_get_init_data(info);
	struct rows_worker *w = hr_duckdb.function_get_local_init_data(info);
	size_t room = hr_duckdb.vector_size(), used = 0;
	int r = 0;

	/* Small units share a chunk, because a chunk takes some time even with few rows. */
	while (used < room && !atomic_load_explicit(&s->q->interrupted, memory_order_relaxed)) {
		size_t n = w->loaded ? w->rows.n - w->at : 0;

		if (n == 0 && next_unit(s, w, &r))
			continue;
		if (n == 0)
			break;
		n = n < room - used ? n : room - used;
		for (unsigned i = 0; i < s->n_columns; i++) {
			if (s->columns[i] != UINT16_MAX)
				emit(w, s->columns[i], n,
				     hr_duckdb.data_chunk_get_vector(output, i), used);
		}
		w->at += n;
		used += n;
	}
	if (r < 0)
		hr_duckdb.function_set_error(info, "out of memory while gathering rows");
	hr_duckdb.data_chunk_set_size(output, r < 0 ? 0 : used);
}

static int register_kind(struct hr_query *q, const struct hr_row_kind *kind)
{
	const struct hr_table_function rows = {rows_bind, rows_init, init_worker, scan_chunk,
					       kind->parameters};
	struct rows_bound *b = hr_pool_get(&q->pool, sizeof(*b));
	char name[64];

	if (b == NULL)
		return -ENOMEM;
	*b = (struct rows_bound){q, kind};
	snprintf(name, sizeof(name), "hr_%s", hr_tables[kind->table].name);
	if (kind->function != NULL)
		snprintf(name, sizeof(name), "%s", kind->function);
	return hr_table_register(q, name, b, &rows);
}

int hr_rows_register(struct hr_query *q)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < N_KINDS; i++)
		r = register_kind(q, kinds[i]);
	return r;
}

/* ---- helpers of the kinds ---- */

int hr_frames_read(struct hr_query *q, const struct hr_qstream *st, int body_case,
		   struct hr_frames *ret)
{
	struct hr_frames f = {0};
	size_t size = 0;

	for (uint32_t i = 0; i < st->s->n_frames; i++) {
		int r;

		if (st->s->frames[i].kind != (uint32_t)body_case)
			continue;
		r = hr_array_reserve(f.list, f.n, size) ? 0 : -ENOMEM;
		if (r == 0)
			r = hr_stream_read_into(st->s, i, &f.arena, &f.list[f.n]);
		if (r == 0 && (int)f.list[f.n]->body_case != body_case)
			r = -EBADMSG;
		f.n += r == 0;
		if (r < 0 && hr_query_damage(q, st, i, r) < 0) {
			hr_frames_free(&f);
			return r;
		}
	}
	*ret = f;
	return 0;
}

void hr_frames_free(struct hr_frames *f)
{
	free(f->list);
	hr_arena_free(&f->arena);
	*f = (struct hr_frames){0};
}

void hr__hist_add(uint64_t *hist, const uint64_t *pairs, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2) {
		if (pairs[i] < HR_HIST_BINS)
			hist[pairs[i]] += pairs[i + 1];
	}
}
