/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_contract.c - DuckDB has each column of tables.def, and no name needs quotes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/tables/internal.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

static const char *const types[] = {
    [HR_SQL_BIGINT] = "BIGINT",
    [HR_SQL_UBIGINT] = "UBIGINT",
    [HR_SQL_VARCHAR] = "VARCHAR",
    [HR_SQL_HIST] = "UBIGINT[64]",
};

/* Each column as "t.NAME, NAME," or as a line "NAME,TYPE". `hidden`: hidden ones, too. */
static char *columns_of(enum hr_sql_table_id table, bool hidden, bool names)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	for (unsigned i = 0; i < hr_tables[table].n_columns; i++) {
		const struct hr_sql_column *c = hr_table_column(table, i);

		if (c->hidden && !hidden)
			continue;
		if (names)
			fprintf(to, "t.%s, %s, ", c->name, c->name);
		else
			fprintf(to, "%s,%s\n", c->name, types[c->type]);
	}
	assert_int_equal(fclose(to), 0);
	return text;
}

static void check_columns(enum hr_sql_table_id table, bool hidden)
{
	char sql[128], *wanted = columns_of(table, hidden, false);

	snprintf(sql, sizeof(sql),
		 "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM %s%s%s)",
		 hidden ? "hr_" : "", hr_tables[table].name, hidden ? "()" : "");
	fixture_expect(&fix, sql, wanted);
	free(wanted);
}

static void tables_have_the_columns_of_tables_def(void **state)
{
	for (unsigned i = 0; i < HR_TABLE_END; i++) {
		check_columns(i, false);
		check_columns(i, true);
	}
	check_columns(HR_TABLE_BUSY, true);
	check_columns(HR_TABLE_DURING, true);
}

static void tables_are_all_there_is(void **state)
{
	char count[16];

	snprintf(count, sizeof(count), "%u\n", (unsigned)HR_TABLE_END);
	fixture_expect(&fix, "SELECT count(*) FROM duckdb_views() WHERE NOT internal", count);
}

/* A column whose name is a reserved word could only be asked for in quotes. */
static void no_name_needs_quotes(void **state)
{
	fixture_expect(
	    &fix,
	    "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND "
	    "column_name IN (SELECT keyword_name FROM duckdb_keywords() WHERE "
	    "keyword_category = 'reserved')",
	    "");
	for (unsigned i = 0; i < HR_TABLE_END; i++) {
		char *sql, *names = columns_of(i, false, true);

		assert_true(
		    asprintf(&sql, "SELECT %s 0 FROM %s t LIMIT 0", names, hr_tables[i].name) > 0);
		fixture_expect(&fix, sql, "");
		free(names);
		free(sql);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tables_have_the_columns_of_tables_def),
	    cmocka_unit_test(tables_are_all_there_is),
	    cmocka_unit_test(no_name_needs_quotes),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
