/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/rows.h"

#include <errno.h>
#include <stddef.h>

#include "common/region.h"

/* ---- what tables.def defines ---- */

/* NOLINTBEGIN(bugprone-macro-parentheses): arguments are types and names */
/* clang-format off */
#define MEMBER_TYPE(row, name) \
	_Generic(((row *)NULL)->name, bool: HR_MEMBER_BOOL, int32_t: HR_MEMBER_INT32, \
		 uint32_t: HR_MEMBER_UINT32, int64_t: HR_MEMBER_64, uint64_t: HR_MEMBER_64, \
		 char *: HR_MEMBER_CHARS, const char *: HR_MEMBER_CHARS, \
		 ProtobufCBinaryData: HR_MEMBER_BYTES, duckdb_string_t: HR_MEMBER_STRING)
#define MEMBER(from, row, name) HR_FROM_##from, MEMBER_TYPE(row, name), offsetof(row, name), 0

#define NO_MEMBER(from) HR_FROM_##from, 0, 0, 0

#define FROM_MADE(row, name) NO_MEMBER(MADE)
#define FROM_NUMBER(row, name) MEMBER(NUMBER, row, name)
#define FROM_KNOWN(row, name) MEMBER(KNOWN, row, name)
#define FROM_GIVEN(row, name) MEMBER(GIVEN, row, name)
#define FROM_PLUS1(row, name) MEMBER(PLUS1, row, name##_plus1)
#define FROM_TIME(row, name) MEMBER(TIME, row, name)
#define FROM_TEXT(row, name) MEMBER(TEXT, row, name)
#define FROM_COPY(row, name) MEMBER(COPY, row, name)
#define FROM_PLAIN(row, name) MEMBER(PLAIN, row, name)
#define FROM_OP(row, name) MEMBER(OP, row, op)
#define FROM_API(row, name) MEMBER(API, row, op)
#define FROM_CLASS(row, name) MEMBER(CLASS, row, op)
#define FROM_MOUNT(row, name) MEMBER(MOUNT, row, mount)
#define FROM_FS_TYPE(row, name) MEMBER(FS_TYPE, row, mount)
#define FROM_SCOPE(row, name) MEMBER(SCOPE, row, scope)
#define FROM_SUM(row, name) MEMBER(SUM, row, name)
#define FROM_MAX(row, name) MEMBER(MAX, row, name)
#define FROM_FIRST(row, name) MEMBER(FIRST, row, name)
#define FROM_LAST(row, name) MEMBER(LAST, row, name)
#define FROM_FILE_PATH(row, name) NO_MEMBER(FILE_PATH)
#define FROM_FILE_PATTERN(row, name) NO_MEMBER(FILE_PATTERN)
#define FROM_FILE_SCOPE(row, name) NO_MEMBER(FILE_SCOPE)
#define FROM_FILE_KNOWN_SCOPE(row, name) NO_MEMBER(FILE_KNOWN_SCOPE)
#define FROM_FILE_MOUNT(row, name) NO_MEMBER(FILE_MOUNT)
#define FROM_FILE_FS_TYPE(row, name) NO_MEMBER(FILE_FS_TYPE)
#define FROM_FILE_ID(row, name) NO_MEMBER(FILE_ID)
#define FROM_HIST(row, name) \
	HR_FROM_HIST, HR_MEMBER_LIST, offsetof(row, n_##name), offsetof(row, name)

#define HR_TABLE(table, name, shared, row) typedef row row_##table;
#include "query/tables/tables.def"

/* All columns: the shared ones, and then those of each table. */
static const struct hr_sql_column columns[] = {
#define HR_COLUMN(table, name, type, from, sentence) \
	{#name, HR_SQL_##type, false, FROM_##from(row_##table, name)},
#define HR_HIDDEN(table, name, type, from, sentence) \
	{#name, HR_SQL_##type, true, FROM_##from(row_##table, name)},
#include "query/tables/tables.def"
};

/* FIRST_<table> is the position of a table's first column in `columns`. */
enum {
#define HR_SHARED(table, shared) FIRST_##table, BEFORE_##table = FIRST_##table - 1,
#define HR_TABLE(table, name, shared, row) HR_SHARED(table, shared)
#define HR_COLUMN(table, name, type, from, sentence) AT_##table##_##name,
#include "query/tables/tables.def"
};

const struct hr_sql_table hr_tables[] = {
#define HR_TABLE(table, name, shared, row) \
	{name, &columns[FIRST_##table], shared, HR_##table##_END},
#include "query/tables/tables.def"
};
/* clang-format on */
/* NOLINTEND(bugprone-macro-parentheses) */

const struct hr_sql_column *hr_table_column(enum hr_sql_table_id table, unsigned i)
{
	const struct hr_sql_table *t = &hr_tables[table];

	return i < t->n_shared ? &columns[i] : &t->own[i - t->n_shared];
}

/* ---- values that tables share ---- */

static int64_t known(int32_t value)
{
	return value < 0 ? HR_VALUE_NULL : value;
}

static int64_t minus1(uint32_t value)
{
	return value == 0 ? HR_VALUE_NULL : (int64_t)value - 1;
}

void hr__process_values(const struct hr_stream *s, uint64_t proc, int64_t *values)
{
	const struct hr_process *p = hr_stream_process(s, proc);

	for (unsigned i = HR_PROCESS_pid; i < HR_PROCESS_END; i++)
		values[i - HR_STREAM_END] = HR_VALUE_NULL;
	values[HR_PROCESS_proc - HR_STREAM_END] = (int64_t)hr_stream_proc(s, proc);
	if (p == NULL)
		return;
	values[HR_PROCESS_pid - HR_STREAM_END] = p->msg->pid;
	values[HR_PROCESS_rank - HR_STREAM_END] = known(p->rank);
	values[HR_PROCESS_local_rank - HR_STREAM_END] = known(p->local_rank);
	values[HR_PROCESS_worker - HR_STREAM_END] = known(p->worker);
	values[HR_PROCESS_loader - HR_STREAM_END] = minus1(p->msg->loader_plus1);
	values[HR_PROCESS_loader_worker - HR_STREAM_END] = minus1(p->msg->loader_worker_plus1);
}

/* ---- table functions ---- */

static duckdb_logical_type logical_type(enum hr_sql_type type)
{
	duckdb_logical_type element, array;

	switch (type) {
	case HR_SQL_BIGINT:
		return hr_duckdb.create_logical_type(DUCKDB_TYPE_BIGINT);
	case HR_SQL_UBIGINT:
		return hr_duckdb.create_logical_type(DUCKDB_TYPE_UBIGINT);
	case HR_SQL_VARCHAR:
		return hr_duckdb.create_logical_type(DUCKDB_TYPE_VARCHAR);
	case HR_SQL_HIST:
		break;
	}
	element = hr_duckdb.create_logical_type(DUCKDB_TYPE_UBIGINT);
	array = hr_duckdb.create_array_type(element, HR_HIST_BINS);
	hr_duckdb.destroy_logical_type(&element);
	return array;
}

void hr_table_bind(duckdb_bind_info info, enum hr_sql_table_id table)
{
	for (unsigned i = 0; i < hr_tables[table].n_columns; i++) {
		const struct hr_sql_column *column = hr_table_column(table, i);
		duckdb_logical_type type = logical_type(column->type);

		hr_duckdb.bind_add_result_column(info, column->name, type);
		hr_duckdb.destroy_logical_type(&type);
	}
}

int hr_table_register(struct hr_query *q, const char *name, void *extra,
		      const struct hr_table_function *table)
{
	duckdb_table_function f = hr_duckdb.create_table_function();
	duckdb_state state;

	hr_duckdb.table_function_set_name(f, name);
	hr_duckdb.table_function_set_extra_info(f, extra, NULL);
	for (size_t i = 0; table->parameters != NULL && table->parameters[i] != NULL; i++) {
		duckdb_logical_type text = logical_type(HR_SQL_VARCHAR);

		hr_duckdb.table_function_add_named_parameter(f, table->parameters[i], text);
		hr_duckdb.destroy_logical_type(&text);
	}
	hr_duckdb.table_function_set_bind(f, table->bind);
	hr_duckdb.table_function_set_init(f, table->init);
	hr_duckdb.table_function_set_local_init(f, table->init_local);
	hr_duckdb.table_function_set_function(f, table->scan);
	hr_duckdb.table_function_supports_projection_pushdown(f, true);
	state = hr_duckdb.register_table_function(q->connection, f);
	hr_duckdb.destroy_table_function(&f);
	return state == DuckDBSuccess ? 0 : -EIO;
}
