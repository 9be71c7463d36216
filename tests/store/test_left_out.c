/* SPDX-License-Identifier: Apache-2.0 */
/* When a person hears of what default excludes left out, and in which words. */
#include "store/left_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"

#define WHY ": excluded by default (--include lists the paths to record instead)"

static void add(struct hr_left_out *l, const char *pattern, uint64_t opens)
{
	assert_int_equal(hr_left_out_add(l, pattern, strlen(pattern), opens), 0);
}

/* `want` NULL: nothing is said. */
static void says(const struct hr_left_out *l, uint64_t recorded, const char *want)
{
	char *text = hr_left_out_text(l, recorded);

	if (want == NULL)
		assert_null(text);
	else
		assert_string_equal(text, want);
	free(text);
}

static void test_words(void **state)
{
	struct hr_left_out l = {0};

	says(&l, 0, NULL);
	add(&l, "/var", 210);
	add(&l, "/opt", 12000);
	add(&l, "*.tar", 300);
	add(&l, "/opt", 340);
	add(&l, "", 150);
	add(&l, "/data\n", 100);
	add(&l, "/srv", 99);
	says(&l, 0,
	     "12,340 opens below /opt, 300 of *.tar, 210 below /var, 150 by other patterns, "
	     "100 below /data\\x0A" WHY);
	assert_int_equal(l.n, 6);
	assert_string_equal(l.v[5].pattern, "/srv");
	hr_left_out_done(&l);
	assert_int_equal(l.n, 0);
}

/* A tenth of all opens, a hundred at least. */
static void test_shares(void **state)
{
	struct hr_left_out l = {0};

	add(&l, "/usr", 99);
	says(&l, 0, NULL);
	add(&l, "/usr", 1);
	says(&l, 0, "100 opens below /usr" WHY);
	says(&l, 900, "100 opens below /usr" WHY);
	says(&l, 920, NULL);
	says(&l, UINT64_MAX, NULL);
	hr_left_out_done(&l);
}

/* What every program opens by itself. */
static void test_system(void **state)
{
	static const char *const folders[] = {"/etc",  "/dev", "/proc/", "/sys",   "/bin",
					      "/boot", "/lib", "/lib64", "/sbin/x"};
	struct hr_left_out l = {0};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		add(&l, folders[i], 1000000);
	says(&l, 0, NULL);
	add(&l, "/library", 200);
	says(&l, 0, "200 opens below /library" WHY);
	add(&l, "/run", 100); /* with /run/media */
	says(&l, 0, "200 opens below /library, 100 below /run" WHY);
	hr_left_out_done(&l);
}

/* Clients may say what they like. */
static void test_limits(void **state)
{
	struct hr_left_out l = {0};
	char pattern[32];

	for (unsigned i = 0; i < 5000; i++) {
		snprintf(pattern, sizeof(pattern), "/%u", i);
		add(&l, pattern, 1);
	}
	assert_in_range(l.n, 2, 1000);
	assert_string_equal(l.v[0].pattern, "");
	add(&l, "/0", UINT64_MAX);
	add(&l, "/0", UINT64_MAX);
	add(&l, "", UINT64_MAX);
	assert_true(l.v[0].opens == UINT64_MAX && l.v[1].opens == UINT64_MAX);
	hr_left_out_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_system),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
