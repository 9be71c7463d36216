/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - stands in for shim/core/clock.h */
#ifndef HEADRACE_STUB_CLOCK_H
#define HEADRACE_STUB_CLOCK_H

#include <stdint.h>

static inline uint64_t hr_shim_ticks(void)
{
	return 1;
}

#endif
