/* SPDX-License-Identifier: Apache-2.0 */
/* now.h - clocks of the kernel in nanoseconds; any thread */
#ifndef HEADRACE_COMMON_NOW_H
#define HEADRACE_COMMON_NOW_H

#include <stdint.h>
#include <time.h>

static inline uint64_t hr_now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t hr_now_ms(clockid_t clock)
{
	return hr_now_ns(clock) / 1000000u;
}

#endif
