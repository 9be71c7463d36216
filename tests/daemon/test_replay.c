/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of the engine, and what a replay of the journal makes of them. */

#include <string.h>

#include "daemon/engine/mounts.h"
#include "rig.h"
#include "tests/unit.h"

/* Twelve thousand processes with long command lines: a half has room for all, and what does not fit is counted. */
static void a_snapshot_holds_thousands_of_processes(void **state)
{
	static const unsigned counts[] = {12000, 60000};
	char line[400];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	for (unsigned c = 0; c < 2; c++) {
		struct hr_engine_stats stats;
		uint64_t left_out = 0;
		struct rig r;

		rig_init(&r);
		for (unsigned i = 1; i <= counts[c]; i++) {
			rig_attach(&r, &(struct rig_hello){.pid = 10 + (int)i, .cmdline = line});
			if (i % 2000)
				continue;
			rig_restart(&r);
			rig_tick(&r, r.now + 1);
			left_out += rig_loss(&r, "restart");
		}
		hr_engine_stats_get(r.engine, &stats);
		assert_int_equal(stats.processes + left_out, counts[c]);
		assert_int_equal(left_out == 0, c == 0);
		rig_done(&r);
	}
}

/* Processes that a snapshot had no room for change no frame, nor its number, when it is replayed. */
static void a_full_snapshot_numbers_frames_alike(void **state)
{
	char line[400];
	struct rig r;

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	rig_init(&r);
	for (unsigned i = 1; i <= 60000; i++) {
		rig_attach(&r, &(struct rig_hello){.pid = 10 + (int)i, .cmdline = line});
		if (i % 2000 == 0)
			rig_next_half(&r);
	}
	rig_clear(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 5, .cmdline = line});
	rig_tick(&r, r.now + 1);
	rig_replay(&r);
	rig_done(&r);
}

static void mounts(struct rig *r, char *mountinfo)
{
	union {
		struct hr_entry_mounts m;
		uint8_t bytes[512];
	} in = {0};
	const struct hr_mounts none = {0};
	uint64_t used = hr_mountinfo_rows(&none, mountinfo, in.m.rows, 256, &in.m.n);

	assert_int_equal(in.m.n, 1);
	rig_entry(r, HR_ENTRY_MOUNTS, &in, sizeof(in.m) + used);
}

/* The number of the mount of a file, whose Paths frame is the last one. */
static uint32_t mount_of(struct rig *r, uint64_t proc, const char *path)
{
	struct hr_record s[8];
	const Headrace__Paths *last = NULL;

	rig_records(r, proc, s, rig_path(s, path, false));
	rig_tick(r, r->now + RIG_SECOND);
	for (unsigned i = 0; i < r->n_frames; i++)
		if (r->frames[i]->frame.body_case == HEADRACE__FRAME__BODY_PATHS)
			last = r->frames[i]->frame.paths;
	assert_non_null(last);
	if (last == NULL)
		return 0; /* not reached: the analyzer does not know that the assertion jumps */
	assert_int_equal(last->n_rows, 1);
	assert_int_equal(last->n_mounts, 1);
	assert_int_equal(last->mounts[0]->id, last->rows[0]->mount);
	return last->rows[0]->mount;
}

/* The number of a mount that is no more is not used again, although no snapshot has the mount. */
static void mounts_have_numbers_of_their_own(void **state)
{
	char first[] = "36 35 98:7 / /data rw - lustre a@tcp:/b rw\n";
	char again[] = "36 35 98:9 / /other rw - xfs /dev/sdb rw\n";
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	mounts(&r, first);
	assert_int_equal(mount_of(&r, proc, "/data/x"), 1);
	mounts(&r, again);
	rig_restart(&r);
	assert_int_equal(mount_of(&r, proc, "/other/y"), 2);
	rig_done(&r);
}

struct lost_frames {
	struct rig *r;
	uint64_t first, last; /* numbers of the frames that report the reason frames_lost */
};

static void note_lost_frames(void *arg, struct hr_out_list *out)
{
	struct lost_frames *l = arg;
	struct hr_out *o;

	while ((o = hr_out_list_pop(out))) {
		if (o->frame.body_case == HEADRACE__FRAME__BODY_LOSS &&
		    strcmp(o->frame.loss->rows[0]->reason, "frames_lost") == 0) {
			assert_int_equal(o->frame.loss->n_rows, 1);
			assert_int_equal(o->frame.loss->rows[0]->count, 1);
			if (!l->first)
				l->first = o->frame.seq;
			l->last = o->frame.seq;
		}
		hr_out_free(o, l->r->pool);
	}
}

/* The store has frame 1, and the journal begins later: losses take the numbers between. */
static void frames_that_the_journal_dropped_are_a_loss(void **state)
{
	struct rig r;
	struct hr_engine *next;
	struct lost_frames lost = {.r = &r};
	uint64_t made;

	rig_init(&r);
	for (int i = 0; i < 4; i++) {
		rig_attach(&r, &(struct rig_hello){.pid = 10 + i});
		rig_tick(&r, r.now + 20 * RIG_SECOND);
	}
	rig_checkpoint(&r);
	made = r.frames[r.n_frames - 1]->frame.seq;
	assert_true(made > 3);
	assert_int_equal(hr_engine_new(r.pool, &next), 0);
	assert_int_equal(hr_engine_replay(next, r.journal,
					  &(struct hr_replay){1, note_lost_frames, NULL, &lost}),
			 0);
	assert_int_equal(lost.first, 2);
	assert_int_equal(lost.last, made);
	hr_engine_free(next);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_snapshot_holds_thousands_of_processes),
	    cmocka_unit_test(a_full_snapshot_numbers_frames_alike),
	    cmocka_unit_test(mounts_have_numbers_of_their_own),
	    cmocka_unit_test(frames_that_the_journal_dropped_are_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
