/* SPDX-License-Identifier: Apache-2.0 */
/* test_output.c - values of every type, and the three formats */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/duckdb/output.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

static void expect_style(enum hr_output_format format, unsigned width,
			 const struct hr_output_style *style, const char *sql, const char *expected)
{
	char *text, *error = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);
	struct hr_query_sink sink;
	struct hr_output *out;

	assert_int_equal(hr_output_new(format, file, width, style, &out), 0);
	sink = hr_output_sink(out);
	if (hr_query_run(fix.q, sql, NULL, 0, &sink, &error) < 0)
		fail_msg("%s: %s", sql, error);
	hr_output_free(out);
	fclose(file);
	if (strcmp(text, expected) != 0)
		fail_msg("%s\n--- is\n%s--- should be\n%s---", sql, text, expected);
	free(text);
}

static void expect(enum hr_output_format format, unsigned width, const char *sql,
		   const char *expected)
{
	expect_style(format, width, &(const struct hr_output_style){0}, sql, expected);
}

static void scalars_are_printed(void **state)
{
	static const char *const cases[][2] = {
	    {"true", "true"},
	    {"(-128)::TINYINT", "-128"},
	    {"65535::USMALLINT", "65535"},
	    {"18446744073709551615::UBIGINT", "18446744073709551615"},
	    {"(-9223372036854775807 - 1)::BIGINT", "-9223372036854775808"},
	    {"-170141183460469231731687303715884105727",
	     "-170141183460469231731687303715884105727"},
	    {"340282366920938463463374607431768211455::UHUGEINT",
	     "340282366920938463463374607431768211455"},
	    {"0.1::DOUBLE", "0.1"},
	    {"0.1::FLOAT", "0.1"},
	    {"(1/3)::DOUBLE", "0.3333333333333333"},
	    {"1e300::DOUBLE", "1e+300"},
	    {"1.05e-6::DOUBLE", "0.00000105"},
	    {"-2e-9::DOUBLE", "-0.000000002"},
	    {"1e-20::DOUBLE", "1e-20"},
	    {"'nan'::DOUBLE", "nan"},
	    {"12.50::DECIMAL(6,2)", "12.50"},
	    {"(-0.05)::DECIMAL(6,2)", "-0.05"},
	    {"0::DECIMAL(38,3)", "0.000"},
	    {"DATE '2024-02-29'", "2024-02-29"},
	    {"DATE '1969-12-31'", "1969-12-31"},
	    {"TIMESTAMP '2023-11-14 22:13:20.000001'", "2023-11-14 22:13:20.000001"},
	    {"TIMESTAMP '1969-12-31 23:59:59.5'", "1969-12-31 23:59:59.500000"},
	    {"make_timestamp_ns(1700000000000000001)", "2023-11-14 22:13:20.000000001"},
	    {"'infinity'::DATE", "infinity"},
	    {"'-infinity'::DATE", "-infinity"},
	    {"'infinity'::TIMESTAMP", "infinity"},
	    {"'-infinity'::TIMESTAMP", "-infinity"},
	    {"'infinity'::TIMESTAMP_NS", "infinity"},
	    {"DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"},
	    {"DATE '0001-01-01'", "0001-01-01"},
	    {"DATE '0001-12-31 (BC)'", "0001-12-31 (BC)"},
	    {"TIME '01:02:03'", "01:02:03"},
	    {"INTERVAL 26 HOURS", "26:00:00"},
	    {"'\\xAA\\x0A'::BLOB", "\\xAA\\x0A"},
	    {"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID",
	     "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	    {"'b'::ENUM('a','b')", "b"},
	    {"[1, NULL, 3]", "\"[1, null, 3]\""},
	    {"['a,b', 'c', 'say \"hi\"']",
	     "\"[\"\"a,b\"\", \"\"c\"\", \"\"say \\\"\"hi\\\"\"\"\"]\""},
	    {"array_value(1, 2)", "\"[1, 2]\""},
	    {"{'a': 1, 'b': ['x']}", "\"{\"\"a\"\": 1, \"\"b\"\": [\"\"x\"\"]}\""},
	    {"NULL", ""},
	    {"''", "\"\""},
	    {"'twelve bytes'", "twelve bytes"},
	    {"'thirteen bytes'", "thirteen bytes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *sql, *line;

		assert_true(asprintf(&sql, "SELECT %s AS x", cases[i][0]) > 0);
		assert_true(asprintf(&line, "x\r\n%s\r\n", cases[i][1]) > 0);
		expect(HR_OUTPUT_CSV, 0, sql, line);
		free(line);
		free(sql);
	}
}

static void csv_is_quoted_as_rfc_4180_says(void **state)
{
	expect(HR_OUTPUT_CSV, 0,
	       "SELECT 'a,b' AS \"x,y\", 'say \"hi\"' AS b, 'two' || chr(10) || 'lines' AS c",
	       "\"x,y\",b,c\r\n\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\"\r\n");
}

static void json_is_an_array_of_objects(void **state)
{
	expect(
	    HR_OUTPUT_JSON, 0,
	    "SELECT 1 AS n, 'a\"\\' || chr(9) AS t, NULL AS z, 'nan'::DOUBLE AS d, [true] AS l, "
	    "DATE '2024-01-01' AS day, {'k': 0.5} AS s",
	    "[\n{\"n\": 1, \"t\": \"a\\\"\\\\\\u0009\", \"z\": null, \"d\": null, \"l\": [true], "
	    "\"day\": \"2024-01-01\", \"s\": {\"k\": 0.5}}\n]\n");
	/* What is JSON already stays it, inside of others, too. */
	expect(
	    HR_OUTPUT_JSON, 0,
	    "SELECT '{\"a\": [1, \"x\"]}'::JSON AS j, NULL::JSON AS z, ['1'::JSON] AS l, '{}' AS t",
	    "[\n{\"j\": {\"a\": [1, \"x\"]}, \"z\": null, \"l\": [1], \"t\": \"{}\"}\n]\n");
	expect(HR_OUTPUT_CSV, 0, "SELECT '{\"a\": 1}'::JSON AS j", "j\r\n\"{\"\"a\"\": 1}\"\r\n");
	expect(HR_OUTPUT_JSON, 0, "SELECT 1 AS n LIMIT 0", "[]\n");
	expect(HR_OUTPUT_JSON, 0, "SELECT 1 AS n, 2 AS n, 3 AS n_1, 4 AS n",
	       "[\n{\"n\": 1, \"n_2\": 2, \"n_1\": 3, \"n_3\": 4}\n]\n");
	expect(HR_OUTPUT_JSON, 0, "SELECT range AS n FROM range(3) ORDER BY n",
	       "[\n{\"n\": 0},\n{\"n\": 1},\n{\"n\": 2}\n]\n");
}

static void tables_are_aligned(void **state)
{
	expect(HR_OUTPUT_TABLE, 0,
	       "SELECT * FROM (VALUES ('a', 1, NULL), ('\u00e4\u00f6', 1000, 'x' || chr(27))) "
	       "t(name, n, note)",
	       "name     n  note\n"
	       "----  ----  -----\n"
	       "a        1  NULL\n"
	       "\u00e4\u00f6    1000  x\\x1B\n");
	expect(HR_OUTPUT_TABLE, 0, "SELECT 1 AS n LIMIT 0", "n\n-\n(no rows)\n");
}

/* What EXPLAIN answers: a text of several lines, below a name of no use. */
static void plans_are_printed_as_they_are(void **state)
{
	static const char sql[] = "SELECT 'physical_plan' AS explain_key, "
				  "'two' || chr(10) || 'lines' || chr(10) AS explain_value";

	expect(HR_OUTPUT_TABLE, 10, sql, "two\nlines\n");
	expect(HR_OUTPUT_LIST, 10, sql, "two\nlines\n");
	expect(HR_OUTPUT_CSV, 0, sql,
	       "explain_key,explain_value\r\nphysical_plan,\"two\nlines\n\"\r\n");
}

/* What people read; JSON and CSV have every digit. */
static void tables_have_human_precision(void **state)
{
	static const char *const cases[][2] = {
	    {"0.123456789", "0.123"},
	    {"12.3456", "12.3"},
	    {"99.96", "100"},
	    {"1234567.891", "1234568"},
	    {"0.00000105", "0.00000105"},
	    {"0.5", "0.5"},
	    {"100", "100"},
	    {"-0.0001299", "-0.00013"},
	    {"0", "0"},
	    {"1e-20", "1e-20"},
	    {"2e18", "2e+18"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *sql, *table;
		int width = (int)strlen(cases[i][1]);

		assert_true(asprintf(&sql, "SELECT %s::DOUBLE AS x", cases[i][0]) > 0);
		assert_true(asprintf(&table, "%*s\n%.*s\n%s\n", width, "x", width, "------------",
				     cases[i][1]) > 0);
		expect(HR_OUTPUT_TABLE, 0, sql, table);
		free(table);
		free(sql);
	}
	expect(HR_OUTPUT_TABLE, 0, "SELECT make_timestamp_ns(1700000000123456789) AS t",
	       "t\n-----------------------\n2023-11-14 22:13:20.123\n");
}

/* Of more rows than may become a list: the same one six times. */
static void tables_fit_the_terminal(void **state)
{
#define SIX(row) row row row row row row
#define FROM_SIX " FROM range(6)"
	static const char sql[] = "SELECT '/a/very/long/path/to/a/file' AS path, "
				  "'a rather long text' AS t, 12345 AS n, 678 AS m" FROM_SIX;

	expect(HR_OUTPUT_TABLE, 60, sql,
	       "path                         t                       n    m\n"
	       "---------------------------  ------------------  -----  ---\n" SIX(
		   "/a/very/long/path/to/a/file  a rather long text  12345  678\n"));
	expect(HR_OUTPUT_TABLE, 40, sql,
	       "path           t                  n    m\n"
	       "-------------  -------------  -----  ---\n" SIX(
		   "/a/.../a/file  a rather l...  12345  678\n"));
	expect(HR_OUTPUT_TABLE, 25, sql,
	       "path      t             n\n"
	       "--------  --------  -----\n" SIX(
		   ".../file  a rat...  12345\n") "(no room for m: a wider terminal or --format "
						  "list shows them)\n");
	expect(HR_OUTPUT_TABLE, 5, "SELECT 12345678 AS n, 1 AS m" FROM_SIX,
	       "       n\n--------\n" SIX(
		   "12345678\n") "(no room for m: a wider terminal or --format list shows them)\n");
	/* A Chinese character takes two cells. */
	expect(HR_OUTPUT_TABLE, 0, "SELECT '\u6570\u636e' AS t, 1 AS n UNION ALL SELECT 'ab', 22",
	       "t      n\n----  --\n\u6570\u636e   1\nab    22\n");
	expect(HR_OUTPUT_TABLE, 15, "SELECT repeat('\u6570', 8) AS t, 12345 AS n" FROM_SIX,
	       "t             n\n--------  -----\n" SIX("\u6570\u6570...   12345\n"));
}

/* The first 1,000 rows determine the widths. No cell of a later row is cut to another number. */
static void later_rows_are_cut(void **state)
{
	char *text;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	fputs("t    i\n-  ---\n", file);
	for (unsigned i = 0; i < 1000; i++)
		fprintf(file, "a  %3u\n", i);
	fputs(".  ...\n", file);
	fclose(file);
	expect(HR_OUTPUT_TABLE, 40,
	       "SELECT CASE WHEN i < 1000 THEN 'a' ELSE 'abcdef' END AS t, i FROM range(1001) r(i)"
	       " ORDER BY i",
	       text);
	free(text);
}

static void lists_have_a_line_for_each_cell(void **state)
{
	static const char sql[] =
	    "SELECT n::DOUBLE / 3 AS third, 'a' || chr(10) AS \"\u00fcber\", NULL AS z "
	    "FROM range(2) t(n) ORDER BY n";
	char *text;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	expect(HR_OUTPUT_LIST, 0, "SELECT 1.23456::DOUBLE AS seconds, '/a' AS path",
	       "seconds  1.23\npath     /a\n");
	expect(HR_OUTPUT_LIST, 0, "SELECT 1 AS n LIMIT 0", "(no rows)\n");
	/* Each row but the first below a rule, also beyond those that decide a table's widths. */
	for (unsigned i = 0; i < 1100; i++)
		fprintf(file, "%sn  %u\n", i > 0 ? "-------------------\n" : "", i);
	fclose(file);
	expect(HR_OUTPUT_LIST, 20, "SELECT range AS n FROM range(1100) ORDER BY n", text);
	free(text);
	/* By itself where a table of so few rows would be cut. */
	expect(HR_OUTPUT_TABLE, 17, sql,
	       "third  0\n\u00fcber   a\\x0A\nz      NULL\n-----------------------\n"
	       "third  0.333\n\u00fcber   a\\x0A\nz      NULL\n");
	expect(HR_OUTPUT_TABLE, 18, sql,
	       "third  \u00fcber      z\n-----  -----  ----\n    0  a\\x0A  NULL\n0.333  a\\x0A  "
	       "NULL\n");
}

static void text_wraps_below_its_label(void **state)
{
	char line[400];

	expect(HR_OUTPUT_TEXT, 0, "SELECT unnest(['one two', '', 'a' || chr(27)]), 2",
	       "one two\n\na\\x1B\n");
	expect(HR_OUTPUT_TEXT, 20, "SELECT '  do:  read larger blocks of it'",
	       "  do:  read larger\n       blocks of it\n");
	expect(HR_OUTPUT_TEXT, 9, "SELECT 'one two three four'", "one two\nthree\nfour\n");
	expect(HR_OUTPUT_TEXT, 9, "SELECT 'a averylongword b'", "a\naverylongword\nb\n");
	expect_style(HR_OUTPUT_TEXT, 0, &(const struct hr_output_style){.lines = 2},
		     "SELECT 'line ' || range FROM range(5) ORDER BY range",
		     "line 0\nline 1\n(3 more lines, of other jobs: --job JOB)\n");
	memset(line, 'x', 300);
	memcpy(line + 300, "\n", 2);
	expect(HR_OUTPUT_TEXT, 0, "SELECT repeat('x', 300)", line);
	expect(HR_OUTPUT_TEXT, 40, "SELECT repeat('x', 300)", line);
}

static const struct hr_output_style units = {.cells = {.units = true, .folder = "/home/a"}};

/* A cell of a named query: the name of its column determines its unit. */
static void names_determine_units(void **state)
{
	static const struct {
		const char *value, *name, *title, *cell;
	} cases[] = {
	    {"0.0354::DOUBLE", "wait_s", "wait", "35.4 ms"},
	    {"0::DOUBLE", "wait_s", "wait", "0 s"},
	    {"-2.5::DOUBLE", "gain_s", "gain", "-2.50 s"},
	    {"3720::DOUBLE", "seconds", "seconds", "1 h 02 min"},
	    {"1e11::DOUBLE", "wait_s", "wait", "100000000000"},
	    {"'nan'::DOUBLE", "wait_s", "wait", "nan"},
	    {"12.345678::DECIMAL(19, 6)", "time_s", "time", "12.345 s"},
	    {"-0.000001::DECIMAL(19, 9)", "time_s", "time", "-0.000001 s"},
	    {"1536", "bytes_read", "bytes_read", "1.50 KiB"},
	    {"18446744073709551616::HUGEINT", "to_bytes", "to_bytes", "18446744073709551616"},
	    {"1048576::DOUBLE", "io_bytes_per_s", "io_bytes/s", "1.00 MiB/s"},
	    {"59.44::DOUBLE", "wait_percent", "wait %", "59.4 %"},
	    {"0.04::DOUBLE", "percent", "percent", "<0.1 %"},
	    {"0::DOUBLE", "percent", "percent", "0.0 %"},
	    {"99.99::DOUBLE", "recorded_percent", "recorded %", ">99.9 %"},
	    {"100::DOUBLE", "recorded_percent", "recorded %", "100.0 %"},
	    {"9007199254740993", "ops", "ops", "9,007,199,254,740,993"},
	    {"-1234", "ops", "ops", "-1,234"},
	    {"1234", "rank", "rank", "1234"},
	    {"25551", "pid", "pid", "25551"},
	    {"1.2345::DOUBLE", "speedup", "speedup", "1.23"},
	    {"NULL::DOUBLE", "wait_s", "wait", "-"},
	    {"NULL::VARCHAR", "path", "path", "-"},
	    {"'/home/a/b'", "path", "path", "b"},
	    {"'/home/ab'", "path", "path", "/home/ab"},
	    {"'/home/a'", "path", "path", "/home/a"},
	    {"'/home/a/b'", "name", "name", "/home/a/b"},
	    {"'/home/a/' || chr(27) || '[2J'", "path", "path", "\\x1B[2J"},
	    {"TIMESTAMP '2023-11-14 22:13:20.5'", "start", "start", "2023-11-14 22:13:20"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t title = strlen(cases[i].title), cell = strlen(cases[i].cell);
		int width = (int)(title > cell ? title : cell);
		char *sql, *right, *left, *text;
		size_t bytes;
		FILE *file = open_memstream(&text, &bytes);
		struct hr_query_sink sink;
		struct hr_output *out;

		assert_true(asprintf(&sql, "SELECT %s AS %s", cases[i].value, cases[i].name) > 0);
		assert_true(asprintf(&right, "%*s\n%.*s\n%*s\n", width, cases[i].title, width,
				     "------------------------------", width, cases[i].cell) > 0);
		assert_true(asprintf(&left, "%s\n%.*s\n%s\n", cases[i].title, width,
				     "------------------------------", cases[i].cell) > 0);
		assert_int_equal(hr_output_new(HR_OUTPUT_TABLE, file, 0, &units, &out), 0);
		sink = hr_output_sink(out);
		assert_int_equal(hr_query_run(fix.q, sql, NULL, 0, &sink, NULL), 0);
		hr_output_free(out);
		fclose(file);
		if (strcmp(text, right) != 0 && strcmp(text, left) != 0)
			fail_msg("%s\n--- is\n%s--- should be\n%s---", sql, text, left);
		free(text);
		free(left);
		free(right);
		free(sql);
	}
}

/* The last columns have no room; a path is cut between names, also one that is not ASCII. */
static void named_tables_fit_the_terminal(void **state)
{
	static const struct hr_output_style named = {
	    .cells = {.units = true}, .named = true, .more = 2, .foot = "(3 more rows)\n"};
	static const char sql[] =
	    "SELECT '/data/\u00fcber/a/b/c/shard-001.npz' AS path, 12345 AS ops, 1 AS waits";

	expect_style(HR_OUTPUT_TABLE, 0, &named, sql,
		     "path                               ops  waits\n"
		     "------------------------------  ------  -----\n"
		     "/data/\u00fcber/a/b/c/shard-001.npz  12,345      1\n"
		     "(3 more rows)\n(2 more columns: --all-columns)\n");
	expect_style(HR_OUTPUT_TABLE, 42, &named, sql,
		     "path                            ops  waits\n"
		     "---------------------------  ------  -----\n"
		     "/data/.../b/c/shard-001.npz  12,345      1\n"
		     "(3 more rows)\n(2 more columns: --all-columns)\n");
	expect_style(HR_OUTPUT_TABLE, 20, &named, sql,
		     "path             ops\n"
		     "------------  ------\n"
		     "...d-001.npz  12,345\n"
		     "(3 more rows)\n(3 more columns: --all-columns)\n");
	expect_style(HR_OUTPUT_TABLE, 34, &named, "SELECT 1 AS n LIMIT 0",
		     "(no rows)\n(3 more rows)\n");
}

static void types_without_text_are_refused(void **state)
{
	char *text, *error = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);
	struct hr_query_sink sink;
	struct hr_output *out;

	assert_int_equal(hr_output_new(HR_OUTPUT_CSV, file, 0, NULL, &out), 0);
	sink = hr_output_sink(out);
	assert_int_equal(hr_query_run(fix.q, "SELECT '101'::BIT AS b", NULL, 0, &sink, &error),
			 -ENOTSUP);
	assert_string_equal(error, "cannot print the type of column b: cast it to VARCHAR");
	free(error);
	hr_output_free(out);
	fclose(file);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(scalars_are_printed),
	    cmocka_unit_test(csv_is_quoted_as_rfc_4180_says),
	    cmocka_unit_test(json_is_an_array_of_objects),
	    cmocka_unit_test(tables_are_aligned),
	    cmocka_unit_test(plans_are_printed_as_they_are),
	    cmocka_unit_test(tables_have_human_precision),
	    cmocka_unit_test(tables_fit_the_terminal),
	    cmocka_unit_test(later_rows_are_cut),
	    cmocka_unit_test(lists_have_a_line_for_each_cell),
	    cmocka_unit_test(text_wraps_below_its_label),
	    cmocka_unit_test(names_determine_units),
	    cmocka_unit_test(named_tables_fit_the_terminal),
	    cmocka_unit_test(types_without_text_are_refused),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
