/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of processes with one operation each: every row leaves, few at a time do not, and a replay says the same. */

#include <stdlib.h>
#include <string.h>

#include "common/filerec.h"
#include "rig.h"
#include "tests/unit.h"

#define FILE_A "/data/log"
#define MANY   3000u
#define NONE   HR_OFFSET_NONE

/* From `from` on, so many processes that write once each; all of them live on. */
static void write_once(struct rig *r, uint64_t from, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct hr_record s[8];
		unsigned slots = rig_path(s, FILE_A, false);

		assert_int_equal(rig_attach(r, &(struct rig_hello){.pid = 10 + (int)i}), from + i);
		r->next_index[0] = 0;
		s[slots++] = rig_op(r, "write", FILE_A, 5, 3, 3, NONE, 0, 100);
		rig_records(r, from + i, s, slots);
	}
}

static unsigned frames_of(const struct rig *r, Headrace__Frame__BodyCase body)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n_frames; i++)
		n += r->frames[i]->frame.body_case == body;
	return n;
}

/* Each has one file record, of one write. */
static void assert_file_records(const struct rig *r, uint64_t first, unsigned n)
{
	unsigned *seen = calloc(n, sizeof(*seen));
	const Headrace__FileRecord *row;

	for (unsigned i = 0; (row = rig_filerec(r, FILE_A, i)); i++) {
		assert_in_range(row->proc, first, first + n - 1);
		assert_int_equal(row->writes, 1);
		assert_int_equal(row->bytes_written, 3);
		seen[row->proc - first]++;
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(seen[i], 1);
	free(seen);
}

static void few_frames_of_many_processes(void **state)
{
	unsigned most = MANY / HR_FILERECS_LESS + 2;
	struct rig r;

	rig_init(&r);
	write_once(&r, 1, MANY);
	assert_in_range(frames_of(&r, HEADRACE__FRAME__BODY_FILE_RECORDS), 1, most);
	assert_in_range(frames_of(&r, HEADRACE__FRAME__BODY_PROCESSES), 1, most);
	rig_tick(&r, r.now + 2 * HR_FILE_IDLE_NS);
	assert_file_records(&r, 1, MANY);
	for (unsigned i = 1; i <= MANY; i++)
		assert_non_null(rig_process(&r, i));
	rig_done(&r);
}

/* Of those that end each has its last row, and they are forgotten; others take what they have left. */
static void places_are_used_again(void **state)
{
	struct hr_engine_stats stats;
	struct rig r;

	rig_init(&r);
	write_once(&r, 1, MANY);
	for (unsigned i = 1; i <= MANY; i += 2)
		rig_end(&r, i, "7");
	rig_tick(&r, r.now + RIG_SECOND);
	for (unsigned i = 1; i <= MANY; i++) {
		assert_int_equal(rig_process(&r, i)->end_ns != 0, i % 2);
		assert_string_equal(rig_process(&r, i)->exit, i % 2 ? "7" : "");
	}
	rig_clear(&r);
	write_once(&r, MANY + 1, MANY);
	for (unsigned i = 2; i <= MANY; i += 2)
		rig_end(&r, i, "8");
	rig_tick(&r, r.now + RIG_SECOND);
	for (unsigned i = 1; i <= 2 * MANY; i++) {
		const Headrace__Process *p = rig_process(&r, i);

		if (i > MANY)
			assert_int_equal(p->end_ns, 0);
		else if (i % 2 == 0)
			assert_string_equal(p->exit, "8");
		else
			assert_null(p); /* forgotten: it has no further row */
	}
	hr_engine_stats_get(r.engine, &stats);
	assert_int_equal(stats.processes, MANY);
	rig_done(&r);
}

static void a_killed_daemon_says_the_same_again(void **state)
{
	struct rig r;

	rig_init(&r);
	write_once(&r, 1, MANY / 2);
	rig_checkpoint(&r);
	rig_clear(&r);
	for (unsigned i = 1; i <= MANY / 2; i += 3)
		rig_end(&r, i, "0");
	write_once(&r, MANY / 2 + 1, MANY / 2);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_true(r.n_frames > MANY / 2 / HR_FILERECS_LESS);
	rig_replay(&r);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(few_frames_of_many_processes),
	    cmocka_unit_test(places_are_used_again),
	    cmocka_unit_test(a_killed_daemon_says_the_same_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
