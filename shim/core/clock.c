/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/core/clock.h"

#include <time.h>

#include "shim/core/sys.h"

extern __typeof__(clock_gettime) clock_gettime __attribute__((weak));

uint32_t hr__clock_mode;
static struct {
	uint64_t ticks, ns;
	bool tsc;
} frozen;

static bool is_frozen(void)
{
	return __atomic_load_n(&hr__clock_mode, __ATOMIC_ACQUIRE) == HR__CLOCK_FROZEN;
}

uint64_t hr__clock_ns(void)
{
	struct timespec ts = {0};

	if (hr_unlikely(is_frozen()))
		return __atomic_add_fetch(&frozen.ns, 1, __ATOMIC_RELAXED);
	if (clock_gettime != NULL)
		clock_gettime(CLOCK_MONOTONIC, &ts);
	else
		HR_SYS2(clock_gettime, CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool hr__clock_is_tsc(void)
{
	uint32_t mode = __atomic_load_n(&hr__clock_mode, __ATOMIC_RELAXED);

	if (mode == HR__CLOCK_UNKNOWN) {
		uint32_t found = hr_tsc_is_invariant() ? HR__CLOCK_TSC : HR__CLOCK_MONOTONIC;

		/* Another thread may have stored the daemon's decision, which has precedence. */
		if (__atomic_compare_exchange_n(&hr__clock_mode, &mode, found, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			mode = found;
	}
	return mode == HR__CLOCK_TSC || (mode == HR__CLOCK_FROZEN && frozen.tsc);
}

bool hr__clock_is_fast(void)
{
	return hr__clock_is_tsc() && !is_frozen();
}

void hr__clock_freeze(void)
{
	if (is_frozen())
		return;
	frozen.tsc = hr__clock_is_tsc();
	frozen.ns = hr__clock_ns();
	frozen.ticks = hr_shim_ticks();
	__atomic_store_n(&hr__clock_mode, HR__CLOCK_FROZEN, __ATOMIC_RELEASE);
}

void hr__clock_monotonic(void)
{
	if (!is_frozen()) /* a frozen clock keeps the unit of its ticks */
		__atomic_store_n(&hr__clock_mode, HR__CLOCK_MONOTONIC, __ATOMIC_RELAXED);
}

uint64_t hr__clock_slow(void)
{
	if (hr_unlikely(is_frozen()))
		return __atomic_add_fetch(&frozen.ticks, 1, __ATOMIC_RELAXED);
	if (hr__clock_is_tsc())
		return hr_tsc_read();
	return hr__clock_ns();
}
