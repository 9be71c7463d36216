/* SPDX-License-Identifier: Apache-2.0 */
/* test_queries.c - queries of clients in real child processes: who sees what, what may be asked, what the processes can do */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/collector/queries_rig.h"

/* ---- who sees what ------------------------------------------------------------------------------- */

static void users_see_their_jobs_only(void **state)
{
	static const struct {
		const char *who, *jobs;
	} cases[] = {{"", "job\r\n7\r\n8\r\n"},
		     {"1000", "job\r\n7\r\n"},
		     {"1001", "job\r\n8\r\n"},
		     {"1002", "job\r\n"}};
	struct asker a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		asker_open(&a, &server, cases[i].who);
		assert_int_equal(asker_ask(&a, "SELECT job FROM jobs ORDER BY job"), 0);
		assert_string_equal(a.out, cases[i].jobs);
		assert_int_equal(asker_ask(&a, "SELECT DISTINCT job FROM hr_nodes() ORDER BY job"),
				 0);
		assert_string_equal(a.out, cases[i].jobs);
		asker_close(&a);
	}
}

/* User 1001 tries to learn anything of job 7, node n2 or what is lost there. */
static void others_jobs_do_not_show(void **state)
{
	static const char *const attempts[] = {
	    "SELECT * FROM hr_events()",
	    "SELECT * FROM hr_processes()",
	    "SELECT * FROM hr_rollups()",
	    "SELECT * FROM hr_nodes()",
	    "SELECT * FROM hr_losses()",
	    "SELECT * FROM hr_kernel_records()",
	    "SELECT * FROM hr_files()",
	    "SELECT * FROM duckdb_views()",
	    "SELECT * FROM duckdb_tables()",
	    "SELECT * FROM duckdb_columns()",
	    "SELECT * FROM duckdb_functions() WHERE function_name LIKE 'hr%'",
	    "SELECT * FROM duckdb_settings() WHERE name <> 'temp_directory'",
	    "SELECT * FROM duckdb_databases()",
	    "SELECT * FROM duckdb_temporary_files()",
	    "EXPLAIN SELECT * FROM events WHERE job = '7'",
	    "EXPLAIN ANALYZE SELECT * FROM events WHERE job = '7'",
	    "SELECT error(job) FROM events",
	    "SELECT * FROM events WHERE path = 'n2'::INT",
	    "SUMMARIZE nodes",
	    "SUMMARIZE events",
	    "SELECT max(proc) FROM hr_events()",
	};
	struct asker a;

	asker_open(&a, &server, "1001");
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		(void)asker_ask(&a, attempts[i]);
		if (a.out == NULL)
			continue;
		if (strstr(a.out, "/data/train") != NULL || strstr(a.out, "python3") != NULL ||
		    strstr(a.out, "lustre") != NULL || strstr(a.notes, "ring_full") != NULL ||
		    strstr(a.notes, "job 7") != NULL || strstr(a.notes, "ada") != NULL)
			fail_msg("%s shows: %s %s", attempts[i], a.out, a.notes);
	}
	asker_send(&a, &(struct question){.sql = "SELECT 1", .job = "7"});
	assert_int_equal(asker_wait(&a), 66);
	assert_string_equal(a.notes, "no job '7' in this collector's store; it contains: 8\n");
	asker_close(&a);
}

static void who_is_not_known_gets_no_answer(void **state)
{
	struct asker a;

	asker_open(&a, &server, "-");
	assert_int_equal(asker_ask(&a, "SELECT 1"), 1);
	SAID(&a, "cannot identify you");
	assert_int_equal(server_children(&server), 0);
	asker_close(&a);
}

/* ---- what may be asked --------------------------------------------------------------------------- */

static const struct {
	const char *sql;
	const char *said;
} refused[] = {
    {"COPY events TO '/tmp/headrace-test-out.csv'", "Permission"},
    {"COPY (SELECT 1) TO '/dev/stderr'", "Permission"},
    {"EXPORT DATABASE '/tmp/headrace-test-out'", ""},
    {"INSERT INTO events VALUES (1)", "only SELECT"},
    {"ATTACH '/tmp/headrace-test.db'", "only SELECT"},
    {"CREATE TABLE t(i INT)", "only SELECT"},
    {"CREATE TEMP TABLE events(i INT)", "only SELECT"},
    {"CREATE TEMP VIEW events AS SELECT 1", "only SELECT"},
    {"CREATE OR REPLACE TEMP MACRO hr_events() AS TABLE SELECT 1", "only SELECT"},
    {"DROP VIEW events", "only SELECT"},
    {"SELECT * FROM read_csv('/etc/passwd')", "Permission"},
    {"SELECT * FROM read_text('/etc/passwd')", "Permission"},
    {"SELECT * FROM read_blob('/proc/self/environ')", "Permission"},
    {"SELECT * FROM glob('/etc/*')", "Permission"},
    {"SELECT * FROM '/etc/passwd'", ""},
    {"INSTALL httpfs", "only SELECT"},
    {"LOAD httpfs", "only SELECT"},
    {"SET threads = 64", "only SELECT"},
    {"SET enable_external_access = true", "only SELECT"},
    {"PRAGMA memory_limit='1TB'", "only SELECT"},
    {"CALL pragma_version()", "only SELECT"},
    {"BEGIN TRANSACTION", "only SELECT"},
    {"SELECT 1; SELECT 2", "one statement"},
    {"SELECT 1; DROP VIEW events", "one statement"},
    {"SELECT getenv('HOME')", ""},
    {"SELECT nosuch FROM events", "nosuch"},
};

static void bad_statements_are_refused(void **state)
{
	struct asker a;

	asker_open(&a, &server, "");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(asker_ask(&a, refused[i].sql), 1);
		if (a.n > 0 || strstr(a.notes, refused[i].said) == NULL)
			fail_msg("%s: %s", refused[i].sql, a.notes);
	}
	assert_int_equal(access("/tmp/headrace-test-out.csv", F_OK), -1);
	assert_int_equal(access("/tmp/headrace-test-out", F_OK), -1);
	assert_int_equal(access("/tmp/headrace-test.db", F_OK), -1);
	assert_int_equal(asker_ask(&a, "SELECT count(*) AS n FROM events"), 0);
	assert_string_equal(a.out, "n\r\n15\r\n");
	asker_close(&a);
}

static void odd_questions_are_answered_with_reasons(void **state)
{
	struct asker a;

	asker_open(&a, &server, "");
	assert_int_equal(asker_ask(&a, "nosuch"), 2);
	SAID(&a, "no query '");
	asker_send(&a, &(struct question){.sql = "SELECT 1", .format = "xml"});
	assert_int_equal(asker_wait(&a), 2);
	SAID(&a, "does not understand");
	asker_send(&a, &(struct question){.sql = "SELECT 7 AS n", .format = "parquet"});
	assert_int_equal(asker_wait(&a), 0);
	assert_true(a.n > 8);
	assert_memory_equal(a.out, "PAR1", 4);
	assert_memory_equal(a.out + a.n - 4, "PAR1", 4);
	asker_close(&a);
}

/* As on a full disk. */
static void a_folder_to_spill_that_cannot_be_made_is_no_obstacle(void **state)
{
	struct asker a;

	assert_int_equal(rmdir(rig_spill), 0);
	asker_open(&a, &server, "1000");
	assert_int_equal(asker_ask(&a, "SELECT 1 AS n"), 0);
	assert_string_equal(a.out, "n\r\n1\r\n");
	SAID(&a, "cannot create a folder for temporary files: No such file");
	asker_close(&a);
	assert_int_equal(mkdir(rig_spill, 0700), 0);
}

/* More than the collector allows may be asked for, and is not given. */
static void limits_cannot_be_passed(void **state)
{
	static const char sql[] =
	    "SELECT current_setting('threads') AS t, current_setting('memory_limit') AS m";
	struct asker a;

	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = sql, .threads = 99, .memory_bytes = 1ull << 40});
	assert_int_equal(asker_wait(&a), 0);
	assert_string_equal(a.out, "t,m\r\n2,512.0 MiB\r\n");
	asker_send(&a, &(struct question){.sql = sql, .threads = 1, .memory_bytes = 256 << 20});
	assert_int_equal(asker_wait(&a), 0);
	assert_string_equal(a.out, "t,m\r\n1,256.0 MiB\r\n");
	asker_close(&a);
}

/* ---- the process ----------------------------------------------------------------------------------- */

static char *proc_text(pid_t pid, const char *name)
{
	char path[64], *text = calloc(1, 16384);
	FILE *from;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	from = fopen(path, "re");
	assert_non_null(from);
	n = fread(text, 1, 16383, from);
	fclose(from);
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = '\n';
	return text;
}

static void has(pid_t pid, const char *file, const char *line)
{
	char *text = proc_text(pid, file);

	if (strstr(text, line) == NULL)
		fail_msg("%s does not say '%s': %s", file, line, text);
	free(text);
}

static void the_process_has_given_up_what_it_can(void **state)
{
	struct asker a;
	char *environment;
	pid_t child;

	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	while (a.progress == 0)
		assert_true(asker_step(&a));
	child = server_child(&server, 0);
	has(child, "oom_score_adj", "1000");
	has(child, "status", "NoNewPrivs:\t1");
	has(child, "limits", "Max open files            256                  256");
	has(child, "limits", "Max core file size        0                    0");
	has(child, "cmdline", "query-worker\n3\n");
	if (!SANITIZED)
		has(child, "status", "Seccomp:\t2");
	environment = proc_text(child, "environ");
	assert_null(strstr(environment, "PATH=/"));
	free(environment);
	asker_close(&a);
	rig_wait_for_no_child();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    USUAL(users_see_their_jobs_only),
	    USUAL(others_jobs_do_not_show),
	    USUAL(who_is_not_known_gets_no_answer),
	    USUAL(bad_statements_are_refused),
	    USUAL(odd_questions_are_answered_with_reasons),
	    USUAL(a_folder_to_spill_that_cannot_be_made_is_no_obstacle),
	    USUAL(limits_cannot_be_passed),
	    USUAL(the_process_has_given_up_what_it_can),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
