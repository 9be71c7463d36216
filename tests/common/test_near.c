/* SPDX-License-Identifier: Apache-2.0 */
/* common/near.h: which candidate a typed word probably means, and how messages show both. */
#include "common/near.h"

#include <string.h>

#include "tests/unit.h"

#define WORDS "run query diagnose what-if status top job level doctor ls"

static void assert_near(const char *typed, const char *want)
{
	struct hr_near near = hr_near(typed);

	hr_near_add_list(&near, WORDS);
	assert_string_equal(near.best, want);
}

static void assert_near_option(const char *typed, const char *want)
{
	struct hr_near near = hr_near(typed);

	hr_near_add(&near, "--job");
	assert_string_equal(near.best, want);
}

static void test_near_words(void **state)
{
	assert_near_option("--jbo", "--job");
	assert_near("qurey", "query");	/* neighbours are swapped */
	assert_near("querry", "query"); /* one letter more */
	assert_near("qeury", "query");
	assert_near("diagnosis", "diagnose");
	assert_near("whatif", "what-if");
	assert_near("diag", "diagnose"); /* a beginning */
	assert_near("s", "status");
	assert_near("rum", "run");
	assert_near("sl", "ls");
}

static void test_far_words(void **state)
{
	assert_near_option("--foo", ""); /* dashes do not count */
	assert_near("xyz", "");
	assert_near("", "");
	assert_near("no", ""); /* "job" and "top" differ by more than half */
	assert_near("report", "");
	assert_near("queryxxx", "");
}

static void test_near_is_nearest(void **state)
{
	struct hr_near near = hr_near("file");

	hr_near_add(&near, "files");
	hr_near_add(&near, "mile");
	assert_string_equal(near.best, "files"); /* equally near, and first */
	near = hr_near("xfiles");
	hr_near_add_list(&near, "file|files");
	assert_string_equal(near.best, "files");
}

static void test_near_text(void **state)
{
	struct hr_near near = hr_near("a\x1b[1mb");
	char longest[5000];

	assert_string_equal(hr_near_text(&near).s, "'a\\x1B[1mb'");
	near = hr_near("qurey\n");
	hr_near_add(&near, "query");
	assert_string_equal(hr_near_text(&near).s, "'qurey\\x0A'; did you mean 'query'?");
	memset(longest, '\n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	near = hr_near(longest);
	hr_near_add(&near, "query");
	assert_true(strlen(hr_near_text(&near).s) < 210);
	assert_string_equal(hr_near_text(&near).s + strlen(hr_near_text(&near).s) - 8, "\\x0A...'");
	longest[255] = '\0';
	hr_near_add(&near, "\n\n");
	assert_string_equal(near.best, "");
	hr_near_add(&near, longest); /* both are shortened */
	assert_int_equal(strlen(hr_near_text(&near).s), 2 * strlen(hr_near_quoted(longest).s) + 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_near_words),
	    cmocka_unit_test(test_far_words),
	    cmocka_unit_test(test_near_is_nearest),
	    cmocka_unit_test(test_near_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
