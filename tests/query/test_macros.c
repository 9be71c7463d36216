/* SPDX-License-Identifier: Apache-2.0 */
/* test_macros.c - macros of queries (query/macros.sql) that need no store */
#include <stdio.h>
#include <stdlib.h>

#include "tests/query/fixture.h"
#include "tests/unit.h"

/* The macros print the numbers of tests/common/numbers.txt as common/text.h does. */
static void macros_print_numbers(void **state)
{
	FILE *in = fopen(HR_NUMBERS, "re");
	char line[256], what[16], value[24], text[32];
	unsigned n = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		char *sql, *want;

		if (sscanf(line, "%15[sd]%*[a-z]", what) != 1) /* a comment, or a count */
			continue;
		assert_int_equal(sscanf(line, "%15s\t%23s\t%31[^\n]", what, value, text), 3);
		assert_true(asprintf(&sql, "SELECT hr_%s(%s)", what, value) > 0);
		assert_true(asprintf(&want, "%s\n", text) > 0);
		fixture_expect(&fix, sql, want);
		free(sql);
		free(want);
		n++;
	}
	assert_true(n >= 50);
	fclose(in);
}

/* Also the args of programs, which may be anything, are asked for the number of a loader. */
static void args_of_loaders_are_found(void **state)
{
	fixture_expect(&fix,
		       "SELECT hr_of_loader('{\"workers\": 0, \"loader\": 3}'), "
		       "hr_of_loader('{\"loader\":0}'), hr_of_loader('{\"loader\":null}'), "
		       "hr_of_loader('{\"loader\":\"a\"}'), hr_of_loader('\"loader\"'), "
		       "hr_of_loader('{\"loader\"'), hr_of_loader(NULL)",
		       "true,true,false,false,false,false,false\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(macros_print_numbers),
	    cmocka_unit_test(args_of_loaders_are_found),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
