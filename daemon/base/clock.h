/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - session ticks (TSC of common/tsc.h, or ns of CLOCK_MONOTONIC) to ns of CLOCK_BOOTTIME
 *
 * Owner     The node; one clock for all its sessions.
 * Threads   hr_clock_ticks: any; all others: the drain thread, or before it starts its creator.
 *
 * The conversion is a line through (ticks0, ns0) of slope mult / 2^32. If the line is late (for
 * example after a suspend), an update moves it forward to the measured time. If it is ahead, an
 * update slows it. So converted times never step back. Tick entries of the journal contain the
 * line, so that a replay converts in the same way.
 */
#ifndef HEADRACE_DAEMON_BASE_CLOCK_H
#define HEADRACE_DAEMON_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct hr_clock_line {
	uint64_t ticks0;
	uint64_t ns0;  /* CLOCK_BOOTTIME at ticks0 */
	uint64_t mult; /* ns per tick, 32.32 fixed point */
};

/* boot_ns and real_ns were read at most error_ns apart. */
struct hr_clock_sample {
	uint64_t boot_ns;
	uint64_t real_ns;
	uint64_t error_ns;
};

struct hr_clock {
	bool tsc;
	struct hr_clock_line line;
	uint64_t seen_ticks; /* the last measured pair */
	uint64_t seen_ns;
};

/*
 * hr_clock_settle waits until 5 ms after hr_clock_init, measures again, and sets the slope. It can
 * be called again until the first update: a longer time makes the slope more exact.
 */
void hr_clock_init(struct hr_clock *c);
void hr_clock_settle(struct hr_clock *c);

/*
 * Measures the clocks, and corrects the line, if the last measurement is at least 100 ms old. A
 * slope from 5 ms makes the line wrong by up to 2 us after a second, one from 100 ms by 0.1 us.
 */
void hr_clock_update(struct hr_clock *c);

void hr_clock_sample(struct hr_clock_sample *ret);
uint64_t hr_clock_ticks(const struct hr_clock *c);
uint64_t hr_boot_ns(void);

/* Returns whether the slope is valid in a journal: above 0 and below 256 ns per tick. */
static inline bool hr_clock_line_valid(const struct hr_clock_line *l)
{
	return l->mult > 0 && l->mult >> 40 == 0;
}

static inline uint64_t hr_ticks_span_ns(const struct hr_clock_line *l, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * l->mult) >> 32);
}

static inline uint64_t hr_ticks_ns(const struct hr_clock_line *l, uint64_t ticks)
{
	int64_t away = (int64_t)(ticks - l->ticks0);

	return l->ns0 + (uint64_t)(int64_t)(((__int128)away * l->mult) >> 32);
}

/* Rounds towards ticks0. hr_ticks_ns of the result differs from ns by at most a tick and 1 ns. */
static inline uint64_t hr_clock_ticks_at(const struct hr_clock_line *l, uint64_t ns)
{
	int64_t away = (int64_t)(ns - l->ns0);

	return l->ticks0 + (uint64_t)(int64_t)((__int128)away * (INT64_C(1) << 32) / l->mult);
}

static inline uint64_t hr_ns_ticks(const struct hr_clock_line *l, uint64_t span_ns)
{
	return (uint64_t)(((unsigned __int128)span_ns << 32) / l->mult);
}

#endif
