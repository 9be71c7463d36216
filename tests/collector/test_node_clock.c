/* SPDX-License-Identifier: Apache-2.0 */
/* A node's clock from round trips: the best sample counts, until it is old or a clock was set. */

#include "collector/node_clock.h"

#include "tests/unit.h"

#define NOW UINT64_C(1700000000000000000)
#define MS  UINT64_C(1000000)

/* A Pong of a node that is `ahead` of us, after a round trip of `trip`, of which it took `there` to get there. */
static bool pong(struct hr_node_clock_samples *c, uint64_t mono_ns, int64_t ahead, uint64_t trip,
		 uint64_t there)
{
	uint64_t sent = NOW + mono_ns;

	return hr_node_clock_add(c, sent, sent + trip, mono_ns,
				 (uint64_t)((int64_t)(sent + there) + ahead));
}

static void test_best_counts(void **state)
{
	struct hr_node_clock_samples c = {0};

	assert_true(pong(&c, 0, 5000 * MS, 8 * MS, 1 * MS)); /* lopsided: 3 ms off, 4 ms bound */
	assert_int_equal(c.best.offset_ns, 4997 * MS);
	assert_true(c.best.error_ns >= 4 * MS && c.best.error_ns < 5 * MS);
	assert_true(pong(&c, 10000 * MS, 5000 * MS, 2 * MS, 1 * MS));
	assert_int_equal(c.best.offset_ns, 5000 * MS);
	assert_false(pong(&c, 20000 * MS, 5000 * MS, 8 * MS, 8 * MS));
	assert_int_equal(c.best.offset_ns, 5000 * MS);
}

static void test_old_samples_go(void **state)
{
	struct hr_node_clock_samples c = {0};

	assert_true(pong(&c, 0, 0, 2 * MS, 1 * MS));
	assert_false(pong(&c, 599999 * MS, 1 * MS, 8 * MS, 4 * MS));
	assert_true(pong(&c, 600000 * MS, 1 * MS, 8 * MS, 4 * MS));
	assert_int_equal(c.best.offset_ns, 1 * MS);
}

static void test_steps(void **state)
{
	struct hr_node_clock_samples c = {0};

	assert_true(pong(&c, 0, 0, 2 * MS, 1 * MS));
	assert_true(pong(&c, 10000 * MS, -3600000 * (int64_t)MS, 80 * MS, 40 * MS));
	assert_int_equal(c.best.offset_ns, -3600000 * (int64_t)MS);
	/* Ours was set back between Ping and Pong. */
	assert_false(hr_node_clock_add(&c, NOW, NOW - 1, 20000 * MS, NOW));
	/* Any number may come from a node. */
	assert_true(hr_node_clock_add(&c, NOW, NOW + 2, 30000 * MS, UINT64_MAX));
	assert_true(hr_node_clock_add(&c, NOW, NOW + 2, 40000 * MS, NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_best_counts),
	    cmocka_unit_test(test_old_samples_go),
	    cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
