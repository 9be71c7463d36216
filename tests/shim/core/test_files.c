/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on no file, on two files, and on files that a child has from its parent. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

static const struct fake_record *only(struct fake_daemon *d, uint32_t session, uint16_t op)
{
	const struct fake_record *found = NULL;

	for (size_t i = 0; i < fake_records(d); i++) {
		const struct fake_record *k = fake_record(d, i);

		if (k->r.op != op || k->session != session)
			continue;
		CHECK(found == NULL);
		found = k;
	}
	CHECK(found != NULL);
	return found;
}

static bool named(struct fake_daemon *d, uint32_t session, uint64_t file, const char *name)
{
	const struct fake_path *p = fake_path(d, session, file);

	return p != NULL && strcmp(strrchr(p->text, '/') + 1, name) == 0;
}

/* sync() is the first thing that a process does: it attaches. */
CASE(no_file)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	const struct hr_record *r;
	struct hr_op op;

	hr_begin_file(&op, HR_OP_sync, HR_FILE_UNKNOWN, -1, HR_ASKED_NONE, HR_OFFSET_NONE);
	CHECK(op.live && fake_inflight(d, 0, 0, 0).op == HR_OP_sync);
	hr_end(&op, 0, 0);
	hr_begin_file(&op, HR_OP_msync, HR_FILE_IGNORED, -1, 1, HR_OFFSET_NONE);
	CHECK(!op.live);
	fake_settle(d);
	r = &only(d, 0, HR_OP_sync)->r;
	CHECK(r->file == 0 && r->fd == -1 && r->ret == 0 && r->bits == 0);
	CHECK(fake_total(d) == 1 && fake_bad(d) == 0 && fake_paths(d) == 0);
}

static ssize_t t_sendfile(int out, int in, size_t n)
{
	struct hr_op op;
	ssize_t r;

	hr_begin_fd(&op, HR_OP_sendfile, in, n, HR_OFFSET_NONE);
	r = sendfile(out, in, NULL, n);
	hr_end_pair(&op, hr_fd_get(out), out, HR_OFFSET_NONE, hr_ret(r), 0);
	return r;
}

/*
 * The second descriptor was never seen before, or came from the parent: its name is told like that of the first.
 * One that is not tracked leaves its half empty.
 */
CASE(copies)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int in, out, pipes[2], status;
	struct hr_op op;
	pid_t pid;

	harness_file("in", 64);
	in = t_open("in", O_RDONLY);
	out = open("out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0 && t_sendfile(out, in, 7) == 7);
	pid = t_fork();
	if (pid == 0)
		_exit(t_sendfile(out, in, 9) != 9);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	fake_settle(d);
	for (uint32_t session = 0; session < 2; session++) {
		CHECK(named(d, session, only(d, session, HR_OP_sendfile)->r.file, "in"));
		CHECK(named(d, session, only(d, session, HR_OP_sendfile)->pair.file, "out"));
		CHECK(only(d, session, HR_OP_sendfile)->pair.fd == out);
	}
	hr_begin_fd(&op, HR_OP_splice, in, 1, HR_OFFSET_NONE);
	hr_end_pair(&op, hr_fd_get(pipes[1]), -1, HR_OFFSET_NONE, 1, 0);
	fake_settle(d);
	CHECK((only(d, 0, HR_OP_splice)->r.bits & HR_REC_PAIR) != 0);
	CHECK(only(d, 0, HR_OP_splice)->pair.file == 0 && fake_bad(d) == 0);
}

/*
 * A mapping has no descriptor and keeps no text: in a child it names the file by the number under which the
 * parent's session announced it, which the daemon knows across the sessions of a stream.
 */
CASE(mapping_in_child)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=wait:1000", NULL);
	struct hr_op op;
	int fd, status;
	pid_t pid;
	void *p;

	harness_file("a", 4096);
	fd = t_open("a", O_RDWR);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	hr_map_add(p, 4096, hr_fd_get(fd));
	t_close(fd);
	pid = t_fork();
	if (pid == 0) {
		hr_begin_map(&op, HR_OP_msync, p, 4096);
		hr_end(&op, hr_ret(msync(p, 4096, MS_ASYNC)), MS_ASYNC);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	fake_settle(d);
	CHECK(fake_path(d, 1, only(d, 1, HR_OP_msync)->r.file) == NULL);
	CHECK(named(d, 0, only(d, 1, HR_OP_msync)->r.file, "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_file),
	    cmocka_unit_test(copies),
	    cmocka_unit_test(mapping_in_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
