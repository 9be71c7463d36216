/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_runs.c - several runs of one job on one node: their processes have numbers of their own
 */
#include <stdlib.h>
#include <string.h>

#include "query/named.h"
#include "query/notes.h"
#include "tests/query/fixture_frames.h"
#include "tests/unit.h"

static void numbers_are_unique_within_job_and_node(void **state)
{
	fixture_expect(&fix,
		       "SELECT attempt, cluster, list(proc ORDER BY proc) FROM processes "
		       "GROUP BY ALL ORDER BY ALL",
		       "0,c,\"[1, 2, 3, 4, 5, 6]\"\n0,d,\"[10, 11, 12]\"\n1,c,\"[7, 8, 9]\"\n");
	fixture_expect(&fix,
		       "SELECT count(DISTINCT (job, node, proc)) FROM events UNION ALL "
		       "SELECT count(DISTINCT (job, node, proc)) FROM processes",
		       "12\n12\n");
}

/* What speaks of a process meets its one row of `processes`. */
static void joins_duplicate_nothing(void **state)
{
	static const char *const tables[] = {"events", "rollups", "file_records"};
	char sql[256], *all, *joined;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
		all = fixture_ask(&fix, sql);
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM %s JOIN processes p USING (job, node, proc, pid, "
			 "attempt)",
			 tables[i]);
		joined = fixture_ask(&fix, sql);
		assert_string_equal(joined, all);
		free(all);
		free(joined);
	}
}

/* The second row of each run is a child of the first, and the third replaced it. */
static void parents_and_execs_are_of_the_same_run(void **state)
{
	fixture_expect(&fix,
		       "SELECT proc, exec_of, parent_proc FROM hr_processes() "
		       "WHERE exec_of IS NOT NULL OR parent_proc IS NOT NULL ORDER BY proc",
		       "2,,1\n3,1,\n5,,4\n6,4,\n8,,7\n9,7,\n11,,10\n12,10,\n");
}

/*
 * Two runs of attempt 0 have the same five files. Each run used the image first earlier, and last
 * later, than the run before.
 */
static void files_of_a_node_are_listed_once(void **state)
{
	fixture_expect(&fix,
		       "SELECT cluster, attempt, count(*), count(DISTINCT path) FROM files "
		       "GROUP BY cluster, attempt ORDER BY ALL",
		       "c,0,5,5\nc,1,5,5\nd,0,5,5\n");
	fixture_expect(&fix, "SELECT count(*) FROM hr_files()", "20\n");
	fixture_expect(&fix,
		       "SELECT cluster, attempt, first_ns - 1700000000000000000, "
		       "last_ns - 1700000000000000000 FROM files WHERE path LIKE '%/img-001.jpg' "
		       "ORDER BY ALL",
		       "c,0,900,2100\nc,1,800,2200\nd,0,700,2300\n");
}

static void a_number_prunes_to_its_run(void **state)
{
	struct hr_query_scan scan;

	fixture_expect(&fix, "SELECT DISTINCT attempt, pid, rank FROM events WHERE proc = 8",
		       "1,101,0\n");
	hr_query_scan(fix.q, &scan);
	assert_int_equal(scan.batches_read, 1);
	assert_int_equal(scan.batches_pruned, 3);
	fixture_expect(&fix, "SELECT count(*) FROM events WHERE proc = 13", "0\n");
	hr_query_scan(fix.q, &scan);
	assert_int_equal(scan.batches_read, 0);
}

/* A job that runs has run until now, and not until the last process that it started. */
static void a_running_job_has_a_duration(void **state)
{
	struct hr_writer *w = fixture_start_run(*state);
	struct fixture f;
	char *sql;

	fixture_open(&f, *state, NULL);
	assert_true(asprintf(&sql,
			     "SELECT state, attempt, seconds > 86400 FROM (%s) WHERE attempt = 7",
			     hr_named_find("jobs")->sql) > 0);
	fixture_expect(&f, sql, "running,7,true\n");
	free(sql);
	assert_true(asprintf(&sql,
			     "SELECT run_bytes_per_s < 1000 FROM (%s) "
			     "WHERE attempt = 7 AND what = 'read'",
			     hr_named_find("summary")->sql) > 0);
	fixture_expect(&f, sql, "true\n");
	free(sql);
	fixture_close(&f);
	assert_int_equal(hr_writer_close(w), 0);
}

/* headraced was killed and came back: a part of the node's recording is missing. */
static void a_killed_stream_makes_a_killed_node(void **state)
{
	char *store = fixture__make_folder(), *sql;
	struct fixture f;

	for (unsigned i = 1; i <= 2; i++) {
		const struct hr_stream_id id = {
		    .cluster = "c", .job = "9", .node = "n1", .boot_id = "b", .instance = i};
		struct fixture__stream s;

		fixture__open(&s, store, &id);
		fixture__send_job(&s, "running", 0);
		if (i == 2)
			build_end(&s.b, "ended");
		build_close(&s.b);
	}
	fixture_open(&f, store, NULL);
	assert_true(asprintf(&sql, "SELECT state, streams FROM (%s)", hr_named_find("nodes")->sql) >
		    0);
	fixture_expect(&f, sql, "killed,2\n");
	free(sql);
	fixture_expect(&f, "SELECT state FROM jobs", "killed\n");
	fixture_close(&f);
	build_remove(store);
}

/* One of two nodes was killed, the first or the second one. */
static void a_killed_node_makes_a_killed_job(void **state)
{
	static char *const jobs[] = {"8", "9"}, *const nodes[] = {"n1", "n2"};
	char *store = fixture__make_folder();
	struct fixture f;

	for (unsigned i = 0; i < 4; i++) {
		struct fixture__stream s;

		fixture__open_stream(&s, store, jobs[i / 2], nodes[i % 2]);
		build_end(&s.b, i / 2 == i % 2 ? "killed" : "ended");
		build_close(&s.b);
	}
	fixture_open(&f, store, NULL);
	fixture_expect(&f, "SELECT job, state FROM jobs ORDER BY job", "8,killed\n9,killed\n");
	fixture_close(&f);
	build_remove(store);
}

static char said[8][256];
static unsigned n_said;

static void remember(void *self, const char *text)
{
	snprintf(said[n_said++ % 8], sizeof(said[0]), "%s", text);
}

static const struct hr_sink messages = {remember, NULL};

/* A world size is what some environment said: the note about it costs no more for being absurd. */
static void any_world_size_is_cheap(void **state)
{
	struct hr_query_options small = {.threads = 1, .memory_bytes = 64 << 20};
	struct fixture f;
	bool found = false;

	fixture_open(&f, *state, &small);
	assert_int_equal(hr_query_notes(f.q, 8, &messages), 0);
	for (unsigned i = 0; i < n_said && i < 8; i++)
		found |= strcmp(said[i],
				"job 9: 19999999 of 20000000 expected ranks were not seen: 1, 2, "
				"3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, ...") == 0;
	assert_true(found);
	fixture_close(&f);
}

static int setup(void **state)
{
	*state = fixture_make_runs();
	fixture_open(&fix, *state, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(numbers_are_unique_within_job_and_node),
	    cmocka_unit_test(files_of_a_node_are_listed_once),
	    cmocka_unit_test(joins_duplicate_nothing),
	    cmocka_unit_test(parents_and_execs_are_of_the_same_run),
	    cmocka_unit_test(a_number_prunes_to_its_run),
	    cmocka_unit_test(a_running_job_has_a_duration),
	    cmocka_unit_test(a_killed_stream_makes_a_killed_node),
	    cmocka_unit_test(a_killed_node_makes_a_killed_job),
	    cmocka_unit_test(any_world_size_is_cheap),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
