/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_many_cost.c - what a query of all jobs costs grows with their number, not with its square
 *
 * A measurement (hr_precise). If the cost were above the bound, each round would be within it with
 * a probability of less than one half, so MOST of ROUNDS would be with less than 2 %.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/now.h"
#include "tests/bench/many_jobs.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define FEW    1000u
#define TIMES  5u /* as many jobs in the other store */
#define ROUNDS 9u
#define MOST   8u

static char *make(uint32_t jobs)
{
	char *store = build_folder();

	hr_many_jobs(store, 1, jobs);
	return store;
}

/* CPU time of all threads: opens the store and asks for all jobs and files. */
static uint64_t cost_ns(const char *store, uint32_t jobs)
{
	uint64_t start = hr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	char expected[128];
	struct fixture f;

	snprintf(expected, sizeof(expected), "%u,%u,%u\n", jobs, jobs, jobs);
	fixture_open(&f, store, NULL);
	fixture_expect(
	    &f, "SELECT count(*), sum(nodes), sum(ranks_seen) FROM jobs WHERE state = 'ended'",
	    expected);
	fixture_expect(&f, "SELECT count(*) FROM files", "0\n");
	fixture_close(&f);
	return hr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* With a quadratic step, five times the jobs cost eleven times the CPU time at these sizes. */
static void five_times_the_jobs_cost_five_times_the_time(void **state)
{
	char *few = make(FEW), *many = make(TIMES * FEW);
	unsigned within = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t one = cost_ns(few, FEW), other = cost_ns(many, TIMES * FEW);

		print_message("%u jobs: %.0f ms, %u jobs: %.0f ms\n", FEW, (double)one / 1e6,
			      TIMES * FEW, (double)other / 1e6);
		within += other < 7 * one;
	}
	assert_true(within >= MOST);
	build_remove(few);
	build_remove(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(five_times_the_jobs_cost_five_times_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
