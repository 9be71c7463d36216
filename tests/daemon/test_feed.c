/* SPDX-License-Identifier: Apache-2.0 */
/* What probes missed is a loss. The test says what they missed, and takes the notes. */
#define hr_probes_missed fake_missed
#define hr__drain_note	 fake_note
#include "daemon/drain/feed.c" // NOLINT(bugprone-suspicious-include): for its static functions

#include "tests/unit.h"

static struct fake_missed probes_say;
static uint64_t noted[HR_LOSS_REASONS];

void fake_missed(const struct hr_probes *p, struct fake_missed *ret)
{
	*ret = probes_say;
}

void fake_note(struct hr_drain *d, enum hr_loss_reason reason, uint64_t count)
{
	noted[reason] += count;
}

/* The probes count from their start: each sweep notes what is new. */
static void what_probes_missed_is_noted_once(void **state)
{
	struct hr_feed f = {0};

	probes_say = (struct fake_missed){.calls = 3, .processes = 1, .compat = 2};
	f.missed = 5;
	for (int sweep = 0; sweep < 3; sweep++) {
		note_missed(&f);
		assert_int_equal(noted[HR_LOSS_PROBE_FULL], 3 + 1 + 5);
		assert_int_equal(noted[HR_LOSS_32BIT], 2);
	}
	probes_say.compat = 3;
	f.missed = 6;
	for (int sweep = 0; sweep < 3; sweep++) {
		note_missed(&f);
		assert_int_equal(noted[HR_LOSS_PROBE_FULL], 3 + 1 + 6);
		assert_int_equal(noted[HR_LOSS_32BIT], 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_probes_missed_is_noted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
