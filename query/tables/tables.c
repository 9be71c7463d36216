/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/internal.h"

#include <errno.h>

#define COLUMN(name, type) {#name, HR_SQL_##type},
#define ONE(name, type)	   +1 // NOLINT(bugprone-macro-parentheses): a sum is made of them
#define X(table, TABLE)                                                                            \
	static const struct hr_sql_column columns_##table[] = {HR_COLUMNS_##TABLE(COLUMN)          \
								   HR_HIDDEN_##TABLE(COLUMN)};
HR_TABLES(X)
#undef X

const struct hr_sql_table hr_tables[HR_TABLE_END] = {
#define X(table, TABLE) {#table, columns_##table, HR_##TABLE##_END, 0 HR_COLUMNS_##TABLE(ONE)},
    HR_TABLES(X)
#undef X
};

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

void hr_table_bind(duckdb_bind_info info, const struct hr_sql_table *table)
{
	for (unsigned i = 0; i < table->n_columns; i++) {
		duckdb_logical_type type = logical_type(table->columns[i].type);

		hr_duckdb.bind_add_result_column(info, table->columns[i].name, type);
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
