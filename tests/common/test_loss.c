/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reasons of loss: their names in stores, their numbers in journals, their sentences.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/loss.h"
#include "tests/unit.h"

/* Stores have these names, and journals their numbers. */
static const char *const names[] = {
    "ring_full",    "detached",	    "torn",	    "hostile",	     "collision",
    "store_full",   "max_size",	    "restart",	    "limit",	     "journal_memory",
    "unattached",   "stray",	    "rollups_full", "files_full",    "journal_damaged",
    "spool_full",   "probe_full",   "regions",	    "probe_restart", "32bit",
    "no_preload",   "frames_lost",  "import_empty", "import_cut",    "import_file",
    "import_lines", "import_names", "import_sums",  "import_kinds",  "import_noted",
    "library",	    "unable",	    "static",	    "out_of_reach",
};

static void assert_text(struct hr_loss_sum loss, const char *expected)
{
	char *text = hr_loss_text(&loss);

	if (expected == NULL)
		assert_null(text);
	else
		assert_string_equal(text, expected);
	free(text);
}

static void test_names_and_numbers(void **state)
{
	assert_int_equal(HR_LOSS_REASONS, sizeof(names) / sizeof(names[0]));
	for (int i = 0; i < HR_LOSS_REASONS; i++) {
		assert_string_equal(hr_loss_name((enum hr_loss_reason)i), names[i]);
		assert_int_equal(hr_loss_by_name(names[i]), i);
	}
	assert_int_equal(hr_loss_by_name("of a later version"), -ENOENT);
}

static void test_every_reason_has_a_sentence(void **state)
{
	for (int i = 0; i < HR_LOSS_REASONS; i++) {
		const char *sentence = hr_loss_sentence((enum hr_loss_reason)i);
		char *text = hr_loss_text(&(struct hr_loss_sum){.reason = names[i], .count = 2});

		assert_true(strlen(sentence) > 10);
		if (i == HR_LOSS_COLLISION || i == HR_LOSS_JOURNAL_MEMORY) {
			assert_null(text); /* nothing is missing */
			continue;
		}
		assert_non_null(strstr(text, "2 "));
		assert_non_null(strstr(text, sentence));
		assert_non_null(strstr(text, names[i]));
		assert_non_null(strstr(text, "; totals are "));
		free(text);
	}
}

static void test_texts(void **state)
{
	assert_text((struct hr_loss_sum){.reason = "torn", .count = 1},
		    "1 operation: the thread was killed while it wrote the record (torn); totals "
		    "are too low");
	assert_text((struct hr_loss_sum){.reason = "store_full", .count = 1200, .bytes = 2048},
		    "1,200 events (2.00 KiB): the disk was full (store_full); totals are not "
		    "affected");
	assert_text((struct hr_loss_sum){.reason = "store_full", .count = 1, .totals_unsure = true},
		    "1 event: the disk was full (store_full)");
	assert_text((struct hr_loss_sum){.reason = "32bit", .count = 2},
		    "I/O of 2 processes: headrace does not record 32-bit programs (32bit); totals "
		    "are too low");
	assert_text((struct hr_loss_sum){.reason = "probe_restart"},
		    "an unknown number of operations: headraced restarted, and only its probes "
		    "could have recorded them (probe_restart); totals are too low");
	assert_text((struct hr_loss_sum){.reason = "ring_full"}, NULL);
	assert_text((struct hr_loss_sum){.reason = "new", .count = 3, .bytes = 10},
		    "3 operations (10 B): unknown reason: a newer headrace recorded it (new)");
}

static void test_programs(void **state)
{
	struct hr_loss_sum loss = {.reason = "no_preload", .count = 1, .program = "/bin/su"};
	char *one = hr_loss_text(&loss), *two;

	loss.count = 2;
	two = hr_loss_text(&loss);
	assert_non_null(strstr(one, "I/O of 1 process (/bin/su): "));
	assert_non_null(strstr(two, "I/O of 2 processes (first: /bin/su): "));
	free(one);
	free(two);
}

static void test_operations(void **state)
{
	assert_true(hr_loss_is_operations("ring_full"));
	assert_true(hr_loss_is_operations("store_full"));
	assert_true(hr_loss_is_operations("hostile"));
	assert_true(hr_loss_is_operations("of a later version"));
	assert_false(hr_loss_is_operations("rollups_full")); /* their events are kept */
	assert_false(hr_loss_is_operations("files_full"));
	assert_false(hr_loss_is_operations("limit"));
	assert_false(hr_loss_is_operations("regions"));
	assert_false(hr_loss_is_operations("frames_lost"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names_and_numbers),
	    cmocka_unit_test(test_every_reason_has_a_sentence),
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_programs),
	    cmocka_unit_test(test_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
