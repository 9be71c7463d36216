/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on synthetic entries: exact events, rollups, file records, losses; checks of hostile records. */

#include <fcntl.h>
#include <string.h>

#include "daemon/engine/losses.h"
#include "rig.h"
#include "tests/unit.h"

#define FILE_A "/data/train/a.jpg"
#define NONE   HR_OFFSET_NONE

/* open, read 100 at 0 twice, seek to 8192, read 50, read 0, write fails, close. */
static unsigned small_file(struct rig *r, struct hr_record *s)
{
	unsigned n = rig_path(s, FILE_A, false);

	s[n++] = rig_op(r, "open64", FILE_A, 5, 5, HR_ASKED_NONE, NONE, O_RDONLY, 1000);
	s[n++] = rig_op(r, "read", FILE_A, 5, 100, 100, NONE, 0, 10);
	s[n++] = rig_op(r, "read", FILE_A, 5, 100, 100, NONE, 0, 20);
	s[n++] = rig_op(r, "lseek64", FILE_A, 5, 8192, HR_ASKED_NONE, 8192, 0, 5);
	s[n++] = rig_op(r, "read", FILE_A, 5, 50, 100, NONE, 0, 30);
	s[n++] = rig_op(r, "read", FILE_A, 5, 0, 100, NONE, 0, 40);
	s[n++] = rig_op(r, "write", FILE_A, 5, -9, 10, NONE, 0, 7);
	s[n++] = rig_op(r, "close", FILE_A, 5, 0, HR_ASKED_NONE, NONE, 0, 3);
	return n;
}

static void events_are_exact(void **state)
{
	struct rig r;
	struct hr_record s[32];
	struct hr_event e[16];
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, proc, s, small_file(&r, s));
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), 8);
	assert_int_equal(e[0].start_ns, RIG_START);
	assert_int_equal(e[0].dur_ns, 1000);
	assert_int_equal(e[0].offset, NONE);
	assert_int_equal(e[1].offset, 0);
	assert_int_equal(e[2].offset, 100);
	assert_int_equal(e[3].offset, 8192);
	assert_int_equal(e[4].offset, 8192);
	assert_int_equal(e[5].offset, 8242);
	assert_int_equal(e[6].ret, -9);
	assert_int_equal(e[6].offset, 8242);
	assert_int_equal(e[7].file, rig_file_id(&r, FILE_A));
	assert_int_not_equal(e[7].file, 0);
	rig_done(&r);
}

static void rollups_are_exact(void **state)
{
	struct rig r;
	struct hr_record s[32];
	Headrace__Rollup read, write;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, proc, s, small_file(&r, s));
	rig_tick(&r, r.now + 5 * RIG_SECOND);
	assert_int_equal(rig_rollup(&r, proc, hr_op_by_name("read")).count, 0);
	rig_tick(&r, r.now + 10 * RIG_SECOND);
	read = rig_rollup(&r, proc, hr_op_by_name("read"));
	write = rig_rollup(&r, proc, hr_op_by_name("write"));
	assert_int_equal(read.count, 4);
	assert_int_equal(read.bytes, 250);
	assert_int_equal(read.errors, 0);
	assert_int_equal(read.dur_ns, 100);
	assert_int_equal(read.max_dur_ns, 40);
	assert_int_equal(write.count, 1);
	assert_int_equal(write.errors, 1);
	assert_int_equal(write.bytes, 0);
	rig_done(&r);
}

static void file_records_are_exact(void **state)
{
	struct rig r;
	struct hr_record s[32];
	const Headrace__FileRecord *f;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, proc, s, small_file(&r, s));
	rig_tick(&r, r.now + 4 * RIG_SECOND);
	assert_null(rig_filerec(&r, FILE_A, 0)); /* closed, but not for five seconds */
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	f = rig_filerec(&r, FILE_A, 0);
	assert_non_null(f);
	assert_int_equal(f->proc, proc);
	assert_int_equal(f->opens, 1);
	assert_int_equal(f->reads, 4);
	assert_int_equal(f->writes, 1);
	assert_int_equal(f->seeks, 1);
	assert_int_equal(f->bytes_read, 250);
	assert_int_equal(f->bytes_written, 0);
	assert_int_equal(f->read_ns, 100);
	assert_int_equal(f->max_read_ns, 40);
	assert_int_equal(f->write_ns, 7);
	assert_int_equal(f->meta_ns, 1008);
	assert_int_equal(f->meta_ops, 1); /* the close */
	assert_int_equal(f->first_ns, RIG_START);
	assert_int_equal(f->last_ns, RIG_START + 1115);
	assert_int_equal(f->seq_reads, 3);
	assert_int_equal(f->consec_reads, 2); /* 100 after [0,100), 8242 after [8192,8242) */
	assert_int_equal(f->rw_switches, 1);
	assert_int_equal(f->unaligned, 3); /* 100, 8242, and the write at 8242 */
	assert_null(rig_filerec(&r, FILE_A, 1));
	rig_done(&r);
}

static void open_files_are_not_idle(void **state)
{
	struct rig r;
	struct hr_record s[32];
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, proc, s, small_file(&r, s) - 1); /* without the close */
	rig_tick(&r, r.now + 60 * RIG_SECOND);
	assert_null(rig_filerec(&r, FILE_A, 0));
	rig_end(&r, proc, "");
	rig_tick(&r, r.now + 1);
	assert_non_null(rig_filerec(&r, FILE_A, 0));
	assert_int_equal(rig_process(&r, proc)->end_ns, r.now - 1);
	rig_done(&r);
}

static void counters_level_has_no_events(void **state)
{
	struct rig r;
	struct hr_record s[32];
	struct hr_event e[16];
	struct hr_entry_level level = {.now_ns = RIG_START, .level = HR_LEVEL_COUNTERS};
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_entry(&r, HR_ENTRY_LEVEL, &level, sizeof(level));
	rig_records(&r, proc, s, small_file(&r, s));
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), 0);
	assert_int_equal(rig_rollup(&r, proc, hr_op_by_name("read")).count, 4);
	assert_int_equal(rig_filerec(&r, FILE_A, 0)->reads, 4);
	rig_done(&r);
}

/* The last Levels row of a level. */
static const Headrace__Levels *level_row(const struct rig *r, const char *level)
{
	const Headrace__Levels *last = NULL;
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_LEVELS, &i)) != NULL;)
		if (strcmp(f->levels->level, level) == 0)
			last = f->levels;
	assert_non_null(last);
	return last;
}

/* A level has a begin and an end, also if headraced was restarted in between. */
static void levels_begin_and_end(void **state)
{
	struct hr_entry_level level = {.now_ns = RIG_START + RIG_SECOND,
				       .level = HR_LEVEL_COUNTERS};
	struct hr_entry_stop stop = {.now_ns = RIG_START + 3 * RIG_SECOND, .state = "ended"};
	struct rig r;

	rig_init(&r);
	rig_entry(&r, HR_ENTRY_LEVEL, &level, sizeof(level));
	assert_int_equal(level_row(&r, "trace")->start_ns, RIG_START);
	assert_int_equal(level_row(&r, "trace")->end_ns, RIG_START + RIG_SECOND);
	assert_int_equal(level_row(&r, "counters")->end_ns, 0);
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	rig_restart(&r);
	rig_entry(&r, HR_ENTRY_STOP, &stop, sizeof(stop));
	assert_int_equal(level_row(&r, "counters")->start_ns, RIG_START + RIG_SECOND);
	assert_int_equal(level_row(&r, "counters")->end_ns, RIG_START + 3 * RIG_SECOND);
	rig_done(&r);
}

static void aggregates_are_in_file_records_only(void **state)
{
	struct rig r;
	struct hr_record s[32];
	struct hr_event e[16];
	unsigned n = rig_path(s, FILE_A, false);
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	s[n] = rig_op(&r, "getc", FILE_A, 5, 1000, 1001, NONE, 7, 0);
	s[n++].bits |= HR_REC_AGGREGATE;
	rig_records(&r, proc, s, n);
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), 0);
	assert_int_equal(rig_rollup(&r, proc, hr_op_by_name("getc")).count, 0);
	assert_int_equal(rig_filerec(&r, FILE_A, 0)->reads, 1001);
	assert_int_equal(rig_filerec(&r, FILE_A, 0)->bytes_read, 1000);
	rig_done(&r);
}

static void count_dead_owners_cells(bool restart)
{
	struct rig r;
	struct hr_record s[32];
	struct hr_event e[16];
	struct hr_entry_left left = {0};
	unsigned n = rig_path(s, FILE_A, false);
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	s[n] = rig_op(&r, "getc", FILE_A, 5, 10, 10, NONE, 7, 0);
	s[n++].bits |= HR_REC_AGGREGATE;
	rig_records(&r, proc, s, n);
	if (restart) { /* the next daemon knows the generation, but not the text of the path */
		rig_restart(&r);
		rig_records(&r, proc, s, rig_path(s, FILE_A, false));
	}
	left.proc = proc;
	left.now_ticks = r.now + 500;
	left.inflight = (struct hr_inflight){.start_ticks = r.now,
					     .file = rig_hash(FILE_A),
					     .offset = 0,
					     .asked = 10,
					     .fd = 5,
					     .op = hr_op_by_name("pread64")};
	left.aggregate = (struct hr_aggregate){.file = rig_hash(FILE_A),
					       .start_ticks = r.now,
					       .count = 10,
					       .bytes = 10,
					       .fd = 5,
					       .gen = 7,
					       .op = hr_op_by_name("getc")};
	rig_entry(&r, HR_ENTRY_LEFT, &left, sizeof(left)); /* generation 7 was committed */
	left.inflight.op = 0;
	left.aggregate.gen = 8;
	rig_entry(&r, HR_ENTRY_LEFT, &left, sizeof(left));
	rig_entry(&r, HR_ENTRY_LEFT, &left, sizeof(left)); /* now 8 is counted, too */
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), 1);
	assert_int_equal(e[0].ret, HR_RET_NONE);
	assert_int_equal(e[0].dur_ns, 500);
	assert_true(e[0].bits & HR_EV_CUT);
	assert_int_equal(rig_filerec(&r, FILE_A, 0)->reads, 1); /* posix */
	/* stdio: generations 7 and 8; this daemon has counted 7 only without a restart */
	assert_int_equal(rig_filerec(&r, FILE_A, 1)->reads, restart ? 10 : 20);
	rig_done(&r);
}

static void dead_owners_cells_count_once(void **state)
{
	count_dead_owners_cells(false);
	count_dead_owners_cells(true);
}

/* Killed between the commit of a record and the clearing of its cell; a signal handler's record may come between. */
static void kill_after_commit(bool restart)
{
	struct rig r;
	struct hr_record s[32];
	struct hr_event e[16];
	struct hr_entry_left left = {0};
	unsigned n = rig_path(s, FILE_A, false), seen = restart ? 0 : 2;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	s[n] = rig_op(&r, "pread64", FILE_A, 5, 10, 10, 0, 0, 100);
	left.inflight = (struct hr_inflight){.start_ticks = s[n].start_ticks,
					     .file = s[n].file,
					     .offset = 0,
					     .asked = 10,
					     .fd = 5,
					     .op = s[n].op};
	n++;
	s[n++] = rig_op(&r, "write", FILE_A, 6, 1, 1, 0, 0, 10);
	rig_records(&r, proc, s, n);
	rig_checkpoint(&r);
	assert_int_equal(rig_events(&r, e, 16), 2);
	if (restart)
		rig_restart(&r); /* the next daemon knows the last operations, too */
	left.proc = proc;
	left.now_ticks = r.now + 500;
	rig_entry(&r, HR_ENTRY_LEFT, &left, sizeof(left));
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), seen);
	left.inflight.start_ticks++; /* another one */
	rig_entry(&r, HR_ENTRY_LEFT, &left, sizeof(left));
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), seen + 1);
	assert_true(e[seen].bits & HR_EV_CUT);
	rig_done(&r);
}

static void a_committed_operation_is_not_cut_short_too(void **state)
{
	kill_after_commit(false);
	kill_after_commit(true);
}

static void hostile_records_are_counted_and_dropped(void **state)
{
	struct rig r;
	struct hr_record s[16];
	struct hr_event e[16];
	uint64_t proc;
	unsigned n = 0;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	r.now += 10 * RIG_SECOND;
	s[n] = rig_op(&r, "read", FILE_A, 5, 1, 1, NONE, 0, 1);
	s[n++].op = 15; /* no such control */
	s[n] = rig_op(&r, "read", FILE_A, 5, 1, 1, NONE, 0, 1);
	s[n++].op = 511; /* no such op */
	s[n] = rig_op(&r, "read", FILE_A, 5, 1, 1, NONE, 0, 1);
	s[n++].op = 60000;
	s[n] = rig_op(&r, "read", FILE_A, 5, 1, 1, NONE, 0, 1);
	s[n++].start_ticks = RIG_START - 2 * RIG_SECOND; /* before the session */
	s[n] = rig_op(&r, "read", FILE_A, 5, 1, 1, NONE, 0, 1);
	s[n++].start_ticks = r.now + 2 * RIG_SECOND; /* to come */
	s[n] = rig_op(&r, "read", FILE_A, 5, 1, 1, NONE, 0, 1);
	s[n++].dur_hi = 0xffff;
	s[n] = rig_op(&r, "read", FILE_A, 5, INT64_MAX, 1, NONE, 0, 1);
	n++;
	s[n] = rig_op(&r, "read", FILE_A, -7, 1, 1, NONE, 0, 1);
	n++;
	s[n] = rig_op(&r, "getc", FILE_A, 5, 1, 3 * HR_AGGREGATE_CALLS, NONE, 0, 1);
	s[n++].bits |= HR_REC_AGGREGATE; /* more calls than a shim folds */
	s[n] = (struct hr_record){.op = HR_CTL_PATH, .file = 64, .asked = 100000};
	n++;
	s[n] = rig_op(&r, "rename", FILE_A, -1, 0, 0, NONE, 0, 1);
	s[n++].bits = HR_REC_PAIR; /* and no pair behind it */
	rig_records(&r, proc, s, n);
	rig_tick(&r, r.now + 20 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), 0);
	assert_int_equal(rig_loss(&r, "hostile"), n);
	rig_done(&r);
}

/* An open that waits for an automounter attaches when it ends: its process has begun when it did. */
static void the_first_operation_may_be_older_than_the_session(void **state)
{
	struct rig r;
	struct hr_event e[4];
	struct hr_record s;
	uint64_t proc;

	rig_init(&r);
	r.now += 60 * RIG_SECOND;
	s = rig_op(&r, "open64", FILE_A, 5, 5, 0, NONE, 0, 40 * RIG_SECOND);
	proc = rig_attach(
	    &r, &(struct rig_hello){.pid = 10,
				    .start_time = (r.now - 41 * RIG_SECOND) / (RIG_SECOND / 100)});
	rig_records(&r, proc, &s, 1);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 4), 1);
	assert_int_equal(rig_loss(&r, "hostile"), 0);
	assert_int_equal(rig_process(&r, proc)->start_ns, e[0].start_ns);
	rig_done(&r);
}

static void lost_so_far(struct rig *r, uint64_t proc, uint64_t base, uint64_t count, uint64_t bytes)
{
	uint64_t buf[(sizeof(struct hr_entry_lost) + sizeof(struct hr_lost_row)) / 8];
	struct hr_entry_lost *in = (struct hr_entry_lost *)buf;

	*in = (struct hr_entry_lost){.proc = proc, .n = 1};
	in->rows[0] = (struct hr_lost_row){base + hr_op_by_name("read"), {count, bytes, 50}};
	rig_entry(r, HR_ENTRY_LOST, in, sizeof(buf));
}

/* The first loss of this reason. */
static const Headrace__LossRow *loss_row(const struct rig *r, const char *reason)
{
	const Headrace__Frame *f;

	for (unsigned i = 0; (f = rig_next(r, HEADRACE__FRAME__BODY_LOSS, &i)) != NULL;)
		for (size_t k = 0; k < f->loss->n_rows; k++)
			if (strcmp(f->loss->rows[k]->reason, reason) == 0)
				return f->loss->rows[k];
	fail_msg("no loss %s", reason);
	return NULL;
}

static void losses_are_differences(void **state)
{
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	lost_so_far(&r, proc, 0, 10, 1000);
	lost_so_far(&r, proc, HR_LOST_STRAYS, 4, 400);
	lost_so_far(&r, proc, 0, 15, 1500);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "ring_full"), 15);
	assert_int_equal(rig_loss(&r, "stray"), 4);
	assert_int_equal(loss_row(&r, "ring_full")->op, hr_op_by_name("read"));
	assert_int_equal(loss_row(&r, "ring_full")->bytes, 1500);
	assert_int_equal(loss_row(&r, "ring_full")->dur_ns, 50);
	assert_int_equal(loss_row(&r, "stray")->op, hr_op_by_name("read"));
	assert_int_equal(loss_row(&r, "stray")->bytes, 400);
	lost_so_far(&r, proc, 0, 3, 1500);		 /* a client rewrites its counters */
	lost_so_far(&r, proc, 2 * HR_LOST_STRAYS, 1, 1); /* and invents an operation */
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "ring_full"), 15);
	assert_int_equal(rig_loss(&r, "hostile"), 2);
	rig_restart(&r); /* what was seen is known to the next daemon */
	lost_so_far(&r, proc, HR_LOST_STRAYS, 6, 600);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "stray"), 2);
	rig_done(&r);
}

static void a_hash_with_two_texts_gets_two_files(void **state)
{
	struct rig r;
	struct hr_record s[16];
	struct hr_event e[16];
	uint64_t a, b;
	unsigned n;

	rig_init(&r);
	a = rig_attach(&r, &(struct rig_hello){.pid = 10});
	b = rig_attach(&r, &(struct rig_hello){.pid = 11});
	n = rig_path(s, "/data/one", false);
	s[n++] = rig_op(&r, "read", "/data/one", 5, 1, 1, NONE, 0, 1);
	rig_records(&r, a, s, n);
	n = rig_path(s, "/data/two", false);
	s[0].file = rig_hash("/data/one");
	s[n++] = rig_op(&r, "read", "/data/one", 5, 1, 1, NONE, 0, 1);
	rig_records(&r, b, s, n);
	s[0] = rig_op(&r, "read", "/data/one", 5, 1, 1, NONE, 0, 1);
	rig_records(&r, a, s, 1);
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 16), 3);
	assert_int_equal(e[0].file, rig_file_id(&r, "/data/one"));
	assert_int_equal(e[1].file, rig_file_id(&r, "/data/two"));
	assert_int_equal(e[2].file, e[0].file);
	assert_int_not_equal(e[1].file, e[0].file);
	assert_int_equal(rig_loss(&r, "collision"), 1);
	rig_done(&r);
}

static void rings_are_merged_by_end(void **state)
{
	struct rig r;
	struct {
		struct hr_entry_records e;
		struct hr_run runs[3];
		struct hr_record s[8];
	} in = {.e = {.n_runs = 3}};
	struct hr_record path[4], open_a, read[3];
	struct hr_event e[5];
	unsigned n = rig_path(path, FILE_A, false);
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	open_a = rig_op(&r, "open64", FILE_A, 5, 5, HR_ASKED_NONE, NONE, 0, 10);
	for (unsigned i = 0; i < 3; i++)
		read[i] = rig_op(&r, "read", FILE_A, 5, 77, 77, NONE, 0, 10);
	/*
	 * Ring 1, whose thread opened the file, has path, open and the second read. Ring 0 has the
	 * last read, ring 2 the first one.
	 */
	in.e.proc = proc;
	in.e.sweep_ticks = r.now;
	in.runs[0] = (struct hr_run){0, 0, 1, 0};
	in.runs[1] = (struct hr_run){0, 1, n + 2, 0};
	in.runs[2] = (struct hr_run){0, 2, 1, 0};
	in.s[0] = read[2];
	memcpy(&in.s[1], path, n * sizeof(path[0]));
	in.s[1 + n] = open_a;
	in.s[2 + n] = read[1];
	in.s[3 + n] = read[0];
	rig_entry(&r, HR_ENTRY_RECORDS, &in,
		  offsetof(__typeof__(in), s) + (n + 4) * sizeof(in.s[0]));
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, 5), 4);
	assert_int_equal(e[0].op, hr_op_by_name("open64"));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(e[1 + i].start_ns, read[i].start_ticks);
		assert_int_equal(e[1 + i].offset, 77 * i);
	}
	rig_done(&r);
}

/* The text of a file may come after its use, from another process, before or after names were sent. */
static void a_parents_path_names_its_childs_events(void **state)
{
	for (unsigned late = 0; late < 3; late++) {
		struct rig r;
		struct hr_record path[8], read;
		struct hr_event e[4];
		uint64_t parent, child;
		unsigned n = rig_path(path, FILE_A, false);

		rig_init(&r);
		parent = rig_attach(&r, &(struct rig_hello){.pid = 10});
		child = rig_attach(
		    &r,
		    &(struct rig_hello){.pid = 11, .ppid = 10, .forked = true, .parent = parent});
		read = rig_op(&r, "pread64", FILE_A, 5, 1, 1, 0, 0, 1);
		rig_records(&r, child, &read, 1);
		if (late == 1)
			rig_tick(&r, r.now + 2 * RIG_SECOND);
		if (late == 2)
			rig_checkpoint(&r);
		rig_records(&r, parent, path, n);
		rig_tick(&r, r.now + 2 * RIG_SECOND);
		assert_int_equal(rig_events(&r, e, 4), 1);
		assert_int_not_equal(e[0].file, 0);
		assert_int_equal(e[0].file, rig_file_id(&r, FILE_A));
		rig_done(&r);
	}
}

/* Forty threads, each of which reads on from where the one before it stopped. */
static void many_rings_are_merged_by_end(void **state)
{
	enum { RINGS = 40, EACH = 3 };
	struct rig r;
	struct {
		struct hr_entry_records e;
		struct hr_run runs[RINGS];
		struct hr_record s[RINGS * EACH];
	} in = {.e = {.n_runs = RINGS}};
	struct hr_record open_a;
	struct hr_event e[RINGS * EACH + 1];
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	open_a = rig_op(&r, "open64", FILE_A, 5, 5, HR_ASKED_NONE, NONE, 0, 10);
	rig_records(&r, proc, &open_a, 1);
	for (unsigned i = 0; i < RINGS * EACH;
	     i++) /* ring 7 * i: neighbours in time are not in place */
		in.s[i * 7 % RINGS * EACH + i / RINGS] =
		    rig_op(&r, "read", FILE_A, 5, 10, 10, NONE, 0, 10);
	for (unsigned i = 0; i < RINGS; i++)
		in.runs[i] = (struct hr_run){(uint16_t)(i / 4), (uint16_t)(i % 4), EACH, 0};
	in.e.proc = proc;
	in.e.sweep_ticks = r.now;
	rig_entry(&r, HR_ENTRY_RECORDS, &in, sizeof(in));
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	assert_int_equal(rig_events(&r, e, RINGS * EACH + 1), RINGS * EACH + 1);
	for (unsigned i = 0; i < RINGS * EACH; i++)
		assert_int_equal(e[1 + i].offset, 10 * i);
	rig_done(&r);
}

static void the_daemon_tells_of_its_own_losses(void **state)
{
	struct rig r;
	struct hr_entry_note note = {.reason = HR_LOSS_LIMIT, .count = 3};
	struct hr_entry_deselect deselect = {0};
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_entry(&r, HR_ENTRY_NOTE, &note, sizeof(note));
	note.reason = 77;
	rig_entry(&r, HR_ENTRY_NOTE, &note, sizeof(note));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "limit"), 3);
	assert_false(rig_process(&r, proc)->deselected);
	deselect.proc = proc;
	rig_entry(&r, HR_ENTRY_DESELECT, &deselect, sizeof(deselect));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_true(rig_process(&r, proc)->deselected);
	rig_done(&r);
}

/* Processes that a snapshot had no room for: a second restart does not count them again. */
static void what_a_snapshot_left_out_counts_once(void **state)
{
	struct rig r;
	struct hr_entry_note note = {.reason = HR_LOSS_RESTART, .snapshot = 1, .count = 7};

	rig_init(&r);
	rig_entry(&r, HR_ENTRY_NOTE, &note, sizeof(note));
	assert_int_equal(hr_engine_left_out(r.engine), 7);
	note.snapshot = 0;
	rig_entry(&r, HR_ENTRY_NOTE, &note, sizeof(note));
	assert_int_equal(hr_engine_left_out(r.engine), 0);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "restart"), 7);
	rig_done(&r);
}

static void missed(struct rig *r, int pid, uint32_t image)
{
	struct hr_entry_note note = {
	    .reason = HR_LOSS_UNATTACHED, .count = 1, .pid = pid, .image = image};

	rig_entry(r, HR_ENTRY_NOTE, &note, sizeof(note));
}

static void a_process_that_connects_again_is_no_loss(void **state)
{
	struct rig r;

	rig_init(&r);
	missed(&r, 10, 3);
	missed(&r, 11, 0); /* an orphan, whose image is unknown */
	missed(&r, 12, 3); /* another image of this process comes */
	missed(&r, 13, 3); /* comes too late */
	rig_attach(&r, &(struct rig_hello){.pid = 10, .image = 3});
	rig_attach(&r, &(struct rig_hello){.pid = 11, .image = 5});
	rig_attach(&r, &(struct rig_hello){.pid = 12, .image = 4});
	rig_tick(&r, r.now + 4 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 0);
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 2);
	rig_attach(&r, &(struct rig_hello){.pid = 13, .image = 3});
	rig_tick(&r, r.now + 6 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 2);
	missed(&r, 14, 3);
	rig_checkpoint(&r); /* the snapshot does not have it */
	assert_int_equal(rig_loss(&r, "unattached"), 3);
	for (int i = 0; i < 100; i++)
		missed(&r, 20 + i, 3);
	rig_tick(&r, r.now + 6 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 103);
	rig_done(&r);
}

/* headraced was killed after it had journaled the first hello, before the client got the answer. */
static void an_image_attaches_twice(void **state)
{
	const struct rig_hello hello = {.pid = 10, .image = 3};
	struct hr_record op;
	uint64_t first, again;
	struct rig r;

	for (int before = 0; before < 2; before++) {
		rig_init(&r);
		first = rig_attach(&r, &hello);
		if (before)
			rig_end(&r, first, "");
		again = rig_attach(&r, &hello);
		if (!before)
			rig_end(&r, first, "");
		op = rig_op(&r, "read", FILE_A, 5, 10, 10, NONE, 0, 10);
		rig_records(&r, again, &op, 1);
		rig_end(&r, again, "0");
		rig_tick(&r, r.now + 6 * RIG_SECOND);
		assert_int_equal(rig_loss(&r, "unattached"), 0);
		rig_done(&r);
	}
	rig_init(&r);
	rig_end(&r, rig_attach(&r, &hello), "");
	rig_attach(&r, &(struct rig_hello){.pid = 10, .image = 4}); /* after an exec */
	rig_tick(&r, r.now + 6 * RIG_SECOND);
	assert_int_equal(rig_loss(&r, "unattached"), 1);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events_are_exact),
	    cmocka_unit_test(rollups_are_exact),
	    cmocka_unit_test(file_records_are_exact),
	    cmocka_unit_test(open_files_are_not_idle),
	    cmocka_unit_test(counters_level_has_no_events),
	    cmocka_unit_test(levels_begin_and_end),
	    cmocka_unit_test(aggregates_are_in_file_records_only),
	    cmocka_unit_test(dead_owners_cells_count_once),
	    cmocka_unit_test(a_committed_operation_is_not_cut_short_too),
	    cmocka_unit_test(hostile_records_are_counted_and_dropped),
	    cmocka_unit_test(the_first_operation_may_be_older_than_the_session),
	    cmocka_unit_test(losses_are_differences),
	    cmocka_unit_test(a_hash_with_two_texts_gets_two_files),
	    cmocka_unit_test(rings_are_merged_by_end),
	    cmocka_unit_test(many_rings_are_merged_by_end),
	    cmocka_unit_test(a_parents_path_names_its_childs_events),
	    cmocka_unit_test(the_daemon_tells_of_its_own_losses),
	    cmocka_unit_test(what_a_snapshot_left_out_counts_once),
	    cmocka_unit_test(a_process_that_connects_again_is_no_loss),
	    cmocka_unit_test(an_image_attaches_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
