/* SPDX-License-Identifier: Apache-2.0 */
/* Where operations without an offset happen: opens, seeks, dup, append, streams, and what is not known. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>

#include "daemon/engine/position.h"
#include "rig.h"
#include "tests/unit.h"

#define F     "/data/f"
#define NONE  HR_OFFSET_NONE
#define ASKED HR_ASKED_NONE

static void op(struct rig *r, uint64_t proc, const char *name, int fd, int64_t ret, int64_t offset,
	       uint32_t flags)
{
	struct hr_record rec = rig_op(r, name, F, fd, ret, 100, offset, flags, 10);

	rig_records(r, proc, &rec, 1);
}

static void descriptors(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "read", 3, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE); /* was open before we looked */
	op(&r, p, "lseek", 3, 500, 0, SEEK_END);
	op(&r, p, "read", 3, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 500);
	op(&r, p, "open", 4, 4, NONE, O_RDWR);
	op(&r, p, "write", 4, 100, NONE, 0);
	op(&r, p, "dup", 4, 7, NONE, 0);
	op(&r, p, "read", 7, 5, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 100);
	op(&r, p, "read", 4, 5, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 105); /* the copy moved it */
	op(&r, p, "close", 4, 0, NONE, 0);
	op(&r, p, "read", 7, 5, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 110);
	op(&r, p, "pread64", 7, 5, 3, 0);
	assert_int_equal(rig_last_offset(&r), 3);
	op(&r, p, "read", 7, 5, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 115); /* pread did not move it */
	op(&r, p, "fcntl", 7, 20, NONE, F_DUPFD_CLOEXEC);
	op(&r, p, "read", 20, 1, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 120);
	op(&r, p, "fcntl", 7, 2, NONE, F_GETFL); /* no new descriptor */
	op(&r, p, "read", 2, 1, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "dup2", 20, 3, NONE, 0);
	op(&r, p, "read", 3, 1, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 121);
	rig_done(&r);
}

static void append_and_failure(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "open64", 5, 5, NONE, O_WRONLY | O_APPEND);
	op(&r, p, "write", 5, 100, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "open64", 6, 6, NONE, O_RDONLY);
	op(&r, p, "read", 6, -4, NONE, 0);
	op(&r, p, "read", 6, 1, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 0);  /* a failed read moves nothing */
	op(&r, p, "open64", 6, 6, NONE, O_RDONLY); /* its close was not seen */
	op(&r, p, "read", 6, 1, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 0);
	rig_done(&r);
}

static void append_mode(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "open", 5, 5, NONE, O_RDWR);
	op(&r, p, "write", 5, 100, NONE, 0);
	op(&r, p, "pwritev2", 5, 10, 3, RWF_APPEND);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "write", 5, 100, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 100); /* it did not move the position */
	op(&r, p, "pwritev2", 5, 10, NONE, RWF_APPEND);
	op(&r, p, "read", 5, 1, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE); /* this one did */
	op(&r, p, "lseek", 5, 50, 50, SEEK_SET);
	op(&r, p, "fcntl", 5, 0, NONE, F_SETFL);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 50);
	op(&r, p, "pwrite64", 5, 10, 7, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "pread64", 5, 10, 7, 0);
	assert_int_equal(rig_last_offset(&r), 7);
	op(&r, p, "write", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	rig_done(&r);
}

/* Parent and child share the positions of the descriptors that were open: each may move them. */
static void forks(void **state)
{
	struct rig r;
	struct hr_record fork = {.op = HR_CTL_FORK, .fd = 20, .offset = NONE}, rec;
	uint64_t p, child;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "open", 5, 5, NONE, O_RDONLY | O_CLOEXEC);
	op(&r, p, "open", 8, 8, NONE, O_RDONLY);
	op(&r, p, "read", 5, 10, NONE, 0);
	op(&r, p, "read", 8, 10, NONE, 0);
	fork.flags = 1; /* vfork: a descriptor that exec closes is that of the parent */
	rig_records(&r, p, &fork, 1);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 10);
	op(&r, p, "read", 8, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	rec =
	    rig_op(&r, "dup2", F, 5, 1, ASKED, NONE, 0, 10); /* unless the child makes it another */
	rec.bits |= HR_REC_VFORK;
	rig_records(&r, p, &rec, 1);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "open", 5, 5, NONE, O_RDONLY | O_CLOEXEC);
	op(&r, p, "dup", 5, 9, NONE, 0); /* or the program does */
	rig_records(&r, p, &fork, 1);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "open", 5, 5, NONE, O_RDONLY | O_CLOEXEC);
	op(&r, p, "fcntl", 5, 0, NONE, F_SETFD);
	rig_records(&r, p, &fork, 1);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "open", 5, 5, NONE, O_RDONLY | O_CLOEXEC);
	fork.flags = 0;
	rig_records(&r, p, &fork, 1);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "lseek", 5, 500, 500, SEEK_SET);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r),
			 NONE); /* the child may have moved it since the seek */
	child = rig_attach(&r, &(struct rig_hello){.pid = 20, .forked = true, .parent = p});
	op(&r, child, "lseek", 5, 500, 500, SEEK_SET);
	op(&r, child, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "open", 6, 6, NONE, O_RDONLY); /* after the fork: its own */
	op(&r, p, "read", 6, 10, NONE, 0);
	op(&r, p, "read", 6, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 10);
	op(&r, p, "lseek", 7, 30, 30,
	   SEEK_SET); /* open before the attach: a sequence is unknown, a write may append */
	op(&r, p, "read", 7, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 30);
	op(&r, p, "read", 7, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "lseek", 7, 30, 30, SEEK_SET);
	op(&r, p, "write", 7, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "pwrite64", 10, 10, 70, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "pread64", 10, 10, 70, 0);
	assert_int_equal(rig_last_offset(&r), 70);
	rig_done(&r);
}

/* A call of a thread, from a moment on. */
static void by_thread(struct rig *r, uint64_t proc, int tid, uint64_t start, struct hr_record rec)
{
	struct hr_record slots[2] = {{.op = HR_CTL_THREAD, .fd = tid}, rec};

	slots[1].start_ticks = start;
	rig_records(r, proc, slots, 2);
}

/* Calls of two threads at the same time: which of them the kernel made first is not known. */
static void threads(void **state)
{
	struct rig r;
	uint64_t p, at;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "open", 5, 5, NONE, O_RDONLY);
	at = r.now;
	by_thread(&r, p, 11, at, rig_op(&r, "read", F, 5, 10, 10, NONE, 0, 100));
	assert_int_equal(rig_last_offset(&r), 0);
	at = r.now;
	by_thread(&r, p, 12, at, rig_op(&r, "read", F, 5, 10, 10, NONE, 0, 100));
	assert_int_equal(rig_last_offset(&r), 10); /* one after the other */
	at = r.now;
	by_thread(&r, p, 12, at, rig_op(&r, "read", F, 5, 10, 10, NONE, 0, 100));
	by_thread(&r, p, 11, at + 50, rig_op(&r, "read", F, 5, 10, 10, NONE, 0, 100));
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	at = r.now;
	by_thread(&r, p, 12, at, rig_op(&r, "lseek", F, 5, 70, ASKED, 70, SEEK_SET, 100));
	by_thread(&r, p, 12, at + 100, rig_op(&r, "read", F, 5, 10, 10, NONE, 0, 100));
	assert_int_equal(rig_last_offset(&r), 70);
	at = r.now;
	by_thread(&r, p, 12, at, rig_op(&r, "lseek", F, 5, 70, ASKED, 70, SEEK_SET, 100));
	by_thread(&r, p, 11, at + 50, rig_op(&r, "read", F, 5, 10, 10, NONE, 0, 100));
	assert_int_equal(rig_last_offset(&r), NONE);
	rig_done(&r);
}

/* The position of a stream is not that of its descriptor, from which it reads ahead. */
static void a_stream_of_a_descriptor(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "open", 5, 5, NONE, O_RDWR);
	op(&r, p, "read", 5, 10, NONE, 0);
	op(&r, p, "fdopen", 5, 5, NONE, O_RDWR);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), 10);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "fseek", 5, 0, 40, SEEK_SET);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), 40);
	op(&r, p, "lseek", 5, 7, 7, SEEK_SET);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "open", 6, 6, NONE, O_RDWR);
	op(&r, p, "fdopen", 6, 6, NONE, O_RDWR | O_APPEND); /* mode "a" */
	op(&r, p, "fwrite", 6, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), NONE);
	rig_done(&r);
}

static void streams(void **state)
{
	struct rig r;
	struct hr_record rec;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "fopen", 5, 5, NONE, O_RDONLY);
	rec = rig_op(&r, "fread", F, 5, 10, 80, NONE, 8, 10); /* ten items of eight bytes */
	rig_records(&r, p, &rec, 1);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), 80);
	op(&r, p, "fseek", 5, 0, 1000, SEEK_SET);
	op(&r, p, "fseek", 5, 0, -200, SEEK_CUR);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), 800);
	op(&r, p, "fseek", 5, 0, 0, SEEK_END);
	op(&r, p, "fread", 5, 0, NONE, 4);
	assert_int_equal(rig_last_offset(&r), NONE);
	op(&r, p, "ftell", 5, 12345, 0, SEEK_CUR);
	op(&r, p, "fread", 5, 1, NONE, 4);
	assert_int_equal(rig_last_offset(&r), 12345);
	rig_done(&r);
}

static void vfork_children_change_nothing(void **state)
{
	struct rig r;
	struct hr_record rec;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	op(&r, p, "open", 5, 5, NONE, O_RDONLY);
	op(&r, p, "read", 5, 10, NONE, 0);
	rec = rig_op(&r, "close", F, 5, 0, ASKED, NONE, 0, 10);
	rec.bits |= HR_REC_VFORK;
	rig_records(&r, p, &rec, 1);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 10);
	rig_done(&r);
}

static void positions_outlive_a_checkpoint(void **state)
{
	struct rig r;
	struct hr_record s[8];
	const Headrace__FileRecord *f;
	uint64_t p;
	unsigned n = rig_path(s, F, false);

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	rig_records(&r, p, s, n);
	op(&r, p, "open", 5, 5, NONE, O_RDONLY);
	op(&r, p, "read", 5, 10, NONE, 0);
	rig_checkpoint(&r);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 10);
	rig_end(&r, p, "");
	f = rig_filerec(&r, F,
			1); /* the part after the checkpoint goes on where the first left off */
	assert_non_null(f);
	assert_int_equal(f->opens, 0);
	assert_int_equal(f->reads, 1);
	assert_int_equal(f->consec_reads, 1);
	rig_done(&r);
}

/* close_range leaves no record, a received descriptor no open: the file tells that a number means something else now. */
static void a_number_closed_out_of_sight(void **state)
{
	static const char g[] = "/data/another";
	struct rig r;
	struct hr_record s[8];
	uint64_t p;
	unsigned n;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10});
	n = rig_path(s, F, false);
	rig_records(&r, p, s, n);
	op(&r, p, "open", 5, 5, NONE, O_RDONLY);
	op(&r, p, "read", 5, 10, NONE, 0);
	s[0] = rig_op(&r, "read", g, 5, 10, 10, NONE, 0, 1); /* no open was seen */
	rig_records(&r, p, s, 1);
	assert_int_equal(rig_last_offset(&r), NONE);
	rig_tick(&r, r.now + 10 * RIG_SECOND);
	assert_non_null(rig_filerec(&r, F, 0)); /* closed, as far as its record goes */
	s[0] =
	    rig_op(&r, "open", g, 5, 5, ASKED, NONE, O_RDONLY, 1); /* over a number that is open */
	rig_records(&r, p, s, 1);
	s[0] = rig_op(&r, "read", g, 5, 10, 10, NONE, 0, 1);
	rig_records(&r, p, s, 1);
	assert_int_equal(rig_last_offset(&r), 0);
	op(&r, p, "open", 5, 5, NONE, O_RDONLY);
	op(&r, p, "read", 5, 10, NONE, 0);
	assert_int_equal(rig_last_offset(&r), 0);
	rig_done(&r);
}

static void a_table_is_bounded(void **state)
{
	struct hr_positions t = {0};
	struct hr_place last;

	for (uint32_t fd = 0; fd < HR_POSITION_FDS; fd++)
		assert_non_null(hr_position_open(&t, (int32_t)fd, 1, 1, 0, 0));
	assert_null(hr_position_open(&t, HR_POSITION_FDS, 1, 1, 0, 0));
	for (uint32_t fd = 0; fd < HR_POSITION_FDS; fd += 3)
		assert_true(hr_position_close(&t, (int32_t)fd, &last));
	for (uint32_t fd = 0; fd < HR_POSITION_FDS; fd++)
		assert_int_equal(hr_position_get(&t, (int32_t)fd) != NULL, fd % 3 != 0);
	hr_positions_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(descriptors),
	    cmocka_unit_test(append_and_failure),
	    cmocka_unit_test(append_mode),
	    cmocka_unit_test(forks),
	    cmocka_unit_test(threads),
	    cmocka_unit_test(a_stream_of_a_descriptor),
	    cmocka_unit_test(streams),
	    cmocka_unit_test(vfork_children_change_nothing),
	    cmocka_unit_test(positions_outlive_a_checkpoint),
	    cmocka_unit_test(a_number_closed_out_of_sight),
	    cmocka_unit_test(a_table_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
