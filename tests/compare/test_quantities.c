/* SPDX-License-Identifier: Apache-2.0 */
/* Each part of each phase belongs to one quantity of level 2, and noise is that of a t interval. */
#include <math.h>
#include <string.h>

#include "compare/noise.h"
#include "compare/quantities.h"
#include "tests/unit.h"

static const char *const phases[] = {"start", "train", "validation", "between", "end"};
static const char *const parts[] = {
#define HR_PART(id, name, ...) name,
#include "query/diagnosis/parts.def"
#undef HR_PART
};

static void partition(void **state)
{
	for (size_t p = 0; p < sizeof(phases) / sizeof(*phases); p++)
		for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
			unsigned leaves = 0;

			for (unsigned q = 0; q < HR_QUANTITIES; q++)
				leaves += hr_quantity_rows[q].level == HR_LEVEL_LEAF &&
					  hr_quantity_has(q, phases[p], parts[i]);
			assert_int_equal(leaves, 1);
			assert_true(hr_quantity_has(HR_QUANTITY_wall, phases[p], parts[i]));
		}
}

/* Each wait for a batch in the training loop is part of the input wait, and nothing else is. */
static void input_wait(void **state)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		bool wait =
		    strncmp(parts[i], "wait_", 5) == 0 && strcmp(parts[i], "wait_hidden") != 0;

		assert_int_equal(hr_quantity_has(HR_QUANTITY_input_wait, "train", parts[i]), wait);
		assert_false(hr_quantity_has(HR_QUANTITY_input_wait, "start", parts[i]));
	}
}

/* Many runs: the interval is that of the runs' own spread. With one run each, it is what is usual. */
static void noise(void **state)
{
	struct hr_compare_sample a = {.mean = 10, .variance = 1, .freedom = 9999, .n = 10000},
				 b = a;
	struct hr_compare_sample one = {.mean = 10, .n = 1};
	double usual = sqrt(2 * (0.3 * 0.3 + 0.05 * 0.05 + 0.03 * 0.03));

	assert_float_equal(hr_noise(&a, &b, 10, false), 2.576 * sqrt(2.0 / 10000), 1e-3);
	assert_float_equal(hr_noise(&one, &one, 10, false), 3.707 * usual, 1e-6);
	assert_float_equal(hr_noise(&one, &one, 10, true), 5.959 * usual, 1e-6);
	b.n = 5;
	b.freedom = 4;
	assert_true(hr_noise(&a, &b, 10, false) > hr_noise(&a, &a, 10, false));
	assert_float_equal(hr_noise(&a, &b, 10, false), hr_noise(&b, &a, 10, false), 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(partition),
	    cmocka_unit_test(input_wait),
	    cmocka_unit_test(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
