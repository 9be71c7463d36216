/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - session ticks
 *
 * Purpose   One 64-bit tick count: the TSC (common/tsc.h) if it is invariant, unless the daemon
 *           decides otherwise (hr_ack.flags); else nanoseconds of CLOCK_MONOTONIC. The mode is
 *           decided at the first use, not in the constructor: CPUID traps in a virtual machine, and
 *           most processes never need it. The clock is frozen once the program may not read clocks
 *           any longer: each reading is one tick after the last.
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

uint64_t hr__clock_ns(void);	/* CLOCK_MONOTONIC, by the vDSO if libc has it */
uint64_t hr__clock_slow(void);	/* ticks; decides the mode first if need be */
bool hr__clock_is_tsc(void);	/* the unit of ticks; decides the mode if need be */
bool hr__clock_is_fast(void);	/* hr__clock_tsc() is valid */
void hr__clock_monotonic(void); /* the daemon does not accept the TSC */
/* the kernel is about to forbid reading it, and with it the vDSO's clock */
void hr__clock_freeze(void);

/* For threads whose HR__SLOW_CLOCK is 0. */
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
