/* SPDX-License-Identifier: Apache-2.0 */
/* From ticks to boot time and back. */

#include "daemon/base/clock.h"

#include "tests/unit.h"

#define ONE  (UINT64_C(1) << 32)		  /* ns per tick */
#define YEAR (UINT64_C(365) * 86400 * 1000000000) /* in ns */

/* Worked out by hand: half a nanosecond per tick, and forty. */
static void ticks_at_a_time(void **state)
{
	const struct hr_clock_line fast = {5000, 1000000, ONE / 2};
	const struct hr_clock_line slow = {5000, 1000000, 40 * ONE};

	assert_int_equal(hr_clock_ticks_at(&fast, 1000000), 5000);
	assert_int_equal(hr_clock_ticks_at(&fast, 1000300), 5600);
	assert_int_equal(hr_clock_ticks_at(&fast, 999700), 4400);
	assert_int_equal(hr_clock_ticks_at(&slow, 1000439), 5010);
	assert_int_equal(hr_clock_ticks_at(&slow, 1000440), 5011);
	assert_int_equal(hr_clock_ticks_at(&slow, 999561), 4990);
	assert_int_equal(hr_clock_ticks_at(&slow, 999560), 4989);
}

/* Worked out by hand: a microsecond, three hours and a year, at 2 GHz and at 25 MHz. */
static void spans(void **state)
{
	static const uint64_t ns[] = {1000, UINT64_C(10800000000000), YEAR};
	const struct hr_clock_line fast = {5000, 1000000, ONE / 2};
	const struct hr_clock_line slow = {5000, 1000000, 40 * ONE};

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		assert_int_equal(hr_ticks_span_ns(&fast, 2 * ns[i]), ns[i]);
		assert_int_equal(hr_ticks_span_ns(&slow, ns[i] / 40), ns[i]);
	}
}

/* Counters of 5 GHz, 24 MHz and between, at times long before and long after their line was measured. */
static void ticks_and_times_are_inverse(void **state)
{
	static const uint64_t mults[] = {ONE / 5, ONE / 3 + 12345, ONE, 125 * ONE / 3};
	static const uint64_t away[] = {0, 1, 999, 1000003, UINT64_C(86400123456789), YEAR};

	for (size_t m = 0; m < sizeof(mults) / sizeof(mults[0]); m++) {
		const struct hr_clock_line line = {UINT64_C(1) << 60, 3 * YEAR, mults[m]};
		int64_t most = (int64_t)(mults[m] >> 32) + 1;

		for (size_t i = 0; i < 2 * sizeof(away) / sizeof(away[0]); i++) {
			uint64_t ns = line.ns0 + (i % 2 ? away[i / 2] : -away[i / 2]);
			uint64_t back = hr_ticks_ns(&line, hr_clock_ticks_at(&line, ns));

			assert_in_range(back - ns + (uint64_t)most, 0, (uint64_t)(2 * most));
		}
	}
}

/* Measures the clocks once more. Returns the slope between the last two measurements. */
static uint64_t update(struct hr_clock *c)
{
	const struct hr_clock was = *c;

	while (c->seen_ns == was.seen_ns)
		hr_clock_update(c);
	return (uint64_t)(((unsigned __int128)(c->seen_ns - was.seen_ns) << 32) /
			  (c->seen_ticks - was.seen_ticks));
}

/* A line that is ahead of the clock becomes slower by 1/1000; one that is late jumps forward. */
static void times_never_step_back(void **state)
{
	struct hr_clock_line was;
	struct hr_clock c;
	uint64_t slope;

	hr_clock_init(&c);
	hr_clock_settle(&c);
	c.line.ns0 += YEAR;
	was = c.line;
	slope = update(&c);
	assert_true(c.line.ticks0 == c.seen_ticks);
	assert_true(c.line.ns0 == hr_ticks_ns(&was, c.line.ticks0));
	assert_true(c.line.mult == slope - slope / 1000);
	c.line.ns0 -= 2 * YEAR;
	slope = update(&c);
	assert_true(c.line.ns0 == c.seen_ns);
	assert_true(c.line.mult == slope);
}

/* The slope over a few microseconds would be wrong by more than the line is. */
static void measurements_are_far_apart(void **state)
{
	struct hr_clock_line was;
	struct hr_clock c;
	uint64_t began;

	hr_clock_init(&c);
	hr_clock_settle(&c);
	was = c.line;
	began = c.seen_ns;
	hr_clock_update(&c); /* it may be the first one after 100 ms, on a busy machine */
	assert_true(c.seen_ns >= began + 100000000 ||
		    (c.seen_ns == began && c.line.mult == was.mult && c.line.ns0 == was.ns0));
	update(&c);
	assert_true(c.seen_ns >= began + 100000000);
}

/* Ticks that stop while the machine sleeps make no slope: the line moves to the time after it. */
static void a_sleep_is_no_slope(void **state)
{
	struct hr_clock c;
	uint64_t mult;

	hr_clock_init(&c);
	hr_clock_settle(&c);
	mult = c.line.mult;
	c.seen_ns -= UINT64_C(3600) * 1000000000; /* as if an hour had passed */
	c.line.ns0 -= UINT64_C(3600) * 1000000000;
	hr_clock_update(&c);
	assert_true(c.line.mult == mult);
	assert_true(c.line.ns0 == c.seen_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ticks_at_a_time),
	    cmocka_unit_test(spans),
	    cmocka_unit_test(ticks_and_times_are_inverse),
	    cmocka_unit_test(times_never_step_back),
	    cmocka_unit_test(measurements_are_far_apart),
	    cmocka_unit_test(a_sleep_is_no_slope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
