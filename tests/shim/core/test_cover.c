/* SPDX-License-Identifier: Apache-2.0 */
/* What probes are told: where a thread's cell is, and what is under way that no cell shows. */
#include "tests/shim/core/harness.h"

#include <pthread.h>

static struct hr_item_cover cover_of(struct fake_daemon *d, size_t session)
{
	struct hr_item_cover cover;
	char buf[sizeof(cover) + 1];

	CHECK(fake_sessions(d) > session);
	CHECK(fake_item(fake_session(d, session), HR_ITEM_COVER, 0, buf, sizeof(buf)) ==
	      sizeof(cover));
	memcpy(&cover, buf, sizeof(cover));
	return cover;
}

/* As a probe finds it, in the calling thread. */
static const struct hr_cover *found(const struct hr_item_cover *cover)
{
	return (const void *)((const char *)__builtin_thread_pointer() + cover->thread);
}

static const struct hr_record *first(struct fake_daemon *d, size_t session, uint16_t op)
{
	fake_settle(d);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->session == session && fake_record(d, i)->r.op == op)
			return &fake_record(d, i)->r;
	CHECK(!"no such record");
	return NULL;
}

static bool idle(const struct hr_cover *c)
{
	const struct hr_ring_hdr *ring = (const void *)(uintptr_t)c->ring;

	return c->slow[HR_COVER_BARE] == HR_BARE_NOT && hr_self.began == 0 && ring != NULL &&
	       ring->inflight.op == 0;
}

CASE(attached_by_an_open)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_item_cover cover;

	harness_file("a", 10);
	CHECK(t_open("/etc/passwd", O_RDONLY) >= 0); /* of no interest: over, and forgotten */
	CHECK(hr_self.began == 0);
	CHECK(t_open("a", O_RDONLY) >= 0);
	cover = cover_of(d, 0);
	CHECK((const void *)found(&cover) == (const void *)&hr_self);
	CHECK(found(&cover)->ring == (uintptr_t)hr_self.ring && idle(found(&cover)));
	CHECK(cover.began_ticks != 0 && cover.began_ticks == first(d, 0, HR_OP_open)->start_ticks);
}

CASE(attached_by_a_second_name)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_EXCLUDE=*/a", NULL);
	struct hr_item_cover cover;

	harness_file("a", 10);
	CHECK(t_rename("a", "b") == 0);
	cover = cover_of(d, 0);
	CHECK(cover.began_ticks == first(d, 0, HR_OP_rename)->start_ticks);
	CHECK(idle(found(&cover)));
}

/* What attaches before the call has its cell by then. */
CASE(attached_by_a_descriptor)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_item_cover cover;
	struct hr_op op;
	char byte;
	int fd;

	harness_file("a", 10);
	fd = open("a", O_RDONLY | O_CLOEXEC);
	hr_begin_fd(&op, HR_OP_read, fd, 1, HR_OFFSET_NONE);
	cover = cover_of(d, 0);
	CHECK(cover.began_ticks == 0);
	CHECK(found(&cover)->slow[HR_COVER_BARE] == HR_BARE_NOT &&
	      hr_self.ring->inflight.op == HR_OP_read);
	CHECK(read(fd, &byte, 1) == 1);
	hr_end(&op, 1, 0);
	CHECK(idle(found(&cover)));
}

CASE(attached_by_a_name_that_is_looked_at_before)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_op op;

	hr_begin_path(&op, HR_OP_chdir, AT_FDCWD, ".", HR_ASKED_NONE);
	CHECK(cover_of(d, 0).began_ticks == 0 && hr_self.ring->inflight.op == HR_OP_chdir);
	hr_end(&op, 0, 0);
	CHECK(first(d, 0, HR_OP_chdir)->ret == 0 && hr_self.ring->inflight.op == 0);
}

static struct hr_item_cover told;

static void *open_in_thread(void *arg)
{
	const struct hr_cover *c = found(&told);
	struct hr_op op;
	int fd;

	hr_begin_path(&op, HR_OP_open, AT_FDCWD, "a", HR_ASKED_NONE);
	CHECK(c->ring == 0 && c->slow[HR_COVER_BARE] == HR_BARE_CALL);
	CHECK(arg == NULL || t_open("b", O_RDONLY) >= 0); /* a signal handler's */
	CHECK(c->slow[HR_COVER_BARE] == HR_BARE_CALL && hr_self.began == op.start);
	fd = open("a", O_RDONLY | O_CLOEXEC);
	hr_end_open(&op, fd, fd, O_RDONLY);
	CHECK(idle(c));
	hr_begin_path(&op, HR_OP_open, AT_FDCWD, "/etc/passwd", HR_ASKED_NONE);
	CHECK(c->slow[HR_COVER_BARE] == HR_BARE_NOT); /* there is a ring, and a cell */
	hr_end_open(&op, -1, -ENOENT, O_RDONLY);
	return NULL;
}

CASE(first_open_of_a_thread)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	pthread_t t;

	harness_file("a", 10);
	harness_file("b", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	told = cover_of(d, 0);
	for (uintptr_t nested = 0; nested < 2; nested++) {
		CHECK(pthread_create(&t, NULL, open_in_thread, (void *)nested) == 0);
		CHECK(pthread_join(t, NULL) == 0);
	}
	fake_settle(d);
	CHECK(fake_sessions(d) == 1 && fake_count(d, HR_OP_open) == 4);
}

/* Whatever a signal handler does meanwhile. */
CASE(buffer_of_a_stream)
{
	const struct hr_cover *c = (const void *)&hr_self;
	uint8_t outer;

	harness_start(NULL, NULL);
	harness_file("a", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	outer = hr_begin_buffer();
	CHECK(c->slow[HR_COVER_BARE] == HR_BARE_STDIO);
	CHECK(t_open("a", O_RDONLY) >= 0 && c->slow[HR_COVER_BARE] == HR_BARE_STDIO);
	hr_end_buffer(outer);
	CHECK(idle(c));
}

CASE(forked_child)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_item_cover mine, its;
	pid_t pid;

	harness_file("a", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	pid = t_fork();
	if (pid == 0) {
		CHECK(t_open("a", O_RDONLY) >= 0 && idle((const void *)&hr_self));
		_exit(0);
	}
	t_wait(pid);
	mine = cover_of(d, 0);
	its = cover_of(d, 1);
	CHECK(its.thread == mine.thread && its.began_ticks > mine.began_ticks);
	CHECK(its.began_ticks == first(d, 1, HR_OP_open)->start_ticks);
}

/* In a child handler of pthread_atfork: fork() has not returned to its wrapper yet. */
CASE(forked_child_before_fork_returns)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	pid_t pid;

	harness_file("a", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	pid = fork();
	if (pid == 0) {
		CHECK(t_open("a", O_RDONLY) >= 0 && idle((const void *)&hr_self));
		hr_after_fork_child();
		CHECK(t_open("a", O_RDONLY) >= 0 && idle((const void *)&hr_self));
		_exit(0);
	}
	hr_after_fork_parent(pid);
	t_wait(pid);
	CHECK(cover_of(d, 1).began_ticks == first(d, 1, HR_OP_open)->start_ticks);
	CHECK(fake_sessions(d) == 2 && fake_count(d, HR_OP_open) == 3);
}

static __attribute__((noinline)) void open_and_jump(jmp_buf env)
{
	struct hr_op op;

	hr_begin_path(&op, HR_OP_open, AT_FDCWD, "a", HR_ASKED_NONE);
	CHECK(hr_self.slow.why[HR_COVER_BARE] == HR_BARE_CALL);
	hr_before_longjmp(env);
	longjmp(env, 1);
}

/* A jump out of a call that has no cell: the next one is not taken for a part of it. */
CASE(left_by_a_jump)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	jmp_buf env;

	harness_file("a", 10);
	if (setjmp(env) == 0)
		open_and_jump(env);
	CHECK(hr_self.slow.why[HR_COVER_BARE] == HR_BARE_NOT && hr_self.began == 0);
	CHECK(t_open("a", O_RDONLY) >= 0);
	CHECK(cover_of(d, 0).began_ticks == first(d, 0, HR_OP_open)->start_ticks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(attached_by_an_open),
	    cmocka_unit_test(attached_by_a_second_name),
	    cmocka_unit_test(attached_by_a_descriptor),
	    cmocka_unit_test(attached_by_a_name_that_is_looked_at_before),
	    cmocka_unit_test(first_open_of_a_thread),
	    cmocka_unit_test(buffer_of_a_stream),
	    cmocka_unit_test(forked_child),
	    cmocka_unit_test(forked_child_before_fork_returns),
	    cmocka_unit_test(left_by_a_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
