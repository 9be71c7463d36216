/* SPDX-License-Identifier: Apache-2.0 */
/* test_ops.c - the table of operations as other parts see it */

#include "common/cause.h"
#include "common/ops.h"
#include "tests/unit.h"

static void same_both_ways(const char *text, unsigned id)
{
	assert_int_equal(hr_op_by_name(text), id);
	assert_string_equal(hr_op_info((uint16_t)id)->name, text);
}

static void names_lead_to_ids_and_back(void **state)
{
#define HR_CALL(id, ret, name, ...) same_both_ways(#name, id);
#define HR_KERNEL(id, name, ...)    same_both_ways(#name, id);
#include "proto/calls.def"
#include "proto/kernel.def"
#undef HR_CALL
#undef HR_KERNEL
	assert_int_equal(hr_op_by_name(""), HR_OP_NONE);
	assert_int_equal(hr_op_by_name("rea"), HR_OP_NONE);
	assert_int_equal(hr_op_by_name("readx"), HR_OP_NONE);
}

/* Records are hostile input: any number has an entry. */
static void unknown_ids_have_an_empty_entry(void **state)
{
	for (unsigned op = 0; op <= UINT16_MAX; op++) {
		const struct hr_op_info *info = hr_op_info((uint16_t)op);

		assert_non_null(info);
		if (op < HR_OP_FIRST || op >= HR_OP_MAX) {
			assert_null(info->name);
			assert_int_equal(info->class, HR_CLASS_NONE);
		}
	}
}

static void rows_say_what_they_are(void **state)
{
	const struct hr_op_info *info = hr_op_info(HR_OP_fread);

	assert_int_equal(info->class, HR_CLASS_READ);
	assert_int_equal(info->api, HR_API_STDIO);
	assert_int_equal(info->bytes_rule, HR_BYTES_ITEMS);
	assert_int_equal(hr_op_info(HR_OP_fork)->class, HR_CLASS_HOOK);
	assert_string_equal(hr_class_name(HR_CLASS_READ), "read");
	assert_string_equal(hr_class_name(HR_CLASS_MAP), "map");
	assert_null(hr_class_name(HR_CLASS_HOOK + 1));
	assert_string_equal(hr_api_name(HR_API_URING), "uring");
	assert_int_equal(hr_op_info(HR_OP_io_pread)->api, HR_API_AIO);
	assert_int_equal(hr_op_info(HR_OP_io_uring_read)->class, HR_CLASS_READ);
	assert_int_equal(hr_op_info(HR_OP_io_uring_read)->api, HR_API_URING);
	assert_int_equal(hr_op_info(HR_OP_page_cache_fill)->bytes_rule, HR_BYTES_ASKED);
	assert_int_equal(hr_op_info(HR_OP_major_fault)->class, HR_CLASS_MAP);
	assert_null(hr_api_name(HR_API_URING + 1));
}

static void causes_have_names(void **state)
{
	assert_string_equal(hr_cause_name(HR_CAUSE_SHIM), "shim");
	assert_string_equal(hr_cause_name(HR_CAUSE_LOST), "lost");
	assert_string_equal(hr_cause_name(HR_CAUSE_FAULT), "fault");
	assert_null(hr_cause_name(HR_CAUSE_END));
	for (unsigned cause = 0; cause < HR_CAUSE_END; cause++)
		assert_non_null(hr_cause_name(cause));
}

static void bytes_follow_their_rule(void **state)
{
	assert_int_equal(hr_bytes_moved(HR_BYTES_NONE, 5, 7, 0), UINT64_MAX);
	assert_int_equal(hr_bytes_moved(HR_BYTES_RET, 5, 7, 0), 5);
	assert_int_equal(hr_bytes_moved(HR_BYTES_RET, -5, 7, 0), 0);
	assert_int_equal(hr_bytes_moved(HR_BYTES_ITEMS, 5, 20, 4), 20);
	assert_int_equal(hr_bytes_moved(HR_BYTES_ASKED, 0, 7, 0), 7);
	assert_int_equal(hr_bytes_moved(HR_BYTES_ASKED, -5, 7, 0), 0);
	assert_int_equal(hr_bytes_moved(HR_BYTES_ASKED, 0, HR_ASKED_NONE, 0), 0);
	assert_int_equal(hr_bytes_moved(HR_BYTES_RET, HR_RET_NONE, 7, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_lead_to_ids_and_back),
	    cmocka_unit_test(unknown_ids_have_an_empty_entry),
	    cmocka_unit_test(rows_say_what_they_are),
	    cmocka_unit_test(causes_have_names),
	    cmocka_unit_test(bytes_follow_their_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
