/* SPDX-License-Identifier: Apache-2.0 */
/* Rings under threads, signal handlers, longjmp, fork, vfork, and a daemon that does not keep up. */
#include "tests/shim_core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "shim/sys.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SLOWER 10 /* and no vfork: the sanitizer's runtime does not survive one */
#define TSAN   1
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWER 8 /* a fork copies the shadow's page tables */
#define TSAN   0
#else
#define SLOWER 1
#define TSAN   0
#endif

static char buf[64];

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Operations counted privately. */
static uint64_t counted(uint16_t op)
{
	return __atomic_load_n(&hr__wiped.counters[op].count, __ATOMIC_RELAXED);
}

static uint64_t with_bits(struct fake_daemon *d, uint16_t op, uint32_t bits)
{
	uint64_t n = 0;

	for (size_t i = 0; i < fake_records(d); i++)
		n += fake_record(d, i)->r.op == op && (fake_record(d, i)->r.bits & bits) == bits;
	return n;
}

/* ---- threads ----------------------------------------------------------------------------------- */

#define WORKERS	   6
#define WORKER_OPS 20000

static void *worker(void *arg)
{
	long n = WORKER_OPS / SLOWER, mine = (long)arg;
	int fd = t_open("a", O_RDONLY);
	char local[16];

	for (long i = 0; i < n; i++)
		t_pread(fd, local, 8, mine << 32 | i);
	t_close(fd);
	return NULL;
}

/* Every operation arrives, in each thread's own order, with its own numbers. */
CASE(many_threads)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=wait:5000", NULL);
	long next[WORKERS] = {0};
	pthread_t t[WORKERS];

	harness_file("a", 64);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (long i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(fake_lost(d, HR_OP_pread64).count == 0);
	CHECK(fake_count(d, HR_OP_pread64) == (uint64_t)WORKERS * (WORKER_OPS / SLOWER));
	CHECK(fake_sessions(d) == 1);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		if (r->op != HR_OP_pread64)
			continue;
		CHECK((r->offset & 0xffffffff) == next[r->offset >> 32]++);
		CHECK(r->asked == 8 && r->file != 0);
	}
}

static void *short_life(void *arg)
{
	(void)arg;
	t_close(t_open("a", O_RDONLY));
	return NULL;
}

/* A thousand threads one after another live on the rings of those before them. */
CASE(thread_churn)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 2}, "HEADRACE_ON_FULL=wait:5000", NULL);
	const int n = 1000 / SLOWER;

	harness_file("a", 64);
	for (int i = 0; i < n; i++) {
		pthread_t t;

		pthread_create(&t, NULL, short_life, NULL);
		pthread_join(t, NULL);
	}
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) == (uint64_t)n &&
	      fake_count(d, HR_CTL_THREAD) == (uint64_t)n);
	CHECK(fake_maps(d, 0) <= 2 &&
	      fake_bad(d) == 0); /* a tid may live a moment after the join */
}

static pthread_barrier_t barrier;

static void *stays(void *arg)
{
	(void)arg;
	t_close(t_open("a", O_RDONLY));
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* More threads than rings: further maps, then private counters that leave through others' rings. */
CASE(rings_run_out)
{
	struct fake_daemon *d = harness_start(
	    &(struct fake_options){.rings = 2, .slots_log2 = 8, .most_maps = 2}, NULL);
	pthread_t t[7];

	harness_file("a", 64);
	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 7; i++)
		pthread_create(&t[i], NULL, stays, NULL);
	while (fake_count(d, HR_OP_close) + fake_lost(d, HR_OP_close).count < 7)
		usleep(1000);
	fake_settle(d);
	CHECK(fake_maps(d, 0) == 2 && fake_count(d, HR_OP_open) == 4);
	CHECK(fake_lost(d, HR_OP_open).count == 3 && counted(HR_OP_open) == 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 7; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 400; i++)
		t_close(t_open("a", O_RDONLY));
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) + fake_lost(d, HR_OP_open).count == 407);
	CHECK(fake_lost(d, HR_OP_open).count >= 3 && counted(HR_OP_open) == 0);
}

#define CROWD 64 /* all maps, a ring in each */

/* Threads that all ask at once wait for one another: a slow daemon costs them time, no record. */
CASE(crowd)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 1, .slots_log2 = 8, .delay_ms = 3},
			  "HEADRACE_ON_FULL=wait:20000", NULL);
	pthread_t t[CROWD];

	harness_file("a", 64);
	pthread_barrier_init(&barrier, NULL, CROWD + 1);
	for (int i = 0; i < CROWD; i++)
		pthread_create(&t[i], NULL, stays, NULL);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < CROWD; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_maps(d, 0) == CROWD && fake_lost(d, HR_OP_open).count == 0);
	CHECK(fake_count(d, HR_OP_open) == CROWD && counted(HR_OP_open) == 0);
}

/* A thread that is gone in the middle of a call leaves a cell; its successor buries it. */
static void *dies(void *arg)
{
	struct hr_op op;

	hr_begin_fd(&op, HR_OP_read, *(int *)arg, 99, HR_OFFSET_NONE);
	hr_count(HR_OP_fgetc, *(int *)arg, 1);
	return NULL;
}

CASE(dead_owner)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.rings = 2}, NULL);
	pthread_t t;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	pthread_create(&t, NULL, dies, &fd);
	pthread_join(t, NULL);
	usleep(20000);
	CHECK(fake_inflight(d, 0, 0, 1).op == HR_OP_read);
	pthread_create(&t, NULL, short_life, NULL);
	pthread_join(t, NULL);
	fake_settle(d);
	CHECK(with_bits(d, HR_OP_read, HR_REC_CUT) == 1 && fake_count(d, HR_OP_read) == 1);
	CHECK(with_bits(d, HR_OP_fgetc, HR_REC_AGGREGATE) == 1);
	CHECK(fake_inflight(d, 0, 0, 1).op == 0 && fake_maps(d, 0) == 1);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_OP_read)
			CHECK(fake_record(d, i)->r.ret == HR_RET_NONE &&
			      fake_record(d, i)->tid != getpid() &&
			      fake_record(d, i)->r.asked == 99);
}

/* ---- a full ring ------------------------------------------------------------------------------- */

CASE(full_ring_drops_exactly)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.slots_log2 = 8}, "HEADRACE_ON_FULL=drop", NULL);
	const uint64_t n = 5000;
	struct hr_lost lost;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	fake_pause(d, true);
	for (uint64_t i = 0; i < n; i++)
		CHECK(t_pread(fd, buf, 8, 0) == 8);
	for (int i = 0; i < 10; i++)
		t_close(
		    t_open(i % 2 ? "b" : "c", O_CREAT | O_RDWR)); /* their paths are dropped too */
	fake_pause(d, false);
	fake_settle(d);
	lost = fake_lost(d, HR_OP_pread64);
	CHECK(lost.count > n - 256 && lost.bytes == lost.count * 8 && lost.ticks > 0);
	CHECK(fake_count(d, HR_OP_pread64) + lost.count == n);
	CHECK(fake_count(d, HR_OP_open) + fake_lost(d, HR_OP_open).count == 11);
	CHECK(fake_bad(d) == 0);
	t_close(t_open("b", O_RDWR)); /* now they are sent */
	fake_settle(d);
	CHECK(strstr(fake_path_at(d, fake_paths(d) - 1)->text, "/b") != NULL);
}

static void *unpause(void *arg)
{
	usleep(30000);
	fake_pause(arg, false);
	return NULL;
}

CASE(full_ring_waits)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.slots_log2 = 8},
					      "HEADRACE_ON_FULL=wait:2000", NULL);
	pthread_t t;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	fake_pause(d, true);
	pthread_create(&t, NULL, unpause, d);
	for (int i = 0; i < 5000; i++)
		CHECK(t_pread(fd, buf, 8, 0) == 8);
	pthread_join(t, NULL);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 5000 && fake_lost(d, HR_OP_pread64).count == 0);
}

/* Patience is spent once, not at every operation. */
CASE(full_ring_gives_up)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.slots_log2 = 8},
					      "HEADRACE_ON_FULL=wait:50", NULL);
	double start;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	fake_pause(d, true);
	start = now_s();
	for (int i = 0; i < 5000; i++)
		t_pread(fd, buf, 8, 0);
	CHECK(now_s() - start > 0.045 && now_s() - start < 0.5);
	fake_pause(d, false);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) + fake_lost(d, HR_OP_pread64).count == 5000);
}

/* ---- signal handlers --------------------------------------------------------------------------- */

static int handler_fd;
static uint64_t handled;

static void on_signal(int sig)
{
	int saved = errno;
	char local[8];

	(void)sig;
	t_pread(handler_fd, local, 8, 4096);
	t_close(t_open("h", O_RDONLY));
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static void timer(int us)
{
	struct itimerval it = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &it, NULL);
}

static void catch (void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	sigaction(SIGALRM, &sa, NULL);
}

/* Handlers interrupt every instruction of ours; nothing is lost, torn or mixed up, and errno is whole. */
CASE(nested_in_handlers)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=wait:5000", NULL);
	uint64_t n = 0, main_seen = 0, handler_seen = 0;
	double end;
	int fd;

	alarm(0);
	harness_file("a", 64);
	harness_file("h", 8192);
	fd = t_open("a", O_RDONLY);
	handler_fd = t_open("h", O_RDONLY);
	catch (on_signal, SA_RESTART | SA_NODEFER);
	timer(60 * SLOWER);
	for (end = now_s() + 1.5; now_s() < end;)
		for (int i = 0; i < 50; i++, n++) {
			errno = (int)(n & 127);
			CHECK(t_pread(fd, buf, 8, 0) == 8 && errno == (int)(n & 127));
		}
	timer(0);
	usleep(2000);
	fake_settle(d);
	CHECK(handled > 100 && fake_bad(d) == 0 && fake_torn(d) == 0);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		if (r->op != HR_OP_pread64)
			continue;
		CHECK((r->fd == fd && r->offset == 0) ||
		      (r->fd == handler_fd && r->offset == 4096));
		main_seen += r->fd == fd;
		handler_seen += r->fd == handler_fd;
	}
	CHECK(main_seen + handler_seen + fake_lost(d, HR_OP_pread64).count == n + handled);
	CHECK(fake_lost(d, HR_OP_pread64).count == 0 && handler_seen == handled);
	CHECK(fake_count(d, HR_OP_open) == handled + 2);
	CHECK(fake_inflight(d, 0, 0, 0).op == 0);
}

static sigjmp_buf out;

static void jumps(int sig)
{
	(void)sig;
	hr_before_longjmp(out);
	siglongjmp(out, 1);
}

/* In a frame of its own, as a wrapper is. */
static __attribute__((noinline)) void blocks(int fd)
{
	struct hr_op op;

	hr_begin_fd(&op, HR_OP_read, fd, 77, HR_OFFSET_NONE);
	for (;;)
		pause();
}

CASE(left_by_longjmp)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int fd;

	alarm(0);
	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	catch (jumps, 0);
	if (sigsetjmp(out, 1) == 0) {
		timer(5000);
		blocks(fd);
	}
	timer(0);
	CHECK(fake_inflight(d, 0, 0, 0).op == 0);
	CHECK(t_pread(fd, buf, 8, 0) == 8);
	hr_before_longjmp(out); /* nothing in flight: nothing said */
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_read) == 1 && with_bits(d, HR_OP_read, HR_REC_CUT) == 1);
	CHECK(fake_count(d, HR_OP_pread64) == 1 && fake_bad(d) == 0);
}

/* A handler that jumps inside itself returns into the operation: one record, and it is not cut. */
static void hops(int sig)
{
	sigjmp_buf inside;

	(void)sig;
	if (sigsetjmp(inside, 1) == 0) {
		hr_before_longjmp(inside);
		siglongjmp(inside, 1);
	}
}

CASE(handler_hops)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_op op;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	catch (hops, 0);
	hr_begin_fd(&op, HR_OP_read, fd, 77, HR_OFFSET_NONE);
	raise(SIGALRM);
	CHECK(fake_inflight(d, 0, 0, 0).op == HR_OP_read);
	hr_end(&op, 64, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_read) == 1 && fake_inflight(d, 0, 0, 0).op == 0);
#if defined(__x86_64__)
	CHECK(with_bits(d, HR_OP_read, HR_REC_CUT) == 0);
#endif
}

/* ---- fork -------------------------------------------------------------------------------------- */

static int stop;

static void *busy(void *arg)
{
	int fd = t_open("a", O_RDONLY);
	char local[8];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		t_pread(fd, local, 8, 0);
		if (__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED) % 32 == 0)
			usleep(
			    10); /* or the daemon's memory, which every child copies, would grow */
	}
	t_close(fd);
	return NULL;
}

static void wait_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/*
 * Children of a process whose other threads are in the middle of everything. On a machine so busy that the daemon
 * does not answer in 50 ms, a child goes without: `late`.
 */
CASE(fork_among_threads)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=wait:5000", NULL);
	const uint64_t n = 1000 / (SLOWER * 2);
	uint64_t done = 0, children = 0, late = 0;
	pthread_t t[2];
	int fd, status;

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
			_exit(hr__ring_current() == NULL);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		late += (uint64_t)WEXITSTATUS(status);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_sessions(d) >= n + 1 - late && fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(SLOWER > 1 || late < n / 10);
	CHECK(fake_count(d, HR_CTL_FORK) == n);
	CHECK(fake_count(d, HR_OP_pread64) == done + n - late);
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
	CHECK(children == n - late);
}

static pid_t handler_child = -1;

static void forks(int sig)
{
	(void)sig;
	if (handler_child == -1)
		handler_child = t_fork();
}

/* The child goes on in the frame that the handler interrupted, without touching the parent's ring. */
CASE(fork_in_handler)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=wait:5000", NULL);
	const int n = 300 / SLOWER;
	uint64_t before = 0;
	int fd;

	alarm(0);
	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	catch (forks, SA_RESTART);
	for (int i = 0; i < n; i++) {
		handler_child = -1;
		timer(50 + i % 97);
		while (__atomic_load_n(&handler_child, __ATOMIC_RELAXED) == -1) {
			t_pread(fd, buf, 8, 0);
			before++;
		}
		timer(0);
		if (handler_child == 0) {
			t_pread(fd, buf, 8, 16);
			_exit(0);
		}
		wait_child(handler_child);
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
		wait_child(pid);
		t_close(t_open("a", O_RDONLY));
		_exit(0);
	}
	wait_child(pid);
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
	wait_child(pid);
	CHECK(t_pread(fa, buf, 8, 0) == 8);
	hr_before_vfork();
	hr_before_vfork();
	CHECK(t_close(fa) == 0 && hr__fdtab.entries[fa] == HR_FILE_UNKNOWN);
	fake_settle(d);
	CHECK(fake_sessions(d) == 1 && fake_bad(d) == 0);
	CHECK(with_bits(d, HR_OP_pread64, HR_REC_VFORK) == 1);
	CHECK(fake_count(d, HR_OP_pread64) == 2);
	CHECK(with_bits(d, HR_OP_close, HR_REC_VFORK) == 1 && fake_count(d, HR_OP_close) == 2);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_CTL_FORK)
			CHECK(fake_record(d, i)->r.fd == pid && fake_record(d, i)->r.flags == 1);
	CHECK(fake_count(d, HR_CTL_FORK) == 1);
}

/* Attaches before the filter, and asks nothing of the kernel after it. */
CASE(quiet_after_seccomp)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	char path[100];
	int fd;

	harness_file("a", 64);
	hr_before_seccomp();
	CHECK(fake_sessions(d) == 1 && hr__image.quiet);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(many_threads),	  cmocka_unit_test(thread_churn),
	    cmocka_unit_test(rings_run_out),	  cmocka_unit_test(crowd),
	    cmocka_unit_test(dead_owner),	  cmocka_unit_test(full_ring_drops_exactly),
	    cmocka_unit_test(full_ring_waits),	  cmocka_unit_test(full_ring_gives_up),
	    cmocka_unit_test(nested_in_handlers), cmocka_unit_test(left_by_longjmp),
	    cmocka_unit_test(handler_hops),	  cmocka_unit_test(fork_among_threads),
	    cmocka_unit_test(fork_in_handler),	  cmocka_unit_test(grandchildren),
	    cmocka_unit_test(vfork_child),	  cmocka_unit_test(quiet_after_seccomp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
