/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backoff.h - waiting time before the next attempt: a random time up to a bound that doubles (full
 * jitter), so that not all daemons connect at the same time to a collector that has restarted
 */
#ifndef HEADRACE_DAEMON_BASE_BACKOFF_H
#define HEADRACE_DAEMON_BASE_BACKOFF_H

#include <stdint.h>

#define HR_BACKOFF_LEAST_MS 200u
#define HR_BACKOFF_MOST_MS  30000u

struct hr_backoff {
	uint64_t random; /* state of the generator; not 0 */
	uint32_t failed; /* number of attempts since the last success */
};

static inline uint32_t hr_backoff_next_ms(struct hr_backoff *b)
{
	uint32_t bound = b->failed < 8 ? HR_BACKOFF_LEAST_MS << b->failed : HR_BACKOFF_MOST_MS;

	b->failed += b->failed < 8;
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (uint32_t)((b->random >> 32) * (bound + 1) >> 32);
}

#endif
