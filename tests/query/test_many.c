/* SPDX-License-Identifier: Apache-2.0 */
/* test_many.c - streams of many jobs: rows share chunks, and each stream counts for its own job */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/many_jobs.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define FEW 1000u

static int count_chunk(void *self, duckdb_data_chunk chunk)
{
	++*(unsigned *)self;
	return 0;
}

/* DuckDB handles rows by the chunk. A scan that gives it one chunk for each stream costs many times as much. */
static void rows_of_many_streams_share_a_chunk(void **state)
{
	char *store = build_folder();
	unsigned chunks = 0;
	const struct hr_query_sink sink = {.chunk = count_chunk, .self = &chunks};
	struct fixture f;

	hr_many_jobs(store, 1, FEW);
	fixture_open(&f, store, &(const struct hr_query_options){.threads = 1});
	assert_int_equal(
	    hr_query_run(f.q, "SELECT job, proc, pid FROM processes", NULL, 0, &sink, NULL), 0);
	assert_in_range(chunks, 1, 2);
	fixture_expect(
	    &f, "SELECT count(*), count(DISTINCT job), sum(job::INT), min(exe) FROM processes",
	    "1000,1000,500500,/usr/bin/python3\n");
	fixture_close(&f);
	build_remove(store);
}

/* One job id in two clusters and in two attempts: their streams are counted apart, and each node once. */
static void streams_are_counted_for_their_own_job(void **state)
{
	char *store = fixture_make_runs();
	struct fixture f;

	fixture_open(&f, store, NULL);
	fixture_expect(&f, "SELECT cluster, attempt, nodes FROM jobs ORDER BY ALL",
		       "c,0,1\nc,1,1\nd,0,1\n");
	fixture_close(&f);
	build_remove(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rows_of_many_streams_share_a_chunk),
	    cmocka_unit_test(streams_are_counted_for_their_own_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
