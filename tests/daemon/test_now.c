/* SPDX-License-Identifier: Apache-2.0 */
/* What a job did between two pictures: the operations of each rank and folder, once, and what is stuck. */

#include <stdio.h>
#include <string.h>

#include "daemon/engine/live.h"
#include "daemon/engine/mounts.h"
#include "daemon/node/now.h"
#include "proto/now.h"
#include "rig.h"
#include "tests/unit.h"

#define NONE HR_OFFSET_NONE

/* What happened since *before, which becomes the new picture. */
static struct hr_now_message *since(struct rig *r, struct hr_live_picture **before,
				    const struct hr_live_cell *cells, size_t n)
{
	struct hr_live_picture *now = rig_picture(r, cells, n);
	struct hr_now_message *m = NULL;

	assert_int_equal(hr_now_compare(&(*before)->m, &now->m, &m), 0);
	hr_live_free(*before);
	*before = now;
	return m;
}

static void use_file(struct rig *r, uint64_t proc, const char *path, unsigned stats, unsigned reads)
{
	struct hr_record s[64];
	unsigned n = rig_path(s, path, false);

	for (unsigned i = 0; i < stats; i++)
		s[n++] = rig_op(r, "stat", path, -1, 0, HR_ASKED_NONE, NONE, 0, 1000);
	for (unsigned i = 0; i < reads; i++)
		s[n++] = rig_op(r, "pread", path, 5, 100, 100, 0, 0, 1000);
	rig_records(r, proc, s, n);
}

static const Headrace__NowRank *rank_of(const struct hr_now_message *m, uint32_t rank_plus1)
{
	for (size_t i = 0; i < m->m.n_ranks; i++)
		if (m->m.ranks[i]->rank_plus1 == rank_plus1)
			return m->m.ranks[i];
	fail_msg("no rank %u", rank_plus1);
	return NULL;
}

static void counts_each_operation_once(void **state)
{
	struct hr_live_picture *before;
	struct hr_now_message *m;
	struct rig r;
	uint64_t rank0, rank1;

	rig_init(&r);
	rank0 = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=0", "WORLD_SIZE=2"}});
	rank1 = rig_attach(&r, &(struct rig_hello){.pid = 11, .env = {"RANK=1", "WORLD_SIZE=2"}});
	use_file(&r, rank0, "/data/many/a", 7, 7); /* before the first picture */
	before = rig_picture(&r, NULL, 0);
	use_file(&r, rank0, "/data/many/a", 20, 2);
	use_file(&r, rank0, "/data/many/b", 10, 0);
	use_file(&r, rank1, "/data/few/c", 0, 3);
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	m = since(&r, &before, NULL, 0);
	assert_true(m->m.interval_ns >= 2 * RIG_SECOND);
	assert_int_equal(m->m.processes, 2);
	assert_int_equal(rank_of(m, 1)->sum->metadata, 30);
	assert_int_equal(rank_of(m, 1)->sum->reads, 2);
	assert_int_equal(rank_of(m, 1)->sum->bytes_read, 200);
	assert_int_equal(rank_of(m, 1)->sum->dur_ns, 32000);
	assert_int_equal(rank_of(m, 2)->sum->metadata, 0);
	assert_int_equal(rank_of(m, 2)->sum->reads, 3);
	assert_int_equal(m->m.n_folders, 2);
	assert_int_equal(m->m.folders[0]->path.len, strlen("/data/many"));
	assert_memory_equal(m->m.folders[0]->path.data, "/data/many", strlen("/data/many"));
	assert_int_equal(m->m.folders[0]->ops, 32);
	assert_int_equal(m->m.named_ops, 35);
	hr_now_message_free(m);
	/* The window of the sums was sent in between; then nothing more happened. */
	rig_tick(&r, r.now + 12 * RIG_SECOND);
	m = since(&r, &before, NULL, 0);
	assert_int_equal(m->m.named_ops, 0);
	assert_int_equal(rank_of(m, 1)->sum->metadata, 0);
	hr_now_message_free(m);
	hr_live_free(before);
	rig_done(&r);
}

/* Mounts with operations, the busiest first. */
static void the_busiest_mounts_first(void **state)
{
	char mountinfo[] = "36 35 98:7 / /data rw - lustre a@tcp:/b rw\n"
			   "37 35 98:8 / /scratch rw - xfs /dev/sdb rw\n"
			   "38 35 98:9 / /idle rw - ext4 /dev/sdc rw\n";
	union {
		struct hr_entry_mounts m;
		uint8_t bytes[512];
	} in = {0};
	const struct hr_mounts none = {0};
	struct hr_live_picture *before;
	struct hr_now_message *m;
	struct rig r;
	uint64_t proc, used;

	rig_init(&r);
	used = hr_mountinfo_rows(&none, mountinfo, in.m.rows, 256, &in.m.n);
	rig_entry(&r, HR_ENTRY_MOUNTS, &in, sizeof(in.m) + used);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	use_file(&r, proc, "/idle/a", 40, 0);
	before = rig_picture(&r, NULL, 0);
	use_file(&r, proc, "/data/a", 3, 1);
	use_file(&r, proc, "/scratch/a", 1, 7);
	use_file(&r, proc, "/nowhere/a", 20, 0);
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	m = since(&r, &before, NULL, 0);
	assert_int_equal(m->m.n_mounts, 2);
	assert_memory_equal(m->m.mounts[0]->path.data, "/scratch", strlen("/scratch"));
	assert_string_equal(m->m.mounts[0]->fs_type, "xfs");
	assert_int_equal(m->m.mounts[0]->sum->metadata, 1);
	assert_int_equal(m->m.mounts[0]->sum->bytes_read, 700);
	assert_memory_equal(m->m.mounts[1]->path.data, "/data", strlen("/data"));
	assert_int_equal(m->m.mounts[1]->sum->reads, 1);
	assert_int_equal(m->m.mounts[1]->sum->metadata, 3);
	hr_now_message_free(m);
	hr_live_free(before);
	rig_done(&r);
}

/* Each class counts in its own field; a seek, sync or mapping has none, but its time counts. */
static void kinds_of_operations(void **state)
{
	static const char *const names[] = {"open64", "close", "stat",	"mkdir", "rename", "read",
					    "read",   "write", "lseek", "fsync", "mmap"};
	struct hr_live_picture *before;
	struct hr_record s[64];
	struct hr_now_message *m;
	const Headrace__NowSum *sum;
	struct rig r;
	unsigned n;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=0", "WORLD_SIZE=1"}});
	before = rig_picture(&r, NULL, 0);
	n = rig_path(s, "/data/f", false);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		s[n++] = rig_op(&r, names[i], "/data/f", 5, 50, 100, NONE, 0, 1 << i);
	rig_records(&r, proc, s, n);
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	m = since(&r, &before, NULL, 0);
	sum = rank_of(m, 1)->sum;
	assert_int_equal(sum->metadata, 5);
	assert_int_equal(sum->reads, 2);
	assert_int_equal(sum->writes, 1);
	assert_int_equal(sum->bytes_read, 100);
	assert_int_equal(sum->bytes_written, 50);
	assert_int_equal(sum->dur_ns, (1 << 11) - 1);
	hr_now_message_free(m);
	hr_live_free(before);
	rig_done(&r);
}

/* Ranks with a training loop come first, so that the limit leaves out none of their waits. */
static void ranks_with_a_loop_first(void **state)
{
	struct hr_live_picture *before, *now;
	struct hr_now_message *m;
	struct rig r;
	uint64_t busy;

	rig_init(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=0", "WORLD_SIZE=3"}});
	busy = rig_attach(&r, &(struct rig_hello){.pid = 11, .env = {"RANK=1", "WORLD_SIZE=3"}});
	rig_attach(&r, &(struct rig_hello){.pid = 12, .env = {"RANK=2", "WORLD_SIZE=3"}});
	before = rig_picture(&r, NULL, 0);
	use_file(&r, busy, "/data/a", 20, 2);
	rig_tick(&r, r.now + RIG_SECOND);
	now = rig_picture(&r, NULL, 0);
	assert_int_equal(now->m.n_processes, 3);
	before->m.processes[2]->wait_ns = 30;
	before->m.processes[2]->steps = 4;
	now->m.processes[2]->wait_ns = 130;
	now->m.processes[2]->steps = 9;
	assert_int_equal(hr_now_compare(&before->m, &now->m, &m), 0);
	assert_int_equal(m->m.n_ranks, 3);
	assert_int_equal(m->m.ranks[0]->rank_plus1, 3);
	assert_int_equal(m->m.ranks[0]->loops, 1);
	assert_int_equal(m->m.ranks[0]->wait_ns, 100);
	assert_int_equal(m->m.ranks[0]->steps, 5);
	assert_int_equal(m->m.ranks[1]->rank_plus1, 2);
	assert_int_equal(m->m.ranks[1]->loops, 0);
	hr_now_message_free(m);
	hr_live_free(before);
	hr_live_free(now);
	rig_done(&r);
}

static void the_longest_operations_in_flight(void **state)
{
	struct hr_live_cell cells[HR_NOW_STUCK + 6] = {0};
	struct hr_live_picture *before;
	struct hr_now_message *m;
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=4", "WORLD_SIZE=8"}});
	before = rig_picture(&r, NULL, 0);
	rig_tick(&r, r.now + 100 * RIG_SECOND);
	for (size_t i = 0; i < HR_NOW_STUCK + 6; i++)
		cells[i] = (struct hr_live_cell){.proc = proc,
						 .age_ns = (i + 6) * RIG_SECOND / 2,
						 .cell.op = hr_op_by_name("read")};
	m = since(&r, &before, cells, HR_NOW_STUCK + 6);
	assert_int_equal(m->m.n_stuck, HR_NOW_STUCK);
	assert_string_equal(m->m.stuck[0]->op, "read");
	assert_int_equal(m->m.stuck[0]->rank_plus1, 5);
	assert_int_equal(m->m.stuck[0]->age_ns, (HR_NOW_STUCK + 11) * RIG_SECOND / 2);
	for (size_t i = 1; i < m->m.n_stuck; i++)
		assert_true(m->m.stuck[i]->age_ns <= m->m.stuck[i - 1]->age_ns);
	hr_now_message_free(m);
	hr_live_free(before);
	rig_done(&r);
}

/* Processes of a rank that save one after the other make one checkpoint. */
static void last_checkpoint(void **state)
{
	static const uint64_t times[][2] = {{100, 103}, {104, 106}, {50, 60}};
	struct hr_live_picture *before, *now;
	struct hr_now_message *m;
	struct rig r;

	rig_init(&r);
	for (int i = 0; i < 3; i++)
		rig_attach(&r,
			   &(struct rig_hello){.pid = 10 + i, .env = {"RANK=0", "WORLD_SIZE=2"}});
	before = rig_picture(&r, NULL, 0);
	rig_tick(&r, r.now + RIG_SECOND);
	now = rig_picture(&r, NULL, 0);
	assert_int_equal(now->m.n_processes, 3);
	for (size_t i = 0; i < 3; i++) {
		now->m.processes[i]->save_start_ns = times[i][0] * RIG_SECOND;
		now->m.processes[i]->save_end_ns = times[i][1] * RIG_SECOND;
	}
	assert_int_equal(hr_now_compare(&before->m, &now->m, &m), 0);
	assert_int_equal(rank_of(m, 1)->save_start_ns, 100 * RIG_SECOND);
	assert_int_equal(rank_of(m, 1)->save_end_ns, 106 * RIG_SECOND);
	hr_now_message_free(m);
	hr_live_free(before);
	hr_live_free(now);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counts_each_operation_once),
	    cmocka_unit_test(the_busiest_mounts_first),
	    cmocka_unit_test(kinds_of_operations),
	    cmocka_unit_test(the_longest_operations_in_flight),
	    cmocka_unit_test(last_checkpoint),
	    cmocka_unit_test(ranks_with_a_loop_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
