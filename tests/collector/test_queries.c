/* SPDX-License-Identifier: Apache-2.0 */
/* test_queries.c - queries of clients in real child processes: who sees what, who waits, and what happens when one does harm */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "collector/stream_state.h"
#include "tests/collector/asker.h"
#include "tests/query/fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED  true
#define MANY	   2000000 /* rows; bytes of "n" and the numbers below, in lines */
#define MANY_BYTES 16888893
#else
#define SANITIZED  false
#define MANY	   20000000
#define MANY_BYTES 188888893
#endif

#define ENDLESS "SELECT count(*) FROM range(100000000000000) t WHERE range % 7 = 8"
/* Some tenths of a second. */
#define STEADY	      "SELECT count(*) AS n FROM range(40000000) t WHERE range % 3 = 1"
#define STEADY_ANSWER "n\r\n13333333\r\n"

#define TEXT(n)	 TEXT_(n)
#define TEXT_(n) #n

static char *store, spill[] = "/tmp/headrace-queries-XXXXXX", spill_option[64];
static struct server server;

/* Job 7 is of user 1000 by its JobEvents, job 8 of 1001 by the collector's word. */
static int setup(void **state)
{
	struct hr_stream_state of = {.uid_known = true, .uid = 1001, .connected = true};
	char pattern[128];
	glob_t found;
	int fd;

	(void)state;
	store = fixture_make();
	snprintf(pattern, sizeof(pattern), "%s/jobs/8/*", store);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	fd = open(found.gl_pathv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(hr_stream_state_write(fd, &of, false), 0);
	close(fd);
	globfree(&found);
	assert_non_null(mkdtemp(spill));
	snprintf(spill_option, sizeof(spill_option), "spill=%s", spill);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(rmdir(spill), 0); /* nothing is left in it */
	fixture_remove(store);
	return 0;
}

static void start(const char *first, const char *second)
{
	const char *const options[] = {
	    spill_option, "memory=536870912", "per_caller=8", "time=600000", first, second, NULL};

	server_start(&server, store, options);
}

static int start_usual(void **state)
{
	(void)state;
	start(NULL, NULL);
	return 0;
}

static int stop_usual(void **state)
{
	(void)state;
	server_stop(&server);
	return 0;
}

#define SAID(asker, text)                                                                          \
	do {                                                                                       \
		if (strstr((asker)->notes, text) == NULL)                                          \
			fail_msg("'%s' is not in: %s", text, (asker)->notes);                      \
	} while (0)

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

	(void)state;
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

	(void)state;
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
	assert_string_equal(a.notes, "no job '7' in this collector's store; there is: 8\n");
	asker_close(&a);
}

static void who_is_not_known_gets_no_answer(void **state)
{
	struct asker a;

	(void)state;
	asker_open(&a, &server, "-");
	assert_int_equal(asker_ask(&a, "SELECT 1"), 1);
	SAID(&a, "does not know who is asking");
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

	(void)state;
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

	(void)state;
	asker_open(&a, &server, "");
	assert_int_equal(asker_ask(&a, "nosuch"), 2);
	SAID(&a, "is no named query");
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

/* More than the collector allows may be asked for, and is not given. */
static void limits_cannot_be_passed(void **state)
{
	static const char sql[] =
	    "SELECT current_setting('threads') AS t, current_setting('memory_limit') AS m";
	struct asker a;

	(void)state;
	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = sql, .threads = 99, .memory_bytes = 1ull << 40});
	assert_int_equal(asker_wait(&a), 0);
	assert_string_equal(a.out, "t,m\r\n2,512.0 MiB\r\n");
	asker_send(&a, &(struct question){.sql = sql, .threads = 1, .memory_bytes = 256 << 20});
	assert_int_equal(asker_wait(&a), 0);
	assert_string_equal(a.out, "t,m\r\n1,256.0 MiB\r\n");
	asker_close(&a);
}

/* ---- harm ------------------------------------------------------------------------------------------ */

/* A text of `n` times `open`, `middle`, and `n` times `close`. */
static char *nested(unsigned n, const char *open, const char *middle, const char *close)
{
	char *text;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	fputs("SELECT ", to);
	for (unsigned i = 0; i < n; i++)
		fputs(open, to);
	fputs(middle, to);
	for (unsigned i = 0; i < n; i++)
		fputs(close, to);
	fclose(to);
	return text;
}

/* Each fails, with words; a query beside it is answered right. */
static void harm_is_contained(void **state)
{
	struct {
		char *sql;
		const char *said;
	} cases[] = {
	    {strdup("SELECT length(string_agg(repeat(a.range::VARCHAR, 1000), '')) "
		    "FROM range(100000000) a"),
	     "emory"},
	    {strdup("SELECT list(a.range) FROM range(1000000000) a"), "" /* or of time */},
	    {strdup("SELECT len(range(1000000000))"), "emory"},
	    {strdup("SELECT a.range, b.range FROM range(100000) a, range(100000) b "
		    "ORDER BY hash(a.range, b.range)"),
	     "" /* out of memory, or of room to spill, or of time */},
	    {strdup("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
		    "SELECT count(*) FROM t"),
	     "time limit"},
	    {strdup(ENDLESS), "its time limit of 3.00 s was over"},
	    {nested(900, "[", "1", "]"), ""}, /* all memory, and then the engine fails: SIGSEGV */
	    {nested(20000, "NOT ", "true", ""), "memory exhausted"},
	    {nested(30000, "1 + ", "1", ""), "depth"},
	    {nested(100000, "(", "1", ")"), ""},
	    {nested(5000, "CASE WHEN 1 = 1 THEN ", "1", " END"), ""},
	};
	struct asker bad, good;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		asker_open(&good, &server, "1000");
		asker_open(&bad, &server, "1001");
		asker_send(&good, &(struct question){.sql = STEADY, .threads = 1});
		asker_send(&bad, &(struct question){.sql = cases[i].sql, .time_ms = 3000});
		/* Where memory is not limited (a sanitizer) it is time that ends it. */
		if (asker_wait(&bad) != 1 ||
		    (strstr(bad.notes, cases[i].said) == NULL &&
		     !(SANITIZED && strstr(bad.notes, "time limit") != NULL)))
			fail_msg("%.60s: %d %s", cases[i].sql, bad.status, bad.notes);
		assert_int_equal(asker_wait(&good), 0);
		assert_string_equal(good.out, STEADY_ANSWER);
		asker_close(&bad);
		asker_close(&good);
		free(cases[i].sql);
	}
}

static void a_process_that_dies_harms_no_other(void **state)
{
	static const struct {
		int signal;
		const char *said;
	} cases[] = {{SIGSEGV, "ended by SIGSEGV: the engine failed"},
		     {SIGABRT, "ended by SIGABRT"},
		     {SIGKILL, "ended by SIGKILL: the machine had no memory"},
		     {SIGXCPU, "ended by SIGXCPU: it had used up its processor time"}};
	struct asker bad, good;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		asker_open(&bad, &server, "");
		asker_open(&good, &server, "");
		asker_send(&bad, &(struct question){.sql = ENDLESS});
		while (bad.progress == 0) /* it runs */
			assert_true(asker_step(&bad));
		asker_send(&good, &(struct question){.sql = STEADY});
		assert_int_equal(kill(server_child(&server, 0), cases[i].signal), 0);
		assert_int_equal(asker_wait(&bad), 1);
		if (!SANITIZED || cases[i].signal == SIGKILL) /* a sanitizer makes an exit of it */
			SAID(&bad, cases[i].said);
		assert_int_equal(asker_wait(&good), 0);
		assert_string_equal(good.out, STEADY_ANSWER);
		assert_int_equal(asker_ask(&bad, "SELECT 1 AS n"), 0); /* the same connection */
		asker_close(&bad);
		asker_close(&good);
	}
}

/* ---- turns, ends ----------------------------------------------------------------------------------- */

static void the_third_of_two_waits(void **state)
{
	struct asker a, b, c;

	(void)state;
	start("at_once=2", NULL);
	asker_open(&a, &server, "1000");
	asker_open(&b, &server, "1000");
	asker_open(&c, &server, "1001");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	asker_send(&b, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 1);
	asker_send(&c, &(struct question){.sql = STEADY});
	while (c.waiting[0] == '\0')
		assert_true(asker_step(&c));
	assert_string_equal(c.waiting, "waiting: 2 queries are running");
	assert_int_equal(server_children(&server), 2);
	asker_cancel(&a);
	assert_int_equal(asker_wait(&a), 130);
	assert_string_equal(a.notes, "interrupted\n");
	assert_int_equal(asker_wait(&c), 0);
	assert_string_equal(c.out, STEADY_ANSWER);
	/* One that waits can be cancelled, too. */
	asker_send(&a, &(struct question){.sql = ENDLESS});
	asker_send(&c, &(struct question){.sql = STEADY});
	while (c.waiting[0] == '\0')
		assert_true(asker_step(&c));
	asker_cancel(&c);
	assert_int_equal(asker_wait(&c), 130);
	asker_close(&a);
	asker_close(&b);
	asker_close(&c);
	server_stop(&server);
}

/* One user has two of three places, and five queries in line: another's comes next. */
static void a_flood_holds_nobody_up(void **state)
{
	struct asker flood[7], other;

	(void)state;
	start("at_once=3", NULL);
	for (unsigned i = 0; i < 7; i++) {
		asker_open(&flood[i], &server, "1000");
		asker_send(&flood[i], &(struct question){.sql = ENDLESS});
		if (i < 2)
			(void)server_child(&server, i);
	}
	while (flood[6].waiting[0] == '\0')
		assert_true(asker_step(&flood[6]));
	assert_int_equal(server_children(&server), 2);
	for (unsigned i = 0; i < 3; i++) {
		asker_open(&other, &server, "1001");
		asker_send(&other, &(struct question){.sql = STEADY});
		assert_int_equal(asker_wait(&other), 0);
		assert_string_equal(other.out, STEADY_ANSWER);
		asker_close(&other);
	}
	for (unsigned i = 0; i < 7; i++)
		asker_close(&flood[i]);
	server_stop(&server);
}

static void one_caller_has_so_many(void **state)
{
	struct asker a, b;

	(void)state;
	start("per_caller=1", NULL);
	asker_open(&a, &server, "1000");
	asker_open(&b, &server, "1000");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 0);
	assert_int_equal(asker_ask(&b, "SELECT 1"), 1);
	SAID(&b, "too many queries of yours");
	asker_close(&b);
	asker_open(&b, &server, "1001");
	assert_int_equal(asker_ask(&b, "SELECT 1 AS n"), 0);
	asker_close(&a);
	asker_close(&b);
	server_stop(&server);
}

static void wait_for_no_child(void)
{
	for (unsigned i = 0; server_children(&server) > 0; i++) {
		assert_true(i < 1000);
		usleep(10000);
	}
}

static void a_client_that_goes_takes_its_process_along(void **state)
{
	struct asker a;

	(void)state;
	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 0);
	asker_close(&a);
	wait_for_no_child();
}

/* Whenever a process is met by its end: before it runs, before it has its order, in the middle. */
static void an_end_at_any_time_is_an_end(void **state)
{
	struct asker a;

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		asker_open(&a, &server, "");
		asker_send(&a, &(struct question){.sql = ENDLESS});
		usleep(i * 3000);
		asker_cancel(&a);
		assert_int_equal(asker_wait(&a), 130);
		assert_string_equal(a.notes, "interrupted\n");
		asker_send(&a, &(struct question){.sql = ENDLESS});
		usleep(i * 3000);
		asker_close(&a);
	}
	wait_for_no_child();
}

static void a_server_that_stops_leaves_no_process(void **state)
{
	struct asker a;

	(void)state;
	start(NULL, NULL);
	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 0);
	server_stop(&server); /* fails unless the process is gone and waited for */
	asker_close(&a);
}

static void a_server_that_is_killed_leaves_no_process(void **state)
{
	struct server again;
	struct asker a;
	pid_t child;

	(void)state;
	start(NULL, NULL);
	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	child = server_child(&server, 0);
	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	for (unsigned i = 0; kill(child, 0) == 0; i++) {
		assert_true(i < 1000);
		usleep(10000);
	}
	close(server.input);
	asker_close(&a);
	unlink(server.socket);
	/* Its folder is removed by the next one. */
	server_start(&again, store, (const char *const[]){spill_option, NULL});
	server_stop(&again);
}

static long resident_kib(pid_t pid)
{
	char path[64], line[128];
	long kib = 0;
	FILE *from;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	from = fopen(path, "re");
	assert_non_null(from);
	while (fgets(line, sizeof(line), from) != NULL)
		(void)sscanf(line, "VmRSS: %ld", &kib);
	fclose(from);
	return kib;
}

/* The answer stays in the child's pipe; then all of it comes. */
static void a_client_that_does_not_read_costs_nothing(void **state)
{
	struct asker a;
	long before;

	(void)state;
	asker_open(&a, &server, "");
	assert_int_equal(asker_ask(&a, "SELECT 1 AS n"), 0);
	before = resident_kib(server.pid);
	asker_send(&a, &(struct question){.sql = "SELECT range AS n FROM range(" TEXT(MANY) ")"});
	sleep(2);
	assert_true(resident_kib(server.pid) - before < 8 << 10);
	assert_int_equal(asker_wait(&a), 0);
	assert_int_equal(a.n, MANY_BYTES);
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

	(void)state;
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
	wait_for_no_child();
}

int main(void)
{
#define USUAL(f) cmocka_unit_test_setup_teardown(f, start_usual, stop_usual)
	const struct CMUnitTest tests[] = {
	    USUAL(users_see_their_jobs_only),
	    USUAL(others_jobs_do_not_show),
	    USUAL(who_is_not_known_gets_no_answer),
	    USUAL(bad_statements_are_refused),
	    USUAL(odd_questions_are_answered_with_reasons),
	    USUAL(limits_cannot_be_passed),
	    USUAL(harm_is_contained),
	    USUAL(a_process_that_dies_harms_no_other),
	    cmocka_unit_test(the_third_of_two_waits),
	    cmocka_unit_test(a_flood_holds_nobody_up),
	    cmocka_unit_test(one_caller_has_so_many),
	    USUAL(a_client_that_goes_takes_its_process_along),
	    USUAL(an_end_at_any_time_is_an_end),
	    cmocka_unit_test(a_server_that_stops_leaves_no_process),
	    cmocka_unit_test(a_server_that_is_killed_leaves_no_process),
	    USUAL(a_client_that_does_not_read_costs_nothing),
	    USUAL(the_process_has_given_up_what_it_can),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
