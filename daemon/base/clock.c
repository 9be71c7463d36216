/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/clock.h"

#include <time.h>

#include "common/now.h"
#include "common/tsc.h"

#define ONE_TO_ONE    (UINT64_C(1) << 32)
#define MOST_AHEAD_NS 1000000
#define TRIES	      5
#define SPAN_NS	      5000000u	 /* time before the second measurement */
#define LEAST_NS      100000000u /* shortest time between two later measurements */

uint64_t hr_boot_ns(void)
{
	return hr_now_ns(CLOCK_BOOTTIME);
}

uint64_t hr_clock_ticks(const struct hr_clock *c)
{
	return c->tsc ? hr_tsc_read() : hr_now_ns(CLOCK_MONOTONIC);
}

/* Reads ticks and boot time a few times. Returns the pair with the smallest error. */
static void clock_measure(const struct hr_clock *c, uint64_t *ret_ticks, uint64_t *ret_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = hr_clock_ticks(c);
		uint64_t ns = hr_boot_ns();
		uint64_t after = hr_clock_ticks(c);

		if (after - before >= best)
			continue;
		best = after - before;
		*ret_ticks = before + best / 2;
		*ret_ns = ns;
	}
}

void hr_clock_sample(struct hr_clock_sample *ret)
{
	ret->error_ns = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = hr_boot_ns();
		uint64_t real = hr_now_ns(CLOCK_REALTIME);
		uint64_t after = hr_boot_ns();

		if (after - before >= ret->error_ns)
			continue;
		ret->boot_ns = before + (after - before) / 2;
		ret->real_ns = real;
		ret->error_ns = after - before;
	}
}

void hr_clock_init(struct hr_clock *c)
{
	c->tsc = hr_tsc_is_invariant();
	clock_measure(c, &c->seen_ticks, &c->seen_ns);
	c->line = (struct hr_clock_line){c->seen_ticks, c->seen_ns, ONE_TO_ONE};
}

void hr_clock_settle(struct hr_clock *c)
{
	uint64_t ticks = 0, ns = 0, passed_ns = hr_boot_ns() - c->seen_ns;

	if (!c->tsc)
		return;
	if (passed_ns < SPAN_NS)
		nanosleep(&(struct timespec){.tv_nsec = (long)(SPAN_NS - passed_ns)}, NULL);
	clock_measure(c, &ticks, &ns);
	if (ns <= c->seen_ns || ticks <= c->seen_ticks)
		return;
	c->line.mult =
	    (uint64_t)(((unsigned __int128)(ns - c->seen_ns) << 32) / (ticks - c->seen_ticks));
}

void hr_clock_update(struct hr_clock *c)
{
	uint64_t ticks = c->seen_ticks, ns = c->seen_ns;

	clock_measure(c, &ticks, &ns);
	if (ns < c->seen_ns + LEAST_NS || ticks <= c->seen_ticks)
		return;

	uint64_t slope =
	    (uint64_t)(((unsigned __int128)(ns - c->seen_ns) << 32) / (ticks - c->seen_ticks));
	uint64_t line_ns = hr_ticks_ns(&c->line, ticks);
	int64_t lag_ns = (int64_t)(ns - line_ns);

	/* The machine slept in between, and its ticks did not count: the slope is as before. */
	if (slope > 2 * c->line.mult || slope < c->line.mult / 2)
		slope = c->line.mult;
	c->seen_ticks = ticks;
	c->seen_ns = ns;
	c->line.ticks0 = ticks;
	c->line.ns0 = lag_ns > 0 ? ns : line_ns;
	c->line.mult = slope;
	if (lag_ns >= 0)
		return;
	/* The line is ahead: slows it, within a bound, as if to be right in a second. */
	if (lag_ns < -MOST_AHEAD_NS)
		lag_ns = -MOST_AHEAD_NS;
	c->line.mult += (uint64_t)(((__int128)lag_ns * (__int128)slope) / 1000000000);
}
