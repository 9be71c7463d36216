/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/service/policy.h"
#include "proto/abi.h"
#include "tests/unit.h"

static void test_rules(void **state)
{
	assert_true(hr_policy_valid(NULL));
	assert_true(hr_policy_valid(""));
	assert_true(hr_policy_valid("gpu=trace,debug=off,a=asked,b=record,c=counters"));
	assert_false(hr_policy_valid("gpu"));
	assert_false(hr_policy_valid("=off"));
	assert_false(hr_policy_valid("gpu=of"));
	assert_false(hr_policy_valid("gpu=offf"));
	assert_false(hr_policy_valid("gpu=off,,debug=off"));
	assert_false(hr_policy_valid("gpu=off debug=off"));
}

static void assert_decides(const struct hr_policy_rules *rules, uint32_t uid, const char *partition,
			   enum hr_policy policy, int level)
{
	struct hr_decision d = hr_policy_decide(rules, uid, partition);

	assert_int_equal(d.policy, policy);
	assert_int_equal(d.level, level);
}

/* User before partition before all. */
static void test_who_decides(void **state)
{
	const struct hr_policy_rules rules = {
	    .policy = HR_POLICY_ASKED,
	    .partitions = "gpu=trace,debug=off,gpu2=record,again=off,again=record",
	    .users = "games=off,7=counters",
	};
	const struct hr_policy_rules none = {.policy = HR_POLICY_OFF};

	assert_decides(&rules, 0, NULL, HR_POLICY_ASKED, -1);
	assert_decides(&rules, 0, "other", HR_POLICY_ASKED, -1);
	assert_decides(&rules, 0, "gp", HR_POLICY_ASKED, -1);
	assert_decides(&rules, 0, "gpu", HR_POLICY_RECORD, HR_LEVEL_TRACE);
	assert_decides(&rules, 0, "gpu2", HR_POLICY_RECORD, -1);
	assert_decides(&rules, 0, "debug", HR_POLICY_OFF, -1);
	assert_decides(&rules, 0, "again", HR_POLICY_RECORD, -1);
	assert_decides(&rules, 5, "gpu", HR_POLICY_OFF, -1); /* games */
	assert_decides(&rules, 7, "debug", HR_POLICY_RECORD, HR_LEVEL_COUNTERS);
	assert_decides(&rules, 4000000000u, "gpu", HR_POLICY_RECORD, HR_LEVEL_TRACE); /* no name */
	assert_decides(&none, 0, NULL, HR_POLICY_OFF, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_who_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
