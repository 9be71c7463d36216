/* SPDX-License-Identifier: Apache-2.0 */
/* fork, vfork, and what children can do when they cannot attach. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

static char buf[64];

static int stop;

static void *busy(void *arg)
{
	int fd = t_open("a", O_RDONLY);
	char local[8];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		t_pread(fd, local, 8, 0);
		if (__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED) % 32 == 0)
			/* or the daemon's memory, which every child copies, would grow */
			usleep(10);
	}
	t_close(fd);
	return NULL;
}

/* Children of a process whose other threads are in the middle of everything. */
CASE(fork_among_threads)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	const uint64_t n = 200 / SLOWER;
	uint64_t done = 0, children = 0;
	pthread_t t[2];
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, busy, &done);
	for (uint64_t i = 0; i < n; i++) {
		pid_t pid = t_fork();

		if (pid == 0) {
			t_pread(fd, buf, 8, 0); /* inherited */
			if (i % 4 == 0)
				t_close(t_open("a", O_RDONLY));
			_exit(hr_ring_current() == NULL);
		}
		t_wait(pid);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_sessions(d) == n + 1 && fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(fake_count(d, HR_CTL_FORK) == n);
	CHECK(fake_count(d, HR_OP_pread64) == done + n);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct fake_record *k = fake_record(d, i);

		if (k->r.op != HR_OP_pread64 || k->session == 0)
			continue;
		children++;
		CHECK(fake_path(d, k->session, k->r.file) != NULL);
		CHECK(fake_session(d, k->session)->hello.flags & HR_HELLO_FORKED);
		CHECK(fake_session(d, k->session)->hello.parent_session != 0);
		CHECK(fake_session(d, k->session)->hello.ppid == getpid());
	}
	CHECK(children == n);
}

static pid_t handler_child = -1;

static void forks(int sig)
{
	if (handler_child == -1)
		handler_child = t_fork();
}

/* The child goes on in the frame that the handler interrupted, without touching the parent's ring. */
CASE(fork_in_handler)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	const int n = 300 / SLOWER;
	uint64_t before = 0;
	int fd;

	alarm(0);
	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	t_catch(forks, SA_RESTART);
	for (int i = 0; i < n; i++) {
		handler_child = -1;
		t_timer(50 + i % 97);
		while (__atomic_load_n(&handler_child, __ATOMIC_RELAXED) == -1) {
			t_pread(fd, buf, 8, 0);
			before++;
		}
		t_timer(0);
		if (handler_child == 0) {
			t_pread(fd, buf, 8, 16);
			_exit(0);
		}
		t_wait(handler_child);
	}
	fake_settle(d);
	CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(fake_sessions(d) == (size_t)n + 1);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->session == 0 && fake_record(d, i)->r.op == HR_OP_pread64)
			before--;
	CHECK(before == 0);
}

CASE(grandchildren)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	pid_t pid;

	harness_file("a", 64);
	t_close(t_open("a", O_RDONLY));
	pid = fork(); /* unseen by the shim: found out at the first operation */
	if (pid == 0) {
		t_close(t_open("a", O_RDONLY));
		pid = t_fork();
		if (pid == 0) {
			t_close(t_open("a", O_RDONLY));
			_exit(0);
		}
		t_wait(pid);
		t_close(t_open("a", O_RDONLY));
		_exit(0);
	}
	t_wait(pid);
	t_close(t_open("a", O_RDONLY));
	fake_settle(d);
	CHECK(fake_sessions(d) == 3 && fake_count(d, HR_OP_open) == 5 && fake_bad(d) == 0);
	CHECK(fake_session(d, 2)->hello.ppid == fake_session(d, 1)->hello.pid);
	CHECK(fake_session(d, 2)->hello.parent_session != fake_session(d, 1)->hello.parent_session);
	CHECK(fake_count(d, HR_CTL_FORK) == 1 && fake_paths(d) == 3);
}

/* The child of vfork closes and duplicates on its own table only. */
CASE(vfork_child)
{
	struct fake_daemon *d;
	hr_file a, b;
	int fa, fb;
	pid_t pid;

	if (TSAN)
		return;
	d = harness_start(NULL, NULL);
	harness_file("a", 64);
	harness_file("b", 64);
	fa = t_open("a", O_RDONLY);
	fb = t_open("b", O_RDONLY);
	a = hr_fd_get(fa);
	b = hr_fd_get(fb);
	hr_before_vfork();
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested */
	if (pid == 0) {
		/* NOLINTBEGIN(clang-analyzer-unix.Vfork) */
		t_pread(fa, buf, 8, 0);
		t_close(fa);
		dup2(fb, fa);
		hr_fd_set(fa, b);
		hr_fd_clear_range(3, ~0u);
		hr_cwd_changed();
		/* NOLINTEND(clang-analyzer-unix.Vfork) */
		_exit(0);
	}
	CHECK(hr_fd_get(fa) == a && hr_fd_get(fb) == b);
	t_wait(pid);
	CHECK(t_pread(fa, buf, 8, 0) == 8);
	hr_before_vfork();
	hr_before_vfork();
	CHECK(t_close(fa) == 0 && hr__fdtab.entries[fa] == HR_FILE_UNKNOWN);
	fake_settle(d);
	CHECK(fake_sessions(d) == 1 && fake_bad(d) == 0);
	CHECK(fake_with_bits(d, HR_OP_pread64, HR_REC_VFORK) == 1);
	CHECK(fake_count(d, HR_OP_pread64) == 2);
	CHECK(fake_with_bits(d, HR_OP_close, HR_REC_VFORK) == 1 && fake_count(d, HR_OP_close) == 2);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_CTL_FORK)
			CHECK(fake_record(d, i)->r.fd == pid && fake_record(d, i)->r.flags == 1);
	CHECK(fake_count(d, HR_CTL_FORK) == 1);
}

/* The parent ignores a descriptor, for which its child has a file. */
CASE(vfork_child_exchanges)
{
	struct fake_daemon *d;
	int pipes[2], fd;
	pid_t pid;

	if (TSAN)
		return;
	d = harness_start(NULL, NULL);
	fd = harness_attach();
	CHECK(pipe2(pipes, O_CLOEXEC) == 0 && hr_fd_get(pipes[0]) == HR_FILE_IGNORED);
	hr_before_vfork();
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested */
	if (pid == 0) {
		/* NOLINTBEGIN(clang-analyzer-unix.Vfork) */
		hr_fd_set(pipes[0], hr_fd_get(fd));
		dup2(fd, pipes[0]);
		t_pread(pipes[0], buf, 8, 0);
		/* NOLINTEND(clang-analyzer-unix.Vfork) */
		_exit(0);
	}
	t_wait(pid);
	t_pread(pipes[0], buf, 8, 0);
	CHECK(hr_fd_ignored(pipes[0]));
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 1);
	CHECK(fake_with_bits(d, HR_OP_pread64, HR_REC_VFORK) == 1);
}

/* No descriptor is free: the child cannot attach, and its child cannot; both are counted at their parent. */
CASE(strays)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct rlimit none;
	struct hr_lost stray;
	int fd;
	pid_t pid;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	CHECK(getrlimit(RLIMIT_NOFILE, &none) == 0);
	none.rlim_cur = 0;
	pid = t_fork();
	if (pid == 0) {
		CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
		for (int i = 0; i < 10; i++)
			CHECK(t_pread(fd, buf, 8, 0) == 8);
		pid = t_fork();
		if (pid == 0) {
			CHECK(t_pread(fd, buf, 16, 0) == 16);
			raise(SIGKILL);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
		CHECK(hr_ring_current() == NULL && hr_wiped.nonce == 0);
		_exit(0);
	}
	t_wait(pid);
	t_pread(fd, buf, 8, 0);
	fake_settle(d);
	stray = fake_strays(d, HR_OP_pread64);
	CHECK(stray.count == 11 && stray.bytes == 96 && stray.ticks > 0);
	CHECK(fake_count(d, HR_OP_pread64) == 1 && fake_lost(d, HR_OP_pread64).count == 0);
	CHECK(fake_sessions(d) == 1 && fake_bad(d) == 0);
}

#define TOGETHER 20000

static int together(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < TOGETHER; i++) {
		t_pread(fd, buf, 8, 0);
		hr_count(HR_OP_fgetc, fd, 1);
	}
	hr_fd_set(fd, HR_FILE_IGNORED); /* of its own table, says clone */
	_exit(0);
}

/* clone with CLONE_VM alone: two processes on one thread's ring, at once. */
CASE(shared_thread)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	struct fake_daemon *d;
	uint64_t calls = 0;
	pid_t pid;
	int fd;

	if (TSAN)
		return;
	d = harness_start(NULL, NULL);
	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	hr_count(HR_OP_fgetc, fd, 1);
	hr_before_sharing();
	pid = clone(together, stack + sizeof(stack), CLONE_VM | SIGCHLD, &fd);
	for (int i = 0; i < TOGETHER; i++) {
		t_pread(fd, buf, 8, 0);
		hr_count(HR_OP_fgetc, fd, 1);
	}
	t_wait(pid);
	t_pread(fd, buf, 8, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 2 * TOGETHER + 1);
	CHECK(fake_with_bits(d, HR_OP_pread64, HR_REC_VFORK) == TOGETHER);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_OP_fgetc)
			calls += fake_record(d, i)->r.asked;
	CHECK(calls == 2 * TOGETHER + 1);
	CHECK(fake_torn(d) == 0 && fake_bad(d) == 0 && fake_inflight(d, 0, 0, 0).op == 0);
}

/* Attaches before the filter, and asks nothing of the kernel after it. */
CASE(quiet_after_seccomp)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	char path[100];
	int fd;

	harness_file("a", 64);
	hr_before_seccomp();
	CHECK(hr_shim_image.quiet);
	fake_settle(d); /* a slow machine's daemon is offered a map, and adopts it now */
	CHECK(fake_sessions(d) == 1);
	fd = t_open("a", O_RDONLY);
	t_pread(fd, buf, 8, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 1); /* the folder was asked for before */
	t_close(fd);
	CHECK(chdir("/") == 0);
	snprintf(path, sizeof(path), "%s/a", harness_dir);
	fd = t_open(path, O_RDONLY);
	t_pread(fd, buf, 8, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 2 && fake_count(d, HR_OP_open) == 2);
}

static const char *path_of(struct fake_daemon *d, uint16_t op, bool second)
{
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct fake_record *k = fake_record(d, i);
		const struct fake_path *p =
		    fake_path(d, k->session, second ? k->pair.file : k->r.file);

		if (k->r.op == op && p != NULL)
			return p->text;
	}
	return "(none)";
}

/* No later attempt is possible: the totals stay in the process. */
CASE(quiet_without_a_daemon)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.status = -EACCES}, NULL);

	harness_file("a", 64);
	hr_before_seccomp();
	CHECK(hr_wiped.attempts == 1 && hr_wiped.nonce == 0);
	t_close(t_open("a", O_RDONLY));
	hr__ring_last_chance();
	CHECK(hr_wiped.attempts == 1 && hr_wiped.counters[HR_OP_open].count == 1);
	CHECK(fake_sessions(d) == 0);
}

/* Success proves that a path is readable. */
CASE(quiet_paths)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	char from[100], to[100];

	harness_attach();
	hr_before_seccomp();
	snprintf(from, sizeof(from), "%s/a", harness_dir);
	snprintf(to, sizeof(to), "%s/b", harness_dir);
	CHECK(t_rename(from, to) == 0 && t_chdir(harness_dir) == 0);
	fake_settle(d);
	CHECK(strcmp(path_of(d, HR_OP_rename, false), from) == 0);
	CHECK(strcmp(path_of(d, HR_OP_rename, true), to) == 0);
	CHECK(strcmp(path_of(d, HR_OP_chdir, false), harness_dir) == 0);
}

/* A child on the parent's memory, which no system call may find out, changes no table. */
CASE(quiet_vfork)
{
	static char *const no_variable[] = {NULL};
	struct fake_daemon *d;
	int fd, copy;
	pid_t pid;

	if (TSAN)
		return;
	d = harness_start(NULL, NULL);
	fd = harness_attach();
	hr_before_seccomp();
	hr_before_vfork();
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested */
	if (pid == 0) {
		/* NOLINTBEGIN(clang-analyzer-unix.Vfork) */
		hr_fd_set(fd, HR_FILE_IGNORED);
		hr_fd_clear(fd);
		hr_fd_clear_range(3, ~0u);
		hr_before_exec("/nonexistent", no_variable);
		/* NOLINTEND(clang-analyzer-unix.Vfork) */
		_exit(0);
	}
	t_wait(pid);
	t_pread(fd, buf, 8, 0);
	copy = t_open("a", O_RDONLY);
	t_pread(copy, buf, 8, 0);
	t_close(copy);
	CHECK(hr__fdtab.entries[copy] == HR_FILE_UNKNOWN);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 2 &&
	      fake_with_bits(d, HR_OP_pread64, HR_REC_VFORK) == 0);
}

/* A process without a filter, because the kernel refused it, makes system calls again. */
CASE(refused_seccomp)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int fd;

	harness_attach();
	hr_before_seccomp();
	hr_before_seccomp(); /* another thread */
	hr_seccomp_failed();
	fd = open("a", O_RDONLY | O_CLOEXEC);
	t_pread(fd, buf, 8, 0);
	hr_seccomp_failed();
	t_pread(fd, buf, 8, 0);
	fake_settle(d);
	CHECK(hr_shim_image.quiet == 0 && fake_count(d, HR_OP_pread64) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fork_among_threads),  cmocka_unit_test(fork_in_handler),
	    cmocka_unit_test(grandchildren),	   cmocka_unit_test(vfork_child),
	    cmocka_unit_test(shared_thread),	   cmocka_unit_test(strays),
	    cmocka_unit_test(quiet_after_seccomp), cmocka_unit_test(vfork_child_exchanges),
	    cmocka_unit_test(quiet_paths),	   cmocka_unit_test(quiet_without_a_daemon),
	    cmocka_unit_test(quiet_vfork),	   cmocka_unit_test(refused_seccomp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
