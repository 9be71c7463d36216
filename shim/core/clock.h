/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - session ticks
 *
 * Purpose   One 64-bit tick count: the TSC (common/tsc.h) where it is invariant, until a daemon
 * says otherwise (hr_ack.flags); else nanoseconds of CLOCK_MONOTONIC. Found out at the first use,
 * not in the constructor: CPUID traps in a virtual machine, and most processes never need it.
 * Frozen where the program may read no clock any more: each look is one tick after the last.
 * Threads   Any, signal handlers included.
 */
#ifndef HEADRACE_SHIM_CORE_CLOCK_H
#define HEADRACE_SHIM_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/tsc.h"
#include "shim/core/core.h"

enum hr__clock_mode { HR__CLOCK_UNKNOWN, HR__CLOCK_TSC, HR__CLOCK_MONOTONIC, HR__CLOCK_FROZEN };

extern uint32_t hr__clock_mode; /* relaxed */

uint64_t hr__clock_ns(void);	/* CLOCK_MONOTONIC; the vDSO's where libc offers it */
uint64_t hr__clock_slow(void);	/* ticks, deciding the mode first if need be */
bool hr__clock_is_tsc(void);	/* the unit of ticks; decides the mode if need be */
bool hr__clock_is_fast(void);	/* hr__clock_tsc() may be used */
void hr__clock_monotonic(void); /* the daemon does not trust the TSC */
void hr__clock_freeze(void);	/* the kernel is about to forbid it, and with it the vDSO's clock */

/* For threads whose HR__SLOW_CLOCK says that the TSC it is. */
static inline uint64_t hr__clock_tsc(void)
{
	return hr_tsc_read();
}

static inline uint64_t hr__clock_ticks(void)
{
	if (hr_likely(__atomic_load_n(&hr__clock_mode, __ATOMIC_RELAXED) == HR__CLOCK_TSC))
		return hr_tsc_read();
	return hr__clock_slow();
}

#endif
