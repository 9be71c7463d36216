/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_during.c - hr_during(): each region of a job has the I/O that lies in it, by the lists that the store was made from
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture.h"
#include "tests/query/train_store.h"
#include "tests/unit.h"

static struct train *job;

static int setup(void **state)
{
	job = train_new();
	fixture_open(&fix, job->store, NULL);
	return 0;
}

static int teardown(void **state)
{
	fixture_close(&fix);
	train_free(job);
	return 0;
}

static const struct hr_region *find(const char *kind, uint64_t tid, uint64_t start, uint64_t dur)
{
	for (size_t i = 0; i < job->n_regions; i++) {
		const struct hr_region *g = &job->regions[i];

		if (g->tid == tid && g->start_ns == start && g->dur_ns == dur &&
		    strcmp(hr_region_kind_name(g->kind), kind) == 0)
			return g;
	}
	fail_msg("no %s of %llu at %llu for %llu", kind, (unsigned long long)tid,
		 (unsigned long long)start, (unsigned long long)dur);
	return NULL;
}

static void each_region_has_its_io(void **state)
{
	char *text = fixture_ask(
		 &fix,
		 "SELECT kind, tid, start_ns - 1700000000000000000, dur_ns, coalesce(ops, 0), "
		 "coalesce(bytes_read, 0), coalesce(bytes_written, 0), coalesce(io_ns, 0), "
		 "coalesce(busy_ns, 0) FROM hr_during(kind := "
		 "'step, epoch, input_wait, fetch, optimizer, checkpoint', scope := 'data')"),
	     *line;
	size_t n = 0;

	for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), n++) {
		unsigned long long v[8];
		const struct hr_region *g;
		struct train_sums sums;
		char kind[16];

		assert_int_equal(sscanf(line, "%15[^,],%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu",
					kind, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
					&v[7]),
				 9);
		g = find(kind, v[0], v[1], v[2]);
		sums = train_between(job, train_rank(g->domain), v[1], v[1] + v[2]);
		if (g->count > 1)
			sums = (struct train_sums){0};
		if (v[3] != sums.ops || v[4] != sums.bytes_read || v[5] != sums.bytes_written ||
		    v[6] != sums.io_ns || v[7] != sums.busy_ns)
			fail_msg("%s: %llu", line, (unsigned long long)sums.busy_ns);
	}
	assert_int_equal(n, job->n_regions);
	free(text);
	free(fixture_refused(&fix, "FROM hr_during(kind := 'steps')", -EBADMSG));
	free(fixture_refused(&fix, "FROM hr_during(scope := 'both')", -EBADMSG));
}

/* Rows of one rank, asked for by the argument, and chosen among all. */
static void one_rank_alone(void **state)
{
	static const char *const functions[] = {
	    "hr_during(kind := 'step, input_wait, fetch'%s)",
	    "hr_busy(by := 'proc, rank, worker, class'%s)",
	};

	for (unsigned i = 0; i < 2 * sizeof(functions) / sizeof(functions[0]); i++) {
		char one[128], all[128], sql[800], rank[32];

		snprintf(rank, sizeof(rank), ", rank := %u", i % 2);
		snprintf(one, sizeof(one), functions[i / 2], rank);
		snprintf(all, sizeof(all), functions[i / 2], "");
		snprintf(
		    sql, sizeof(sql),
		    "SELECT (SELECT count(*) > 0 FROM %s) AND NOT EXISTS (FROM %s EXCEPT ALL FROM "
		    "%s "
		    "WHERE rank = %u) AND NOT EXISTS (FROM %s WHERE rank = %u EXCEPT ALL FROM %s)",
		    one, one, all, i % 2, all, i % 2, one);
		fixture_expect(&fix, sql, "true\n");
	}
	fixture_expect(&fix, "SELECT count(*) FROM hr_during(rank := 7)", "0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_region_has_its_io),
	    cmocka_unit_test(one_rank_alone),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
