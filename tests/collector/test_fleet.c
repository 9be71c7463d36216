/* SPDX-License-Identifier: Apache-2.0 */
/* What all jobs do now: sums over nodes, order, who sees which jobs, silent nodes, and impossible messages. */
#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/fleet.h"
#include "proto/now.h"

#define SECOND UINT64_C(1000000000)
#define ALICE  1000u
#define BOB    1001u
#define MANY   1000000u

static struct hr_fleet fleet;
static struct hr_arena memory;
static Headrace__Fleet seen;

static struct hr_fleet_stream *node(const char *job, const char *name)
{
	Headrace__Open open = HEADRACE__OPEN__INIT;
	struct hr_fleet_stream *s;

	open.job = (char *)(uintptr_t)job;
	open.node = (char *)(uintptr_t)name;
	s = hr_fleet_add(&fleet, &open);
	assert_non_null(s);
	return s;
}

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

/* In two seconds: one rank, which made `stats` and `reads` of 1 KiB on `mount`, all in `folder`. */
static void did(struct hr_fleet_stream *s, uint32_t uid, uint32_t rank, uint64_t stats,
		uint64_t reads, const char *mount, const char *folder, uint64_t at_ms)
{
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__NowSum sum = HEADRACE__NOW_SUM__INIT;
	Headrace__NowRank r = HEADRACE__NOW_RANK__INIT, *ranks = &r;
	Headrace__NowMount m = HEADRACE__NOW_MOUNT__INIT, *mounts = &m;
	Headrace__NowFolder f = HEADRACE__NOW_FOLDER__INIT, *folders = &f;

	sum.metadata = stats;
	sum.reads = reads;
	sum.bytes_read = reads * 1024;
	r.rank_plus1 = rank + 1;
	r.sum = &sum;
	r.loops = 1;
	r.wait_ns = SECOND;
	r.steps = 10;
	m.path = bytes(mount);
	m.fs_type = "lustre";
	m.sum = &sum;
	f.path = bytes(folder);
	f.ops = 3;
	now.interval_ns = 2 * SECOND;
	now.uid = uid;
	now.user = uid == ALICE ? "alice" : "bob";
	now.name = "train";
	now.processes = 1;
	now.named_ops = 4;
	now.n_ranks = now.n_mounts = now.n_folders = 1;
	now.ranks = &ranks;
	now.mounts = &mounts;
	now.folders = &folders;
	assert_int_equal(hr_fleet_take(s, &now, at_ms), 0);
}

/* Looks at the jobs of `uid`; 0: at all. */
static void look(const char *job, const char *by, uint32_t uid, uint64_t at_ms)
{
	const struct hr_fleet_view view = {
	    .all = uid == 0, .uid = uid, .max_jobs = 10, .max_stuck = HR_FLEET_STUCK};
	Headrace__Look l = HEADRACE__LOOK__INIT;

	hr_arena_free(&memory);
	l.job = (char *)(uintptr_t)job;
	l.by = (char *)(uintptr_t)by;
	assert_int_equal(hr_fleet_look(&fleet, &l, &view, at_ms, &memory, &seen), 0);
}

static void sums_and_order(void **state)
{
	struct hr_fleet_stream *s[] = {node("storm", "n1"), node("storm", "n2"),
				       node("train", "n3")};

	(void)state;
	did(s[0], ALICE, 0, 100, 0, "/scratch", "/scratch/many", 1000);
	did(s[1], ALICE, 1, 300, 0, "/scratch", "/scratch/many", 1000);
	did(s[2], BOB, 0, 20, 2000, "/scratch", "/scratch/data", 1000);
	look("", "metadata", 0, 1500);
	assert_int_equal(seen.jobs_total, 2);
	assert_string_equal(seen.jobs[0]->job, "storm");
	assert_string_equal(seen.jobs[0]->user, "alice");
	assert_int_equal(seen.jobs[0]->nodes, 2);
	assert_int_equal(seen.jobs[0]->ranks, 2);
	assert_float_equal(seen.jobs[0]->rate->metadata, 200, 1e-9);
	assert_float_equal(seen.jobs[0]->waiting, 1, 1e-9);
	assert_float_equal(seen.jobs[0]->steps, 10, 1e-9);
	assert_string_equal(seen.jobs[0]->rank->node, "n2");
	assert_int_equal(seen.jobs[0]->rank->rank_plus1, 2);
	assert_float_equal(seen.jobs[0]->folder->share, 0.75, 1e-9);
	assert_string_equal(seen.jobs[0]->folder->node, "n2");
	assert_int_equal(seen.n_mounts, 1);
	assert_float_equal(seen.mounts[0]->rate->metadata, 210, 1e-9);
	assert_float_equal(seen.mounts[0]->rate->bytes_read, 1024000, 1e-6);
	assert_string_equal(seen.mounts[0]->job, "train");
	assert_float_equal(seen.mounts[0]->share, 1010 / 1210.0, 1e-9);
	assert_int_equal(seen.loops, 3);
	look("", "bytes", 0, 1500);
	assert_string_equal(seen.jobs[0]->job, "train");
	look("storm", "", 0, 1500);
	assert_int_equal(seen.n_jobs, 1);
	for (size_t i = 0; i < 3; i++)
		hr_fleet_remove(s[i]);
	look("", "", 0, 1500);
	assert_int_equal(seen.jobs_total, 0);
	hr_arena_free(&memory);
}

static void users_see_their_own_jobs(void **state)
{
	struct hr_fleet_stream *a = node("same", "n1"), *b = node("same", "n2");

	(void)state;
	did(a, ALICE, 0, 100, 0, "/a", "/a", 1);
	did(b, BOB, 0, 100, 0, "/b", "/b", 1);
	look("", "", BOB, 2);
	assert_int_equal(seen.jobs_total, 1);
	assert_string_equal(seen.jobs[0]->user, "bob");
	assert_int_equal(seen.n_mounts, 1);
	assert_memory_equal(seen.mounts[0]->path.data, "/b", 2);
	look("", "", 0, 2); /* the same id of two users is two jobs */
	assert_int_equal(seen.jobs_total, 2);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_arena_free(&memory);
}

static void silent_nodes_have_no_rates(void **state)
{
	struct hr_fleet_stream *a = node("job", "n1"), *b = node("job", "n2"),
			       *c = node("job", "n3");

	(void)state;
	did(a, ALICE, 0, 100, 0, "/a", "/a", 1000);
	did(b, ALICE, 1, 100, 0, "/a", "/a", 1000 + HR_NOW_FRESH_MS);
	look("", "", 0, 1001 + HR_NOW_FRESH_MS);
	assert_int_equal(seen.jobs[0]->nodes, 1);
	assert_int_equal(seen.jobs[0]->silent_nodes, 1); /* n3 has never sent any */
	assert_string_equal(seen.jobs[0]->silent_node, "n1");
	assert_int_equal(seen.jobs[0]->silent_ms, HR_NOW_FRESH_MS + 1);
	assert_float_equal(seen.jobs[0]->rate->metadata, 50, 1e-9);
	hr_fleet_note_frame(a, 4000);
	look("", "", 0, 1001 + HR_NOW_FRESH_MS);
	assert_int_equal(seen.jobs[0]->silent_ms, HR_NOW_FRESH_MS + 1001 - 4000);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_fleet_remove(c);
	hr_arena_free(&memory);
}

/* A rank that saved from `start` to `end`, in seconds. */
static void saved(struct hr_fleet_stream *s, uint64_t start, uint64_t end)
{
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__NowRank r[2] = {HEADRACE__NOW_RANK__INIT, HEADRACE__NOW_RANK__INIT};
	Headrace__NowRank *ranks[2] = {&r[0], &r[1]};

	r[0].rank_plus1 = 1;
	r[1].rank_plus1 = 2;
	r[1].save_start_ns = start * SECOND;
	r[1].save_end_ns = end * SECOND;
	now.interval_ns = SECOND;
	now.n_ranks = 2;
	now.ranks = ranks;
	assert_int_equal(hr_fleet_take(s, &now, 1000), 0);
}

static void slow_checkpoints(void **state)
{
	struct hr_fleet_stream *a = node("job", "n1"), *b = node("job", "n2");

	(void)state;
	saved(a, 0, 0);
	saved(b, 0, 0);
	look("", "", 0, 1000);
	assert_null(seen.jobs[0]->save);
	for (uint64_t i = 0; i < 40; i++) { /* it lasts for 2 s, or sometimes for 9 s */
		saved(a, 100 * i, 100 * i + 1);
		saved(a, 100 * i, 100 * i + (i % 5 == 0 ? 9 : 2));
		saved(b, 1, 50);
		look("", "", 0, 1000);
		if (i < 3)
			assert_int_equal(seen.jobs[0]->save->usual_ns, 0);
	}
	assert_int_equal(seen.jobs[0]->save->dur_ns, 2 * SECOND);
	saved(a, 4000, 4007);
	look("", "", 0, 1000);
	assert_string_equal(seen.jobs[0]->save->node, "n1");
	assert_int_equal(seen.jobs[0]->save->rank_plus1, 2);
	assert_int_equal(seen.jobs[0]->save->dur_ns, 7 * SECOND);
	assert_int_equal(seen.jobs[0]->save->usual_ns, 2 * SECOND);
	saved(a, 5000, 4999); /* impossible, and then far in the future */
	saved(a, UINT64_MAX / SECOND - 1, UINT64_MAX / SECOND);
	look("", "", 0, 1000);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_arena_free(&memory);
}

static void impossible_messages(void **state)
{
	struct hr_fleet_stream *s = node("job", "n1");
	Headrace__NowRank row = HEADRACE__NOW_RANK__INIT, **ranks = calloc(MANY, sizeof(*ranks));
	Headrace__NowStuck stuck = HEADRACE__NOW_STUCK__INIT, *stucks[1000];
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__Look l = HEADRACE__LOOK__INIT;
	char *path = calloc(1, MANY);

	(void)state;
	assert_non_null(ranks);
	assert_non_null(path);
	assert_int_equal(hr_fleet_take(s, &now, 1), -EINVAL); /* no interval */
	now.interval_ns = UINT64_MAX;
	assert_int_equal(hr_fleet_take(s, &now, 1), -EINVAL);
	now.interval_ns = 1;
	row.rank_plus1 = UINT32_MAX;
	row.loops = UINT32_MAX;
	row.wait_ns = row.steps = UINT64_MAX;
	for (size_t i = 0; i < MANY; i++)
		ranks[i] = &row;
	now.ranks = ranks;
	now.n_ranks = MANY;
	memset(path, 'x', MANY - 1);
	stuck.path = bytes(path);
	stuck.op = path;
	for (size_t i = 0; i < 1000; i++)
		stucks[i] = &stuck;
	now.stuck = stucks;
	now.n_stuck = 1000;
	now.user = path;
	assert_int_equal(hr_fleet_take(s, &now, 1), 0);
	look("", "", 0, 1);
	assert_int_equal(seen.jobs[0]->n_stuck, HR_FLEET_STUCK);
	assert_int_equal(seen.jobs[0]->stuck_total, HR_NOW_STUCK);
	assert_int_equal(seen.jobs[0]->stuck[0]->op->path.len, HR_FLEET_PATH);
	assert_int_equal(strlen(seen.jobs[0]->user), 255);
	l.by = "nonsense";
	assert_int_equal(
	    hr_fleet_look(&fleet, &l, &(struct hr_fleet_view){.all = true}, 1, &memory, &seen),
	    -EINVAL);
	hr_fleet_remove(s);
	hr_arena_free(&memory);
	free(ranks);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sums_and_order),
	    cmocka_unit_test(users_see_their_own_jobs),
	    cmocka_unit_test(silent_nodes_have_no_rates),
	    cmocka_unit_test(slow_checkpoints),
	    cmocka_unit_test(impossible_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
