/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas of cgroups that the test writes itself, so that both versions can be tested on any machine;
 * tests/e2e/test_ranks.py has one of the kernel.
 */
#include "daemon/base/cgroup.c" // NOLINT(bugprone-suspicious-include): for its static functions

#include <sys/stat.h>

#include "tests/unit.h"

static char root[64];

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void folder(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int start(void **state)
{
	strcpy(root, "/tmp/hr-quota-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void of_version_2(void **state)
{
	static const struct {
		const char *text;
		uint32_t want;
	} rows[] = {
	    {"max 100000\n", 0},
	    {"150000 100000\n", 1500},
	    {"1000 1000000\n", 1},
	    {"50000 100000\n", 500},
	    {"17592186044415 1000\n", UINT32_MAX},
	    {"", 0},
	    {"\n", 0},
	    {"150000\n", 0},
	    {"150000 0\n", 0},
	    {"150000 -5\n", 0},
	    {"-150000 100000\n", 0},
	    {"99999999999999999999999999 1\n", 0},
	    {"words words\n", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put("cpu.max", rows[i].text);
		assert_int_equal(quota_up(root, "/", true), rows[i].want);
	}
}

static void the_smallest_counts(void **state)
{
	folder("a");
	folder("a/b");
	folder("a/b/c");
	put("a/cpu.max", "200000 100000\n");
	assert_int_equal(quota_up(root, "/a/b/c", true), 2000);
	put("a/b/cpu.max", "max 100000\n");
	assert_int_equal(quota_up(root, "/a/b/c", true), 2000);
	put("a/b/c/cpu.max", "10000 100000\n");
	assert_int_equal(quota_up(root, "/a/b/c", true), 100);
	put("cpu.max", "1000 100000\n");
	assert_int_equal(quota_up(root, "/a/b/c", true), 10);
	assert_int_equal(quota_up(root, "/a/none/of/these", true), 10);
	put("a/b/c/cpu.cfs_quota_us", "-1\n");
	put("a/b/c/cpu.cfs_period_us", "100000\n");
	put("a/b/cpu.cfs_quota_us", "250000\n");
	assert_int_equal(quota_up(root, "/a/b/c", false), 0); /* without a period */
	put("a/b/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota_up(root, "/a/b/c", false), 2500);
}

static void deep_ones(void **state)
{
	char path[3 * PATH_MAX];

	put("cpu.max", "1000 100000\n");
	for (size_t i = 0; i < sizeof(path) - 1; i += 2)
		memcpy(path + i, "/x", 2);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(quota_up(root, path, true), 0);
	path[2 * (LEVELS_MOST - 1)] = '\0';
	assert_int_equal(quota_up(root, path, true), 10);
	path[2 * (LEVELS_MOST - 1)] = '/';
	path[2 * LEVELS_MOST] = '\0';
	assert_int_equal(quota_up(root, path, true), 0);
}

static void controllers(void **state)
{
	assert_true(has_cpu("cpu"));
	assert_true(has_cpu("cpu,cpuacct"));
	assert_true(has_cpu("cpuacct,cpu"));
	assert_false(has_cpu("cpuset"));
	assert_false(has_cpu("cpuacct"));
	assert_false(has_cpu("name=cpu"));
	assert_false(has_cpu(""));
}

static void no_process(void **state)
{
	assert_int_equal(hr_cpu_quota_milli(-1), 0);
	assert_int_equal(hr_cpu_quota_milli(1 << 30), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(of_version_2, start, end),
	    cmocka_unit_test_setup_teardown(the_smallest_counts, start, end),
	    cmocka_unit_test_setup_teardown(deep_ones, start, end),
	    cmocka_unit_test(controllers),
	    cmocka_unit_test(no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
