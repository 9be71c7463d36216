/* SPDX-License-Identifier: Apache-2.0 */
/* Which file records leave memory, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/ops.h"
#include "common/filerec.h"

#define PROC 7u
#define DUE  128u

/* One read of each of the files from `first` on, a nanosecond apart; `refs`: descriptors left open on it. */
static void touch(struct hr_filerecs *f, uint32_t first, uint32_t n, int refs)
{
	for (uint32_t file = first; file < first + n; file++) {
		struct hr_file_op op = {.class = HR_CLASS_READ, .count = 1, .start_ns = file};
		uint32_t cached = UINT32_MAX;
		uint32_t i = hr_filerec_get(f, PROC, file, HR_API_POSIX, &cached);

		assert_int_not_equal(i, UINT32_MAX);
		assert_int_equal(cached, i);
		assert_int_equal(hr_filerec_add(f, i, &op), 0);
		if (refs)
			hr_filerec_refs(f, i, refs);
	}
}

/* What is due at `now_ns`: files from `first` on, in order. */
static void assert_due(const struct hr_filerecs *f, uint64_t now_ns, uint32_t first, uint32_t n)
{
	uint32_t due[DUE];

	assert_int_equal(hr_filerecs_due(f, now_ns, due, DUE), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f->v[due[i]].t.file, first + i);
}

static void idle_ones_leave(void **state)
{
	struct hr_filerecs f;

	(void)state;
	hr_filerecs_init(&f);
	touch(&f, 1, 10, 1); /* open: older than all others, and kept */
	touch(&f, 11, HR_FILERECS_IDLE, 0);
	assert_false(hr_filerecs_full(&f));
	assert_due(&f, HR_FILERECS_IDLE, 0, 0);
	touch(&f, 2000, 3, 0);
	assert_true(hr_filerecs_full(&f));
	assert_due(&f, HR_FILERECS_IDLE, 11, HR_FILERECS_LESS + 3);
	/* One that is used again is not the longest idle any more; neither is one that is opened. */
	touch(&f, 11, 1, 0);
	touch(&f, 12, 1, 1);
	assert_due(&f, HR_FILERECS_IDLE, 13, HR_FILERECS_LESS + 2);
	/* Time alone. */
	touch(&f, 13, 2, 1);
	assert_false(hr_filerecs_full(&f));
	assert_due(&f, HR_FILE_IDLE_NS + 17, 15, 3);
	hr_filerecs_done(&f);
}

static void open_ones_leave_last(void **state)
{
	struct hr_filerecs f;
	uint32_t due[DUE];

	(void)state;
	hr_filerecs_init(&f);
	touch(&f, 1, HR_FILERECS_MOST, 1);
	assert_false(hr_filerecs_full(&f));
	touch(&f, 10000, 2, 0);
	assert_true(hr_filerecs_full(&f));
	assert_due(&f, 0, 10000, 2);
	touch(&f, 20000, 3, 1);
	assert_int_equal(hr_filerecs_due(&f, 0, due, DUE), 5);
	assert_int_equal(f.v[due[1]].t.file, 10001);
	assert_int_equal(f.v[due[2]].t.file, 1);
	while (hr_filerecs_due(&f, 0, due, 1))
		hr_filerec_remove(&f, due[0]);
	assert_false(hr_filerecs_full(&f));
	assert_int_equal(f.live, HR_FILERECS_MOST);
	hr_filerecs_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(idle_ones_leave),
	    cmocka_unit_test(open_ones_leave_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
