/* SPDX-License-Identifier: Apache-2.0 */
/* test_query_harm.c - queries of clients in real child processes: what happens when one does harm, who waits, how they end */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/collector/queries_rig.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY	   2000000 /* rows; bytes of "n" and the numbers below, in lines */
#define MANY_BYTES 16888893
#else
#define MANY	   20000000
#define MANY_BYTES 188888893
#endif

#define TEXT(n)	 TEXT_(n)
#define TEXT_(n) #n

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
	/* What is to end by memory has time for it on a busy machine; a sanitizer has no limit of memory. */
	enum { TIME_MS = 1000, ANY_MS = 1500, MEMORY_MS = SANITIZED ? 1500 : 200000 };
	struct {
		char *sql;
		const char *said;
		uint32_t time_ms;
	} cases[] = {
	    {strdup("SELECT length(string_agg(repeat(a.range::VARCHAR, 1000), '')) "
		    "FROM range(100000000) a"),
	     "emory", MEMORY_MS},
	    {strdup("SELECT list(a.range) FROM range(1000000000) a"), "" /* or of time */, TIME_MS},
	    {strdup("SELECT len(range(1000000000))"), "emory", MEMORY_MS},
	    {strdup("SELECT a.range, b.range FROM range(100000) a, range(100000) b "
		    "ORDER BY hash(a.range, b.range)"),
	     "" /* out of memory, or of room to spill, or of time */, TIME_MS},
	    {strdup("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
		    "SELECT count(*) FROM t"),
	     "time limit", TIME_MS},
	    {strdup(ENDLESS), "reached its time limit of 1.00 s", TIME_MS},
	    {nested(900, "[", "1", "]"), "",
	     ANY_MS}, /* all memory, and then the engine fails: SIGSEGV */
	    {nested(20000, "NOT ", "true", ""), "memory exhausted", MEMORY_MS},
	    {nested(30000, "1 + ", "1", ""), "depth", MEMORY_MS},
	    {nested(100000, "(", "1", ")"), "", ANY_MS},
	    {nested(5000, "CASE WHEN 1 = 1 THEN ", "1", " END"), "", ANY_MS},
	};
	struct asker bad, good;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		asker_open(&good, &server, "1000");
		asker_open(&bad, &server, "1001");
		asker_send(&good, &(struct question){.sql = STEADY, .threads = 1});
		asker_send(&bad,
			   &(struct question){.sql = cases[i].sql, .time_ms = cases[i].time_ms});
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
	} cases[] = {{SIGSEGV, "killed (SIGSEGV): DuckDB failed"},
		     {SIGABRT, "killed (SIGABRT)"},
		     {SIGKILL, "killed (SIGKILL), probably because the machine had no memory"},
		     {SIGXCPU, "killed (SIGXCPU): it reached its limit of CPU time"}};
	struct asker bad, good;

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

	rig_start("at_once=2", NULL);
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

	rig_start("at_once=3", NULL);
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

	rig_start("per_caller=1", NULL);
	asker_open(&a, &server, "1000");
	asker_open(&b, &server, "1000");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 0);
	assert_int_equal(asker_ask(&b, "SELECT 1"), 1);
	SAID(&b, "too many of your queries");
	asker_close(&b);
	asker_open(&b, &server, "1001");
	assert_int_equal(asker_ask(&b, "SELECT 1 AS n"), 0);
	asker_close(&a);
	asker_close(&b);
	server_stop(&server);
}

static void a_client_that_goes_takes_its_process_along(void **state)
{
	struct asker a;

	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 0);
	asker_close(&a);
	rig_wait_for_no_child();
}

/* Whenever a process is met by its end: before it runs, before it has its order, in the middle. */
static void an_end_at_any_time_is_an_end(void **state)
{
	struct asker a;

	for (unsigned i = 0; i < 12; i++) {
		asker_open(&a, &server, "");
		asker_send(&a, &(struct question){.sql = ENDLESS});
		usleep(i * 8000);
		asker_cancel(&a);
		assert_int_equal(asker_wait(&a), 130);
		assert_string_equal(a.notes, "interrupted\n");
		asker_send(&a, &(struct question){.sql = ENDLESS});
		usleep(i * 8000);
		asker_close(&a);
	}
	rig_wait_for_no_child();
}

static void a_server_that_stops_leaves_no_process(void **state)
{
	struct asker a;

	rig_start(NULL, NULL);
	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	(void)server_child(&server, 0);
	server_stop(&server); /* fails unless the process is gone and waited for */
	asker_close(&a);
}

static void a_server_that_is_killed_leaves_no_process(void **state)
{
	struct asker a;
	pid_t child;

	rig_start(NULL, NULL);
	asker_open(&a, &server, "");
	asker_send(&a, &(struct question){.sql = ENDLESS});
	child = server_child(&server, 0);
	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	for (unsigned i = 0; kill(child, 0) == 0; i++) {
		assert_true(i < 30000);
		usleep(10000);
	}
	close(server.input);
	asker_close(&a);
	unlink(server.socket);
	/* Its folder is removed by the next one. */
	rig_start(NULL, NULL);
	server_stop(&server);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
