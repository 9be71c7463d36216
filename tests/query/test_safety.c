/* SPDX-License-Identifier: Apache-2.0 */
/* test_safety.c - a statement can read the bound tables and nothing else */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/query/fixture.h"
#include "tests/unit.h"

/* Each must fail, say something of the kind, and leave the next answer as it was. */
static const struct {
	const char *sql;
	int error;
	const char *said;
} refused[] = {
    {"CREATE TABLE t(i INT)", -EINVAL, "only SELECT"},
    {"CREATE VIEW v AS SELECT 1", -EINVAL, "only SELECT"},
    {"CREATE MACRO m() AS 1", -EINVAL, "only SELECT"},
    {"INSERT INTO events VALUES (1)", -EINVAL, "only SELECT"},
    {"DELETE FROM events", -EINVAL, "only SELECT"},
    {"-- why\n/* not */ update events SET op = 'x'", -EINVAL, "only SELECT"},
    {"DROP VIEW events", -EINVAL, "only SELECT"},
    {"COPY events TO '/tmp/headrace-test-out.csv'", -EBADMSG, "Permission"},
    {"COPY (SELECT 1) TO '/dev/null'", -EBADMSG, "Permission"},
    {"EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/headrace-test-out.csv'", -EBADMSG, "Permission"},
    {"EXPLAIN ANALYZE CREATE TABLE t(i INT)", -EINVAL, "only SELECT"},
    {"ATTACH '/tmp/headrace-test.db'", -EINVAL, "only SELECT"},
    {"INSTALL httpfs", -EINVAL, "only SELECT"},
    {"LOAD httpfs", -EINVAL, "only SELECT"},
    {"PRAGMA threads=1", -EINVAL, "only SELECT"},
    {"SET threads = 1", -EINVAL, "only SELECT"},
    {"SET enable_external_access = true", -EINVAL, "only SELECT"},
    {"RESET threads", -EINVAL, "only SELECT"},
    {"CALL pragma_version()", -EINVAL, "only SELECT"},
    {"BEGIN", -EINVAL, "only SELECT"},
    {"SELECT 1; SELECT 2", -EINVAL, "one statement"},
    {"SELECT 1; DROP VIEW events", -EINVAL, "one statement"},
    {"PIVOT events ON op USING count(*)", -EINVAL,
     "unless it lists its values: ON op IN ('read', 'write')"},
    {"", -EINVAL, "the SQL statement is empty"},
    {"-- nothing", -EINVAL, "the SQL statement is empty"},
    {"SELECT * FROM read_csv('/etc/passwd')", -EBADMSG, "Permission"},
    {"SELECT * FROM read_text('/etc/passwd')", -EBADMSG, "Permission"},
    {"SELECT * FROM '/etc/passwd'", -EBADMSG, ""},
    {"SELECT * FROM 'x.parquet'", -EBADMSG, ""},
    {"SELECT * FROM glob('/etc/*')", -EBADMSG, "Permission"},
    {"SELECT * FROM sniff_csv('/etc/passwd')", -EBADMSG, "Permission"},
    {"SELECT getenv('HOME')", -EBADMSG, ""},
    {"SELECT * FROM nosuch", -EBADMSG, "nosuch"},
    {"SELECT nosuch FROM events", -EBADMSG, "nosuch"},
    {"SELEC 1", -EBADMSG, "SELEC"},
    {"SELECT $1", -EINVAL, "$1"},
    {"SELECT $who", -EINVAL, "$who"},
};

static void bad_statements_are_refused(void **state)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char *said = fixture_refused(&fix, refused[i].sql, refused[i].error);

		if (strstr(said, refused[i].said) == NULL)
			fail_msg("%s: says %s", refused[i].sql, said);
		free(said);
		fixture_expect(&fix, "SELECT count(*) FROM events", "15\n");
	}
	assert_int_equal(access("/tmp/headrace-test-out.csv", F_OK), -1);
	assert_int_equal(access("/tmp/headrace-test.db", F_OK), -1);
}

static void reading_statements_are_allowed(void **state)
{
	static const char *const allowed[] = {
	    "DESCRIBE events",
	    "SHOW TABLES",
	    "SUMMARIZE losses",
	    "EXPLAIN SELECT count(*) FROM events",
	    "EXPLAIN ANALYZE SELECT count(*) FROM events",
	    "explain (analyze) select count(*) from events",
	    "EXPLAIN (FORMAT json) SELECT 1",
	    "EXPLAIN (SELECT 1)",
	    "-- why\nEXPLAIN/* so */ANALYZE/* it */WITH x AS (SELECT 1) FROM x",
	    "FROM events LIMIT 1",
	    "WITH x AS (SELECT * FROM events) SELECT count(*) FROM x -- why not",
	    "SELECT 1;",
	    "PIVOT events ON op IN ('read', 'write') USING count(*)",
	};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		free(fixture_ask(&fix, allowed[i]));
}

/* Advice that can be followed: settings are locked. */
static void memory_is_advised_by_option(void **state)
{
	struct hr_query_options o = {.threads = 1, .memory_bytes = 1 << 18};
	struct fixture f;
	char *said;

	fixture_open(&f, *state, &o);
	said = fixture_refused(&f, "SELECT * FROM events ORDER BY dur_ns", -EBADMSG);
	assert_non_null(strstr(said, "Out of Memory"));
	assert_non_null(strstr(said, ": use more --memory or fewer --threads"));
	assert_null(strstr(said, "SET "));
	free(said);
	fixture_close(&f);
}

static void only_the_named_file_is_written(void **state)
{
	static const char *const explains[] = {"",
					       "EXPLAIN ANALYZE",
					       "explain analyze",
					       "EXPLAIN (ANALYZE)",
					       "EXPLAIN (FORMAT json, ANALYZE)",
					       "EXPLAIN",
					       "/* a */ EXPLAIN/* b */ANALYZE -- c\n"};
	struct hr_query_options o = {.threads = 1, .parquet = "/tmp/headrace'test.parquet"};
	char sql[256];
	struct fixture f;
	char *error = NULL;

	fixture_open(&f, *state, &o);
	unlink(o.parquet);
	assert_int_equal(hr_query_parquet(f.q,
					  "SELECT op, count(*) AS n FROM events GROUP BY op -- x",
					  NULL, 0, "", &error),
			 0);
	fixture_expect(&f, "SELECT sum(n) FROM read_parquet('/tmp/headrace''test.parquet')",
		       "15\n");
	assert_int_equal(
	    hr_query_parquet(f.q, "SELECT 1) TO '/tmp/x' (FORMAT csv); --", NULL, 0, "", &error),
	    -EBADMSG);
	free(error);
	assert_int_equal(hr_query_parquet(f.q, "EXPLAIN SELECT 1", NULL, 0, "", &error), -EINVAL);
	free(error);
	free(fixture_refused(&f, "SELECT * FROM read_parquet('/tmp/other.parquet')", -EBADMSG));
	unlink(o.parquet);
	/* Nor is that one by a statement, however it is wrapped: an EXPLAIN ANALYZE runs what it explains. */
	for (size_t i = 0; i < sizeof(explains) / sizeof(explains[0]); i++) {
		snprintf(sql, sizeof(sql), "%s COPY (SELECT 1) TO '/tmp/headrace''test.parquet'",
			 explains[i]);
		free(fixture_refused(&f, sql, -EINVAL));
		assert_int_equal(access(o.parquet, F_OK), -1);
	}
	fixture_close(&f);
}

/* Rows are on their way already: what has come so far is not taken for the whole answer. */
static void a_late_error_is_reported(void **state)
{
	char *said;

	said = fixture_refused(&fix,
			       "SELECT (CASE n WHEN 900000 THEN 'x' ELSE (n % 10)::VARCHAR "
			       "END)::INTEGER FROM range(1000000) t(n)",
			       -EBADMSG);
	assert_non_null(strstr(said, "Conversion Error"));
	free(said);
	fixture_expect(&fix, "SELECT count(*) FROM events", "15\n");
}

static bool ended;

/* Again and again: a statement that has not begun ignores it. */
static void *interrupt_until_it_ends(void *arg)
{
	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		usleep(100000);
		hr_query_interrupt(arg);
	}
	return NULL;
}

static void a_long_query_can_be_interrupted(void **state)
{
	pthread_t thread;
	char *said;

	assert_int_equal(pthread_create(&thread, NULL, interrupt_until_it_ends, fix.q), 0);
	said = fixture_refused(&fix,
			       "SELECT count(*) FROM range(100000000) a, range(100000000) b "
			       "WHERE a.range * b.range % 7 = 3",
			       -EINTR);
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_string_equal(said, "interrupted");
	free(said);
	fixture_expect(&fix, "SELECT count(*) FROM events", "15\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bad_statements_are_refused),
	    cmocka_unit_test(reading_statements_are_allowed),
	    cmocka_unit_test(memory_is_advised_by_option),
	    cmocka_unit_test(only_the_named_file_is_written),
	    cmocka_unit_test(a_late_error_is_reported),
	    cmocka_unit_test(a_long_query_can_be_interrupted),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
