/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_groups.c - rows brought together, and rows left out that DISTINCT makes equal, change no answer
 *
 * The same job twice: in batches large enough for rows to be grouped, and in batches that are too small
 * for it, read whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query/tables/groups.h"
#include "tests/bench/generate.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define EVENTS 160000u
#define SMALL  (HR_GROUPS_MIN_ROWS - 100)

static struct fixture grouped, plain;

static const char *const questions[] = {
    "SELECT op, count(*), sum(bytes), sum(dur_ns) FROM events GROUP BY op ORDER BY ALL",
    "SELECT op, api, class, scope, source, count(*) FROM events GROUP BY ALL ORDER BY ALL",
    "SELECT mount, fs_type, rank, worker, sum(dur_ns) FROM events GROUP BY ALL ORDER BY ALL",
    "SELECT pattern, sum(bytes), count(bytes) FROM events GROUP BY pattern ORDER BY ALL",
    "SELECT node, proc, tid, op, pattern, mount, count(*) FROM events GROUP BY ALL ORDER BY ALL",
    "SELECT loader, worker, count(*), count(loader) FROM events GROUP BY ALL ORDER BY ALL",
    "SELECT sum(hash(op, rank, mount, pattern, bytes, file_offset, start_ns, path)) FROM events",
    "SELECT sum(hash(node, tid, scope, class, ret, dur_ns, fd, base)) FROM events",
    "SELECT sum(hash(e)) FROM events e", /* too many columns: in their order */
    "SELECT sum(hash(op, path, start_ns)) FROM events WHERE class = 'read' AND rank IN (1, 3)",
    "SELECT sum(hash(op, start_ns)) FROM events WHERE pattern = 'model.pt' OR worker IS NULL",
    "SELECT start_ns, op FROM events WHERE rank = 2 ORDER BY start_ns LIMIT 50",
    /* rows that count once */
    "SELECT count(DISTINCT path) FROM events",
    "SELECT count(DISTINCT path), count(DISTINCT base), min(path), max(base) FROM events",
    "SELECT count(DISTINCT file_id) FROM hr_events() WHERE mount = '/data'",
    "SELECT rank, count(DISTINCT path) FROM events GROUP BY rank ORDER BY rank",
    "SELECT op, count(DISTINCT path) FROM events WHERE base LIKE 'n%' GROUP BY op ORDER BY op",
    "SELECT count(DISTINCT path) FROM events WHERE op = 'write'",
    "SELECT DISTINCT op, rank, mount FROM events ORDER BY ALL",
    "SELECT DISTINCT pattern FROM events ORDER BY ALL",
    "SELECT path FROM events WHERE path LIKE '%/model-%' GROUP BY path ORDER BY path",
    "SELECT node, max(mount) FROM events GROUP BY node HAVING count(DISTINCT op) > 1 ORDER BY ALL",
    "SELECT count(*), sum(n) FROM (SELECT path, count(DISTINCT op) AS n FROM events GROUP BY path)",
    /* rows that look alike and still count */
    "SELECT count(path), count(DISTINCT path) FROM events",
    "SELECT mount, count(*) FROM events GROUP BY mount ORDER BY ALL",
    "SELECT sum(n) FROM (SELECT path, count(*) AS n FROM events GROUP BY path)",
    "SELECT max(mount, 3), count(DISTINCT mount) FROM events",
    "SELECT DISTINCT mount, count(op) OVER (PARTITION BY mount) FROM events ORDER BY ALL",
    "SELECT count(*) FROM (SELECT path FROM events)",
    "SELECT mount FROM events GROUP BY mount HAVING count(*) > 100 ORDER BY ALL",
    "SELECT DISTINCT (SELECT count(*) FROM (SELECT e.mount)) FROM events e",
};

static void grouping_changes_no_answer(void **state)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		char *is = fixture_ask(&grouped, questions[i]);

		fixture_expect(&plain, questions[i], is);
		free(is);
	}
}

static void groups_are_whole_and_in_order(void **state)
{
	struct hr_groups *g = hr__groups_new();
	uint32_t keys[4 * HR_GROUPS_MIN_ROWS], n = sizeof(keys) / sizeof(keys[0]);

	assert_non_null(g);
	for (uint32_t k = 0; k < n; k++) {
		g->unordered[k] = 2 * k;
		keys[k] = k % 3 == 0 ? 7 : 1000000;
	}
	hr__groups_start(g, n, HR_GROUPS_MAX);
	assert_true(hr__groups_refine(g, keys));
	for (uint32_t k = 0; k < n; k++)
		keys[k] = k;
	assert_false(hr__groups_refine(g, keys));
	hr__groups_finish(g, true);
	assert_int_equal(g->n_groups, 2);
	assert_int_equal(g->groups[0].n + g->groups[1].n, n);
	assert_int_equal(g->groups[1].first, g->groups[0].n);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(g->groups[i].row, 2 * i);
		for (uint32_t k = 0; k < g->groups[i].n; k++)
			assert_int_equal(g->rows[g->groups[i].first + k],
					 i == 0 ? 6 * k : 2 * (k / 2 * 3 + k % 2 + 1));
	}
	hr__groups_free(g);
}

static void one_group_keeps_the_order(void **state)
{
	struct hr_groups *g = hr__groups_new();
	uint32_t keys[4 * HR_GROUPS_MIN_ROWS] = {0}, n = sizeof(keys) / sizeof(keys[0]);

	assert_non_null(g);
	for (uint32_t k = 0; k < n; k++)
		g->unordered[k] = k;
	hr__groups_start(g, n, 1);
	assert_true(hr__groups_refine(g, keys));
	keys[n - 1] = 1;
	assert_false(hr__groups_refine(g, keys));
	hr__groups_finish(g, true);
	assert_int_equal(g->n_groups, 1);
	assert_memory_equal(g->rows, g->unordered, n * sizeof(g->rows[0]));
	hr__groups_free(g);
}

/* So few that no split is worth it, and more values than there can be groups. */
static void few_rows_are_one_group(void **state)
{
	static const uint32_t counts[] = {1, HR_GROUPS_MAX + 1, HR_GROUPS_MIN_ROWS - 1};
	uint32_t keys[HR_GROUPS_MIN_ROWS];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct hr_groups *g = hr__groups_new();
		uint32_t n = counts[i];

		assert_non_null(g);
		for (uint32_t k = 0; k < n; k++)
			keys[k] = g->unordered[k] = k;
		hr__groups_start(g, n, HR_GROUPS_MAX);
		assert_int_equal(hr__groups_refine(g, keys), n == 1);
		hr__groups_finish(g, true);
		assert_int_equal(g->n_groups, 1);
		assert_int_equal(g->groups[0].n, n);
		hr__groups_free(g);
	}
}

static void nothing_makes_no_group(void **state)
{
	struct hr_groups *g = hr__groups_new();

	assert_non_null(g);
	hr__groups_start(g, 0, HR_GROUPS_MAX);
	assert_true(hr__groups_refine(g, g->unordered));
	hr__groups_finish(g, true);
	assert_int_equal(g->n_groups, 0);
	hr__groups_free(g);
}

static void each_value_stays_once_in_each_group(void **state)
{
	struct hr_groups *g = hr__groups_new();
	uint32_t keys[2 * HR_GROUPS_MIN_ROWS], values[2 * HR_GROUPS_MIN_ROWS];
	uint32_t n = sizeof(keys) / sizeof(keys[0]);

	assert_non_null(g);
	for (uint32_t k = 0; k < n; k++) {
		g->unordered[k] = k;
		keys[k] = k % 2;
		values[k] = k < n / 2 ? k / 2 % 5 : 5 + k; /* from 5 on: out of range, as 0 */
	}
	hr__groups_start(g, n, HR_GROUPS_MAX);
	assert_true(hr__groups_refine(g, keys));
	hr__groups_finish(g, true);
	assert_int_equal(hr__groups_distinct(g, values, 5), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(g->groups[i].n, 5);
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(g->rows[g->groups[i].first + k], 2 * k + i);
	}
	hr__groups_free(g);
}

static char *make(uint32_t batch_events)
{
	struct hr_gen_config config = {.seed = 3,
				       .events = EVENTS,
				       .nodes = 2,
				       .ranks = 2,
				       .workers = 3,
				       .paths = 6000,
				       .batch_events = batch_events};
	char *store = build_folder();

	hr_gen_store(&config, store, "7");
	return store;
}

static char *stores[2];

static int setup(void **state)
{
	struct hr_query_options whole = {.threads = 2, .no_prune = true};

	stores[0] = make(HR_GEN_BATCH);
	stores[1] = make(SMALL);
	fixture_open(&grouped, stores[0], NULL);
	fixture_open(&plain, stores[1], &whole);
	return 0;
}

static int teardown(void **state)
{
	fixture_close(&grouped);
	fixture_close(&plain);
	build_remove(stores[0]);
	build_remove(stores[1]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(groups_are_whole_and_in_order),
	    cmocka_unit_test(one_group_keeps_the_order),
	    cmocka_unit_test(few_rows_are_one_group),
	    cmocka_unit_test(nothing_makes_no_group),
	    cmocka_unit_test(each_value_stays_once_in_each_group),
	    cmocka_unit_test(grouping_changes_no_answer),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
