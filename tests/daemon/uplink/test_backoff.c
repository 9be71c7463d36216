/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: spread over 0 to a bound that doubles from 0.2 s to 30 s. */

#include "daemon/base/backoff.h"

#include "tests/unit.h"

static void pauses_stay_within_their_bounds(void **state)
{
	const uint32_t bounds[] = {200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};

	for (uint64_t seed = 1; seed < 2000; seed++) {
		struct hr_backoff b = {.random = seed * UINT64_C(0x9e3779b97f4a7c15)};

		for (unsigned i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
			assert_in_range(hr_backoff_next_ms(&b), 0, bounds[i]);
		b.failed = 0; /* it went well */
		assert_in_range(hr_backoff_next_ms(&b), 0, 200);
	}
}

/* Daemons that fail together come back one by one. */
static void pauses_are_spread(void **state)
{
	unsigned tenths[10] = {0};

	for (uint64_t seed = 1; seed <= 10000; seed++) {
		struct hr_backoff b = {.random = seed * UINT64_C(0x9e3779b97f4a7c15), .failed = 8};

		tenths[hr_backoff_next_ms(&b) * 10 / 30001]++;
	}
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(tenths[i], 850, 1150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pauses_stay_within_their_bounds),
	    cmocka_unit_test(pauses_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
