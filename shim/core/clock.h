/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - session ticks: the TSC (common/tsc.h), or nanoseconds of CLOCK_MONOTONIC
 *
 * Ticks are the TSC if it is invariant and the daemon accepts it (hr_ack.flags). The first reading
 * chooses the clock. The constructor does not, because CPUID is slow in a virtual machine, and most
 * processes never read the clock. When a filter forbids clocks, each reading is the last one plus
 * one tick. Any thread may call these functions, also in a signal handler.
 */
#ifndef HEADRACE_SHIM_CORE_CLOCK_H
#define HEADRACE_SHIM_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/tsc.h"
#include "shim/core/core.h"

enum hr__clock_mode { HR__CLOCK_UNKNOWN, HR__CLOCK_TSC, HR__CLOCK_MONOTONIC, HR__CLOCK_FROZEN };

extern uint32_t hr__clock_mode;

uint64_t hr__clock_ns(void);	/* CLOCK_MONOTONIC; no system call if libc uses the vDSO */
uint64_t hr__clock_slow(void);	/* returns ticks; the first call chooses the clock */
bool hr__clock_is_tsc(void);	/* true: ticks are TSC values; the first call chooses the clock */
bool hr__clock_is_fast(void);	/* true: hr__clock_tsc() is valid */
void hr__clock_monotonic(void); /* call it if the daemon does not accept the TSC */
/* Call it before the kernel forbids programs to read the TSC. clock_gettime reads the TSC, too. */
void hr__clock_freeze(void);

/* Call it only if hr_self.slow.why[HR__SLOW_CLOCK] is 0. */
static inline uint64_t hr__clock_tsc(void)
{
	return hr_tsc_read();
}

static inline uint64_t hr_shim_ticks(void)
{
	if (hr_likely(__atomic_load_n(&hr__clock_mode, __ATOMIC_RELAXED) == HR__CLOCK_TSC))
		return hr_tsc_read();
	return hr__clock_slow();
}

#endif
