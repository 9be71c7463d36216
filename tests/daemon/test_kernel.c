/* SPDX-License-Identifier: Apache-2.0 */
/* What probes tell: records without a ring, and sums; beside what shims record, on the same descriptors. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cause.h"
#include "common/event.h"
#include "rig.h"
#include "tests/unit.h"

#define F     "/data/f"
#define G     "/data/g"
#define NONE  HR_OFFSET_NONE
#define ASKED HR_ASKED_NONE

static struct hr_record thread(int tid)
{
	return (struct hr_record){.op = HR_CTL_THREAD, .fd = tid};
}

static void shim(struct rig *r, uint64_t proc, const char *name, const char *path, int fd,
		 int64_t ret, int64_t offset)
{
	struct hr_record rec = rig_op(r, name, path, fd, ret, 100, offset, 0, 10);

	rig_records(r, proc, &rec, 1);
}

static void raw(struct rig *r, uint64_t proc, const char *name, const char *path, int fd,
		int64_t ret, int64_t offset)
{
	struct hr_record s[2] = {thread(77), rig_op(r, name, path, fd, ret, 100, offset, 0, 10)};

	rig_probed(r, proc, s, 2);
}

/* ---- records ---------------------------------------------------------------------------------------- */

static void records_are_like_any(void **state)
{
	struct rig r;
	struct hr_record s[16] = {thread(77)};
	struct hr_event e[4];
	const Headrace__FileRecord *f;
	uint64_t proc;
	unsigned n = 1;

	rig_init(&r);
	r.now += RIG_SECOND / 2; /* attached only now: it had been at work for a while */
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10, .start_time = 9900});
	r.now -= RIG_SECOND / 2;
	n += rig_path(s + n, F, false);
	s[n++] = rig_op(&r, "openat", F, 5, 5, ASKED, NONE, O_RDONLY, 100);
	s[n++] = rig_op(&r, "io_uring_read", F, 5, 60, 100, 4096, 0, 20);
	s[n++] = thread(78);
	s[n++] = rig_op(&r, "pread64", F, 5, 40, 40, 8192, 0, 30);
	rig_probed(&r, proc, s, n);
	rig_end(&r, proc, "0");
	rig_tick(&r, r.now + 12 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 4), 3);
	assert_int_equal(e[0].start_ns, RIG_START);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(e[i].bits, HR_EV_BPF);
		assert_int_equal(e[i].file, rig_file_id(&r, F));
	}
	assert_int_equal(e[1].offset, 4096);
	assert_int_not_equal(e[1].task, e[2].task);
	assert_int_equal(rig_rollup(&r, proc, hr_op_by_name("io_uring_read")).bytes, 60);
	f = rig_filerec(&r, F, 0);
	assert_non_null(f);
	assert_int_equal(f->api, HR_API_URING);
	assert_int_equal(f->bytes_read, 60);
	f = rig_filerec(&r, F, 1);
	assert_non_null(f);
	assert_int_equal(f->opens + f->reads, 2);
	assert_int_equal(f->bytes_read, 40);
	assert_int_equal(rig_process(&r, proc)->start_ns, RIG_START);
	assert_int_equal(rig_loss(&r, "hostile") + rig_loss(&r, "unattached"), 0);
	rig_done(&r);
}

/* A process that says hello twice, or whose daemon dies: it has no ring, and that it was told of is known. */
static void a_restart_knows_who_was_told_of(void **state)
{
	struct rig r;
	uint64_t a, b;

	rig_init(&r);
	a = rig_attach(&r, &(struct rig_hello){.pid = 10});
	b = rig_attach(&r, &(struct rig_hello){.pid = 11});
	raw(&r, a, "read", F, 5, 10, 0);
	rig_restart(&r);
	rig_end(&r, a, "0");
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 0);
	rig_end(&r, b, "0"); /* of this one nothing is known, and it does not connect again */
	rig_tick(&r, r.now + 6 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 1);
	rig_done(&r);
}

/* One entry with a shim's ring and what probes made: an operation never comes before one that it depends on. */
static void runs_are_merged_by_time(void **state)
{
	struct rig r;
	struct {
		struct hr_entry_records e;
		struct hr_run runs[2];
		struct hr_record s[8];
	} in = {.e = {.n_runs = 2}};
	struct hr_record open_f, raw_read, read_f;
	struct hr_event e[4];
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	open_f = rig_op(&r, "open64", F, 5, 5, ASKED, NONE, 0, 10);
	raw_read = rig_op(&r, "read", F, 5, 30, 100, 0, 0, 10);
	read_f = rig_op(&r, "read", F, 5, 77, 77, NONE, 0, 10);
	in.e.proc = proc;
	in.e.sweep_ticks = r.now;
	in.runs[0] = (struct hr_run){0, 0, 2, 0};
	in.runs[1] = (struct hr_run){HR_MAP_KERNEL, 0, 2, 0};
	in.s[0] = open_f;
	in.s[1] = read_f;
	in.s[2] = thread(77);
	in.s[3] = raw_read;
	rig_entry(&r, HR_ENTRY_RECORDS, &in, offsetof(__typeof__(in), s) + 4 * sizeof(in.s[0]));
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 4), 3);
	assert_int_equal(e[1].bits, HR_EV_BPF);
	assert_int_equal(e[2].bits, 0);
	assert_int_equal(e[2].offset, 30); /* the raw read has moved it */
	rig_done(&r);
}

/* ---- descriptors ------------------------------------------------------------------------------------ */

static void raw_calls_move_what_shims_use(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	raw(&r, p, "openat", F, 5, 5, NONE);
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 0); /* opened raw, read by the shim */
	raw(&r, p, "pread64", F, 5, 10, 10);
	raw(&r, p, "read", F, 5, -EINTR, 10);
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 10); /* neither has moved it */
	raw(&r, p, "lseek", F, 5, 4000, 4000);
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 4000);
	raw(&r, p, "dup", F, 5, 9, NONE);
	raw(&r, p, "readv", F, 9, 90, 4010);
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 4100);
	raw(&r, p, "io_uring_read", F, 5, 10, 0); /* elsewhere */
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 4110);
	raw(&r, p, "io_uring_read", F, 5, 10, 4120); /* where it stands: did it name that? */
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), NONE);
	rig_done(&r);
}

static void raw_closes(void **state)
{
	struct rig r;
	struct hr_record s[8];
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, p, s, rig_path(s, F, false));
	shim(&r, p, "open64", F, 5, 5, NONE);
	raw(&r, p, "close", F, 5, 0, NONE);
	rig_tick(&r, r.now + 10 * RIG_SECOND);
	assert_non_null(rig_filerec(&r, F, 0)); /* as after any close */
	shim(&r, p, "read", F, 5, 10, NONE);
	assert_int_equal(rig_last_offset(&r), NONE);
	/* Told when the number is another file's already. */
	shim(&r, p, "open64", F, 6, 6, NONE);
	shim(&r, p, "open64", G, 6, 6, NONE);
	raw(&r, p, "close", F, 6, 0, NONE);
	shim(&r, p, "read", G, 6, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 0);
	/* A descriptor of io_uring's own table is none of the process's. */
	s[0] = thread(77);
	s[1] = rig_op(&r, "io_uring_close", G, 6, 0, ASKED, NONE, 0, 10);
	s[1].bits = HR_REC_VFORK;
	rig_probed(&r, p, s, 2);
	shim(&r, p, "read", G, 6, 10, NONE);
	assert_int_equal(rig_last_offset(&r), 10);
	rig_done(&r);
}

/* ---- sums ------------------------------------------------------------------------------------------- */

static struct hr_kernel_row row(const char *op, const char *path, unsigned cause, uint64_t count,
				uint64_t bytes)
{
	return (struct hr_kernel_row){.file = path ? rig_hash(path) : 0,
				      .count = count,
				      .bytes = bytes,
				      .errors = 1,
				      .dur_ns = 7,
				      .op = hr_op_by_name(op),
				      .cause = (uint16_t)cause};
}

static int frame_of(const struct rig *r, Headrace__Frame__BodyCase body)
{
	for (unsigned i = 0; i < r->n_frames; i++)
		if (r->frames[i]->frame.body_case == body)
			return (int)i;
	return -1;
}

static void sums_add_up(void **state)
{
	struct rig r;
	struct hr_record s[8];
	struct hr_kernel_row rows[] = {row("pread64", F, HR_CAUSE_SHIM, 10, 1000),
				       row("pread64", F, HR_CAUSE_SYSCALL, 3, 300),
				       row("page_cache_fill", F, HR_CAUSE_FILL, 4, 16384),
				       row("read", NULL, HR_CAUSE_UNATTACHED, 2, 20),
				       row("pread64", F, HR_CAUSE_AIO, 5, 50),
				       row("pread64", G, HR_CAUSE_AIO, 6, 60)};
	Headrace__KernelRecord sum;
	uint64_t p;
	uint32_t file;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, p, s, rig_path(s, F, false));
	rows[4].by_kernel = rows[5].by_kernel = 1;
	rig_kernel(&r, p, rows, 6);
	rig_kernel(&r, p, rows, 1);
	assert_true(hr_engine_waiting(r.engine));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(frame_of(&r, HEADRACE__FRAME__BODY_KERNEL_RECORDS), -1);
	rig_end(&r, p, "0");
	rig_tick(&r, r.now + 10 * RIG_SECOND); /* the window is over */
	assert_true(frame_of(&r, HEADRACE__FRAME__BODY_KERNEL_RECORDS) >
		    frame_of(&r, HEADRACE__FRAME__BODY_PATHS));
	assert_true(frame_of(&r, HEADRACE__FRAME__BODY_PROCESSES) >= 0);
	file = rig_file_id(&r, F);
	assert_int_not_equal(file, 0);
	sum = rig_kernel_record(&r, p, file, "pread64", HR_CAUSE_SHIM);
	assert_int_equal(sum.count, 20);
	assert_int_equal(sum.bytes, 2000);
	assert_int_equal(sum.errors, 2);
	assert_int_equal(sum.dur_ns, 14);
	assert_int_equal(rig_kernel_record(&r, p, file, "pread64", HR_CAUSE_SYSCALL).bytes, 300);
	assert_int_equal(rig_kernel_record(&r, p, file, "page_cache_fill", HR_CAUSE_FILL).bytes,
			 16384);
	assert_int_equal(rig_kernel_record(&r, p, 0, "read", HR_CAUSE_UNATTACHED).count, 2);
	/* The kernel's name of what the shim recorded, which may have used a symbolic link. */
	assert_int_equal(rig_kernel_record(&r, p, file, "pread64", HR_CAUSE_AIO).count, 5);
	assert_int_equal(rig_kernel_record(&r, p, 0, "pread64", HR_CAUSE_AIO).count, 6);
	assert_false(hr_engine_waiting(r.engine));
	rig_kernel(&r, p, rows, 1); /* its last sums may come when its last row has left */
	rig_checkpoint(&r);
	assert_int_equal(rig_kernel_record(&r, p, file, "pread64", HR_CAUSE_SHIM).count, 30);
	rig_done(&r);
}

/* A file without a name is one of an earlier daemon; but what is left out stays out. */
static void files_without_a_name(void **state)
{
	struct rig r;
	struct hr_kernel_row rows[] = {row("read", F, HR_CAUSE_SHIM, 5, 50),
				       row("read", G, HR_CAUSE_EXCLUDED, 6, 60)};
	const Headrace__Paths *paths;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_kernel(&r, p, rows, 2);
	rig_tick(&r, r.now + 10 * RIG_SECOND);
	paths = r.frames[frame_of(&r, HEADRACE__FRAME__BODY_PATHS)]->frame.paths;
	assert_int_equal(paths->n_rows, 1);
	assert_int_equal(paths->rows[0]->hash, rig_hash(F));
	assert_int_equal(paths->rows[0]->path.len, 0);
	assert_int_equal(rig_kernel_record(&r, p, paths->rows[0]->id, "read", HR_CAUSE_SHIM).count,
			 5);
	assert_int_equal(rig_kernel_record(&r, p, 0, "read", HR_CAUSE_EXCLUDED).count, 6);
	rig_done(&r);
}

/* For who looks: what the kernel saw of operations, and what became of it. */
static void sums_of_all(void **state)
{
	struct rig r;
	struct hr_kernel_row rows[] = {
	    row("read", F, HR_CAUSE_SHIM, 5, 50),     row("read", F, HR_CAUSE_URING, 3, 30),
	    row("read", F, HR_CAUSE_LOST, 2, 20),     row("read", F, HR_CAUSE_EXCLUDED, 9, 90),
	    row("read", F, HR_CAUSE_SYSCALL, 4, 400),
	};
	struct hr_engine_stats stats;

	rig_init(&r);
	rig_kernel(&r, rig_attach(&r, &(struct rig_hello){.pid = 10}), rows, 5);
	hr_engine_stats_get(r.engine, &stats);
	assert_int_equal(stats.kernel_ops, 5 + 3 + 2 + 4);
	assert_int_equal(stats.kernel_added, 3 + 4);
	assert_int_equal(stats.kernel_lost, 2);
	rig_done(&r);
}

static void what_was_lost_is_a_loss_too(void **state)
{
	struct rig r;
	struct hr_kernel_row lost = row("read", NULL, HR_CAUSE_LOST, 12, 1200);
	const Headrace__LossRow *found;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_kernel(&r, p, &lost, 1);
	rig_tick(&r, r.now + 10 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "probe_full"), 12);
	found = r.frames[frame_of(&r, HEADRACE__FRAME__BODY_LOSS)]->frame.loss->rows[0];
	assert_int_equal(found->proc, p);
	assert_int_equal(found->op, hr_op_by_name("read"));
	assert_int_equal(found->bytes, 1200);
	assert_int_equal(rig_kernel_record(&r, p, 0, "read", HR_CAUSE_LOST).count, 12);
	rig_done(&r);
}

static void rows_that_make_no_sense(void **state)
{
	const uint64_t huge = UINT64_C(1) << 57;
	struct hr_kernel_row rows[8];
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	for (unsigned i = 0; i < 8; i++)
		rows[i] = row("read", NULL, HR_CAUSE_SYSCALL, 1, 10);
	rows[1].op = 511; /* no such op */
	rows[2].op = HR_OP_MAX + 16;
	rows[3].cause = HR_CAUSE_END;
	rows[4].cause = HR_CAUSE_NONE;
	rows[5].count = rows[5].bytes = huge;
	rows[6].errors = 2;
	rows[7].op = HR_OP_fork;
	rig_kernel(&r, p, rows, 8);
	rig_kernel(&r, p + 1, rows, 1); /* nobody's */
	rig_tick(&r, r.now + 10 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "hostile"), 7);
	assert_int_equal(rig_kernel_record(&r, p, 0, "read", HR_CAUSE_SYSCALL).count, 1);
	assert_int_equal(rig_kernel_record(&r, p + 1, 0, "read", HR_CAUSE_SYSCALL).count, 0);
	rig_done(&r);
}

/* ---- tallies ---------------------------------------------------------------------------------------- */

/* The histograms of a roll-up count each operation of a tally. */
static void tallies_fill_the_histograms(void **state)
{
	static const uint64_t sizes[] = {6, 2, 12, 5}, times[] = {10, 7}; /* pairs (bin, count) */
	struct {
		struct hr_entry_tally e;
		struct hr_tally_row rows[2];
	} in = {.e = {.n = 2}};
	struct hr_record s[8];
	const Headrace__RollupBatch *found;
	struct rig r;

	rig_init(&r);
	in.e.proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, in.e.proc, s, rig_path(s, F, false));
	for (unsigned i = 0; i < 2; i++)
		in.rows[i] = (struct hr_tally_row){.file = rig_hash(F),
						   .count = i ? 5 : 2,
						   .bytes = i ? UINT64_C(5) << 12 : 2 * 100,
						   .dur_ns = i ? 5 * 1024 : 2 * 1024,
						   .max_dur_ns = 1024,
						   .first_ns = r.now,
						   .last_ns = r.now,
						   .op = hr_op_by_name("pread64"),
						   .dur_hist = {[10] = i ? 5 : 2}};
	rig_entry(&r, HR_ENTRY_TALLY, &in, sizeof(in));
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_true(frame_of(&r, HEADRACE__FRAME__BODY_ROLLUPS) >= 0);
	found = r.frames[frame_of(&r, HEADRACE__FRAME__BODY_ROLLUPS)]->frame.rollups;
	assert_int_equal(found->n_rows, 1);
	assert_int_equal(found->rows[0]->count, 7);
	assert_int_equal(found->rows[0]->n_size_hist, 4);
	assert_memory_equal(found->rows[0]->size_hist, sizes, sizeof(sizes));
	assert_int_equal(found->rows[0]->n_dur_hist, 2);
	assert_memory_equal(found->rows[0]->dur_hist, times, sizeof(times));
	assert_int_equal(rig_loss(&r, "hostile"), 0);
	rig_done(&r);
}

/* ---- replay ----------------------------------------------------------------------------------------- */

static void a_killed_daemon_says_the_same_again(void **state)
{
	struct rig r;
	struct hr_record s[8];
	struct hr_kernel_row rows[] = {row("read", F, HR_CAUSE_SHIM, 5, 50),
				       row("read", G, HR_CAUSE_SYSCALL, 6, 60)};
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, p, s, rig_path(s, F, false));
	rig_checkpoint(&r);
	rig_clear(&r);
	raw(&r, p, "read", G, 5, 10, 0);
	rig_kernel(&r, p, rows, 2); /* F is known from before the checkpoint */
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	rig_kernel(&r, p, rows, 1);
	rig_end(&r, p, "0");
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_kernel_record(&r, p, 1, "read", HR_CAUSE_SHIM).count, 10);
	assert_true(r.n_frames > 4);
	rig_replay(&r);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(records_are_like_any),
	    cmocka_unit_test(a_restart_knows_who_was_told_of),
	    cmocka_unit_test(runs_are_merged_by_time),
	    cmocka_unit_test(raw_calls_move_what_shims_use),
	    cmocka_unit_test(raw_closes),
	    cmocka_unit_test(sums_add_up),
	    cmocka_unit_test(files_without_a_name),
	    cmocka_unit_test(sums_of_all),
	    cmocka_unit_test(what_was_lost_is_a_loss_too),
	    cmocka_unit_test(rows_that_make_no_sense),
	    cmocka_unit_test(tallies_fill_the_histograms),
	    cmocka_unit_test(a_killed_daemon_says_the_same_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
