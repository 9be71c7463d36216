/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/emit.h"

#include <string.h>

#define SCOPE_AND_SOURCE (HR_EV_SCOPE_RUNTIME | HR_EV_BPF)

static void file_keys(const struct hr_emit *e, const uint32_t *key_of_file, const uint32_t *rows,
		      uint32_t n, uint32_t *values)
{
	const uint32_t *file_of = e->c.file;

	for (uint32_t k = 0; k < n; k++)
		values[k] = key_of_file[file_of[rows[k]]];
}

void hr__emit_keys(const struct hr_emit *e, enum hr_emit_key key, const uint32_t *rows, uint32_t n,
		   uint32_t *values)
{
	const uint32_t *task = e->c.task;
	const uint16_t *bits = e->c.bits, *op = e->c.op;

	switch (key) {
	case HR_KEY_MOUNT:
		file_keys(e, e->st->names.mount, rows, n, values);
		break;
	case HR_KEY_PATTERN:
		file_keys(e, e->st->names.pattern, rows, n, values);
		break;
	case HR_KEY_BITS:
		for (uint32_t k = 0; k < n; k++)
			values[k] = bits[rows[k]] & SCOPE_AND_SOURCE;
		break;
	case HR_KEY_OP:
		for (uint32_t k = 0; k < n; k++)
			values[k] = op[rows[k]];
		break;
	default:
		for (uint32_t k = 0; k < n; k++)
			values[k] = task[rows[k]];
	}
}

/* Writes n single NULLs, because DuckDB's C API cannot make a constant NULL of a given type. */
static void emit_nulls(uint32_t n, enum hr_sql_type type, duckdb_vector vector)
{
	uint64_t *validity;

	hr_duckdb.vector_ensure_validity_writable(vector);
	validity = hr_duckdb.vector_get_validity(vector);
	memset(validity, 0, (n + 63) / 64 * sizeof(*validity));
	memset(hr_duckdb.vector_get_data(vector), 0,
	       n * (type == HR_SQL_VARCHAR ? sizeof(duckdb_string_t) : sizeof(int64_t)));
}

void hr__emit_constant(const struct hr_emit *e, unsigned column, uint32_t row, uint32_t n,
		       duckdb_vector vector)
{
	enum hr_sql_type type = hr_table_column(HR_TABLE_EVENTS, column)->type;
	union {
		duckdb_string_t text;
		int64_t number;
		uint64_t id;
	} cell = {.number = 0};
	uint64_t valid = 1;
	struct hr_query_out out = {.data = &cell, .validity = &valid};
	duckdb_value value;

	hr__event_columns[column].emit(e, &row, 1, &out);
	if (valid == 0) {
		emit_nulls(n, type, vector);
		return;
	}
	if (type == HR_SQL_VARCHAR)
		value = hr_duckdb.create_varchar_length(hr_string_text(&cell.text),
							cell.text.value.inlined.length);
	else if (type == HR_SQL_UBIGINT)
		value = hr_duckdb.create_uint64(cell.id);
	else
		value = hr_duckdb.create_int64(cell.number);
	hr_duckdb.vector_reference_value(vector, value);
	hr_duckdb.destroy_value(&value);
}
