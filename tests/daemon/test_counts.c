/* SPDX-License-Identifier: Apache-2.0 */
/* Totals of the opens that default excludes left out, from the journal to the rows of a process. */

#include <string.h>

#include "common/rollup.h"
#include "rig.h"
#include "tests/unit.h"

static uint64_t left_out(const struct rig *r, uint64_t proc, const char *pattern)
{
	const Headrace__Process *p = rig_process(r, proc);

	for (size_t i = 0; p && i < p->n_excluded; i++)
		if (p->excluded[i]->pattern.len == strlen(pattern) &&
		    memcmp(p->excluded[i]->pattern.data, pattern, strlen(pattern)) == 0)
			return p->excluded[i]->opens;
	return 0;
}

/* Once in a window, at the end, and when all is flushed; the same from a journal that is read again. */
static void excluded_opens_are_totals(void **state)
{
	const uint64_t last = HR_EXCLUDED_KINDS - 1;
	uint64_t n[HR_EXCLUDED_KINDS] = {5, 7, [HR_EXCLUDED_KINDS - 1] = 2};
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10, .defaults = "/opt,*/x,/var"});
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_process(&r, proc)->n_excluded, 0);
	rig_clear(&r);
	rig_excluded(&r, proc, n, HR_EXCLUDED_KINDS);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_null(rig_process(&r, proc)); /* not a row for every open */
	assert_true(hr_engine_waiting(r.engine));
	rig_tick(&r, r.now + HR_WINDOW_NS);
	assert_int_equal(rig_process(&r, proc)->n_excluded, 3);
	assert_int_equal(left_out(&r, proc, "/opt"), 5);
	assert_int_equal(left_out(&r, proc, "*/x"), 7);
	assert_int_equal(left_out(&r, proc, ""), 2);
	rig_clear(&r);
	rig_tick(&r, r.now + HR_WINDOW_NS);
	assert_null(rig_process(&r, proc)); /* nothing new */
	assert_false(hr_engine_waiting(r.engine));
	n[1] = 20;
	rig_excluded(&r, proc, n, HR_EXCLUDED_KINDS);
	rig_entry(&r, HR_ENTRY_SEAL, &(struct hr_entry_seal){0}, sizeof(struct hr_entry_seal));
	assert_int_equal(left_out(&r, proc, "*/x"), 20);
	n[0]--; /* a client rewrites its counters */
	n[2] = UINT64_C(1) << 60;
	n[last] = 3;
	rig_excluded(&r, proc, n, HR_EXCLUDED_KINDS);
	rig_excluded(&r, proc + 1, n, HR_EXCLUDED_KINDS); /* and there is no such process */
	rig_restart(&r);
	n[0] = 6;
	n[2] = 1;
	rig_excluded(&r, proc, n, HR_EXCLUDED_KINDS);
	rig_end(&r, proc, "0");
	n[0] = 100;
	rig_excluded(&r, proc, n, HR_EXCLUDED_KINDS);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(left_out(&r, proc, "/opt"), 6);
	assert_int_equal(left_out(&r, proc, "*/x"), 20);
	assert_int_equal(left_out(&r, proc, "/var"), 1);
	assert_int_equal(left_out(&r, proc, ""), 3);
	rig_done(&r);
}

static void hostile_totals_of_excluded_opens(void **state)
{
	uint64_t n[] = {5, UINT64_C(1) << 60, 1};
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	/* A last pattern without its NUL, and fewer of them than counts. */
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10, .defaults = "/opt,/v"});
	rig_excluded(&r, proc, n, 3);
	n[0] = 4;
	n[1] = 9;
	rig_excluded(&r, proc, n, 3);
	rig_entry(&r, HR_ENTRY_SEAL, &(struct hr_entry_seal){0}, sizeof(struct hr_entry_seal));
	assert_int_equal(left_out(&r, proc, "/opt"), 5);
	assert_int_equal(left_out(&r, proc, "/v"), 9);
	assert_int_equal(left_out(&r, proc, ""), 1);
	assert_int_equal(rig_loss(&r, "hostile"), 2);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(excluded_opens_are_totals),
	    cmocka_unit_test(hostile_totals_of_excluded_opens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
