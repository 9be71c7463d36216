/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/rows.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/ops.h"
#include "query/tables/sums.h"

static const struct hr_row_kind *const kinds[] = {
    &hr__rollups_kind,	 &hr__file_records_kind, &hr__files_kind,	   &hr__processes_kind,
    &hr__levels_kind,	 &hr__losses_kind,	 &hr__jobs_kind,	   &hr__labels_kind,
    &hr__nodes_kind,	 &hr_regions_kind,	 &hr__kernel_records_kind, &hr_parts_kind,
    &hr_replays_kind,	 &hr_findings_kind,	 &hr_waits_kind,	   &hr_part_sums_kind,
    &hr_regions_of_kind, &hr_busy_kind,		 &hr_during_kind,
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
	union hr_made_row made;
	size_t at;
};

static void unload(struct rows_worker *w)
{
	if (w->loaded && w->kind->done != NULL)
		w->kind->done(&w->rows);
	else if (w->loaded)
		free(w->rows.data);
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

		assert(i < HR_ROW_PARAMETERS);
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

	hr_table_bind(info, b->kind->table);
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
	s->n_units = b->kind->all ? 1 : b->q->n_streams;
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

static void stream_cell(const struct hr_qstream *st, unsigned column, struct hr_cell *ret)
{
	switch (column) {
	case HR_STREAM_cluster:
		ret->s = st->cluster;
		break;
	case HR_STREAM_job:
		ret->s = st->job;
		break;
	case HR_STREAM_attempt:
		ret->i = st->s->attempt;
		break;
	default:
		ret->s = st->node;
	}
}

static void process_cell(const struct hr_stream *s, uint64_t proc, unsigned column,
			 struct hr_cell *c)
{
	int64_t values[HR_PROCESS_END - HR_STREAM_END];

	c->null = proc == 0;
	if (c->null)
		return;
	hr__process_values(s, proc, values);
	c->i = values[column - HR_STREAM_END];
	c->null = c->i == HR_VALUE_NULL;
}

static uint64_t number_at(const void *at, enum hr_member_type type)
{
	switch (type) {
	case HR_MEMBER_BOOL:
		return *(const bool *)at;
	case HR_MEMBER_INT32:
		return (uint64_t)((const int32_t *)at)[0];
	case HR_MEMBER_UINT32:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static duckdb_string_t text_at(struct hr_pool *pool, const void *at, enum hr_member_type type)
{
	const ProtobufCBinaryData *bytes = at;

	switch (type) {
	case HR_MEMBER_CHARS:
		return hr_string_ofz(pool, *(char *const *)at);
	case HR_MEMBER_BYTES:
		return hr_string_of(pool, bytes->data, bytes->len);
	default:
		return *(const duckdb_string_t *)at;
	}
}

static void op_cell(const struct hr_op_info *op, enum hr_from from, struct hr_cell *c)
{
	const char *text = op->name;

	if (text != NULL && from != HR_FROM_OP)
		text = from == HR_FROM_API ? hr_api_name(op->api) : hr_class_name(op->class);
	hr_cell_constant(c, text);
}

static void mount_cell(const struct hr_qstream *st, uint32_t mount, bool fs_type, struct hr_cell *c)
{
	const struct hr_qmount *m = hr_query_mount(st, mount);

	c->null = m == NULL;
	if (m != NULL)
		c->s = fs_type ? m->fs_type : m->path;
}

static void scope_cell(uint64_t scope, struct hr_cell *c)
{
	hr_cell_constant(c, scope != 0 ? "runtime" : "data");
}

static void file_cell(const struct hr_qstream *st, uint32_t file, enum hr_from from,
		      struct hr_cell *c)
{
	const struct hr_query_names *names = &st->names;

	switch (from) {
	case HR_FROM_FILE_PATH:
		hr__cell_text(c, names->path[file]);
		break;
	case HR_FROM_FILE_PATTERN:
		c->null = names->pattern[file] == 0;
		if (!c->null)
			c->s = names->patterns[names->pattern[file]];
		break;
	case HR_FROM_FILE_SCOPE:
	case HR_FROM_FILE_KNOWN_SCOPE:
		scope_cell(names->scope[file], c);
		c->null = from == HR_FROM_FILE_KNOWN_SCOPE && file == 0;
		break;
	case HR_FROM_FILE_MOUNT:
	case HR_FROM_FILE_FS_TYPE:
		mount_cell(st, names->mount[file], from == HR_FROM_FILE_FS_TYPE, c);
		break;
	default:
		hr__cell_nonzero(c, names->hash[file]);
	}
}

static void member_cell(const struct hr_rows *rows, const struct hr_sql_column *column,
			const void *at, struct hr_cell *c)
{
	struct hr_pool *pool = &rows->q->pool;

	switch (column->from) {
	case HR_FROM_TEXT:
		hr__cell_text(c, text_at(pool, at, column->member));
		break;
	case HR_FROM_COPY:
		hr__cell_text(c, hr__string_copy(pool, *(char *const *)at));
		break;
	case HR_FROM_PLAIN:
		hr_cell_constant(c, *(const char *const *)at);
		break;
	case HR_FROM_TIME:
		hr__cell_wall(c, rows->st, number_at(at, column->member));
		break;
	case HR_FROM_OP:
	case HR_FROM_API:
	case HR_FROM_CLASS:
		op_cell(hr_op_info((uint16_t)number_at(at, column->member)), column->from, c);
		break;
	case HR_FROM_MOUNT:
	case HR_FROM_FS_TYPE:
		mount_cell(rows->st, (uint32_t)number_at(at, column->member),
			   column->from == HR_FROM_FS_TYPE, c);
		break;
	case HR_FROM_SCOPE:
		scope_cell(number_at(at, column->member), c);
		break;
	case HR_FROM_GIVEN:
		c->u = number_at(at, column->member);
		c->null = c->u == UINT64_MAX;
		break;
	default:
		c->u = number_at(at, column->member);
		c->null = column->from != HR_FROM_NUMBER && c->u == 0;
		c->u -= column->from == HR_FROM_PLUS1;
	}
}

static void read_cell(const struct hr_row_kind *kind, const struct hr_rows *rows, size_t row,
		      unsigned i, const struct hr_sql_column *column, struct hr_cell *c)
{
	if (column->from >= HR_FROM_FILE_PATH)
		file_cell(rows->st, kind->file(rows, row), column->from, c);
	else if (column->from == HR_FROM_MADE || kind->row == NULL)
		kind->cell(rows, row, i, c);
	else if (column->from >= HR_FROM_SUM)
		hr__sums_cell(rows, row, column, c);
	else
		member_cell(rows, column, (const char *)kind->row(rows, row) + column->offset, c);
}

void hr_row_cell(const struct hr_row_kind *kind, const struct hr_rows *rows, size_t row,
		 unsigned column, struct hr_cell *ret)
{
	read_cell(kind, rows, row, column, hr_table_column(kind->table, column), ret);
}

static void cell_put(const struct hr_cell *c, enum hr_sql_type type, size_t row,
		     struct hr_query_out *out)
{
	if (c->null)
		hr__out_null(out, row);
	switch (type) {
	case HR_SQL_BIGINT:
	case HR_SQL_UBIGINT:
		((uint64_t *)out->data)[row] = c->u;
		break;
	case HR_SQL_VARCHAR:
		((duckdb_string_t *)out->data)[row] = c->s;
		break;
	case HR_SQL_HIST:
		break;
	}
}

static void emit(const struct rows_worker *w, unsigned i, size_t n, duckdb_vector vector,
		 size_t first)
{
	const struct hr_row_kind *kind = w->kind;
	const struct hr_sql_column *column = hr_table_column(kind->table, i);
	unsigned shared_end = hr_tables[kind->table].n_shared;
	struct hr_query_out out = hr_query_out_of(vector);
	uint64_t *hists = NULL;

	assert(w->loaded && w->at + n <= w->rows.n);
	if (column->type == HR_SQL_HIST) {
		hists = hr_duckdb.vector_get_data(hr_duckdb.array_vector_get_child(vector));
		hists += first * HR_HIST_BINS;
		memset(hists, 0, n * HR_HIST_BINS * sizeof(*hists));
	}
	for (size_t k = 0; k < n; k++) {
		const struct hr_row_of *of =
		    kind->all && i < shared_end ? kind->row(&w->rows, w->at + k) : NULL;
		const struct hr_qstream *st = of != NULL ? of->st : w->rows.st;
		struct hr_cell c = {.u = 0};

		assert(st != NULL || i >= shared_end);
		if (i < HR_STREAM_END) {
			stream_cell(st, i, &c);
			c.null = i == HR_STREAM_node && w->rows.of_job;
		} else if (i < shared_end) {
			process_cell(st->s, of != NULL ? of->proc : kind->proc(&w->rows, w->at + k),
				     i, &c);
		} else {
			c.hist = hists != NULL ? hists + k * HR_HIST_BINS : NULL;
			read_cell(kind, &w->rows, w->at + k, i, column, &c);
		}
		cell_put(&c, column->type, first + k, &out);
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
	    .st = s->kind->all ? NULL : &s->q->streams[unit],
	    .of_job = s->kind->of_job,
	    .made = &w->made};
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

	assert(hr_tables[kind->table].n_columns <= 64); /* the bits of `want` */
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

void *hr_rows_add(struct hr_rows *rows, size_t bytes)
{
	if (rows->n == rows->room) {
		size_t room = rows->room > 0 ? 2 * rows->room : 16;
		void *data = reallocarray(rows->data, room, bytes);

		if (data == NULL)
			return NULL;
		rows->data = data;
		rows->room = room;
	}
	return memset((char *)rows->data + rows->n++ * bytes, 0, bytes);
}

int hr__file_names(const struct hr_rows *rows, uint64_t want, enum hr_sql_table_id table)
{
	unsigned names = 0;

	for (unsigned i = 0; i < hr_tables[table].n_columns; i++) {
		enum hr_from from = hr_table_column(table, i)->from;

		if (!HR_WANTS(want, i))
			continue;
		if (from == HR_FROM_FILE_PATH)
			names |= HR_NAMES_PATH;
		else if (from == HR_FROM_FILE_PATTERN)
			names |= HR_NAMES_PATTERN;
		else if (from >= HR_FROM_FILE_SCOPE)
			names |= HR_NAMES_INFO;
	}
	return hr__names_need(rows->q, rows->st, names);
}
