/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_jump FILE DIR ROUNDS - leaving a blocking read by siglongjmp and by pthread_cancel
 *
 * FILE is blockfs's: a read at offset 4096 blocks until a signal comes. Each round: a read that
 * returns, one that is left by siglongjmp out of a handler which itself does I/O, one in a thread
 * that is cancelled, and I/O as usual afterwards, so that a wedged ring would show. Prints how many
 * reads were left unreturned.
 */
#include "tally.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static sigjmp_buf back;
static int block, other;
static pthread_t main_thread, waker;

/*
 * Waits until the thread is blocked in pread(). Until then, a signal could come too early. System
 * calls by number, because the calls of the test are counted.
 */
static void wait_blocked(long tid)
{
	char path[64], text[64] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", tid);
	while (strtol(text, NULL, 10) != SYS_pread64) {
		long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		long n = syscall(SYS_read, fd, text, sizeof(text) - 1);

		CHECK(fd >= 0 && n > 0);
		syscall(SYS_close, fd);
		text[n] = '\0';
		usleep(200);
	}
}
static unsigned handler_reads;

static void *wake(void *arg)
{
	wait_blocked(getpid());
	CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
	return arg;
}

static void on_signal(int signal_number)
{
	char buf[8];

	(void)signal_number;
	if (pread(other, buf, sizeof(buf), 0) == sizeof(buf))
		handler_reads++;
	siglongjmp(back, 1);
}

static void left_by_jump(void)
{
	char buf[64];

	if (sigsetjmp(back, 1) == 0) {
		CHECK(pthread_create(&waker, NULL, wake, NULL) == 0);
		ssize_t got = pread(block, buf, sizeof(buf), 4096);
		die("a read that never returns gave %zd", got);
	}
	CHECK(pthread_join(waker, NULL) == 0);
}

static void *stuck(void *arg)
{
	char buf[64];

	t_pread(other, 100, 0);
	atomic_store((_Atomic long *)arg, syscall(SYS_gettid));
	ssize_t got = pread(block, buf, sizeof(buf), 8192);
	die("a read that never returns gave %zd", got);
}

static void left_by_cancel(void)
{
	_Atomic long tid = 0;
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, stuck, &tid) == 0);
	while (atomic_load(&tid) == 0)
		usleep(200);
	wait_blocked(atomic_load(&tid));
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 &&
	      result == PTHREAD_CANCELED);
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10);
	struct sigaction action = {.sa_handler = on_signal};
	const char *other_path = data_file(argv[2], 1);

	main_thread = pthread_self();
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	block = t_open(argv[1], O_RDONLY | O_CLOEXEC);
	other = t_open(other_path, O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < rounds; i++) {
		t_pread(block, 512, 0);
		left_by_jump();
		t_pread(block, 100, 0);
		left_by_cancel();
		t_pread(other, 50, 0);
	}
	t_close(block);
	t_close(other);
	CHECK(handler_reads == rounds);
	tally_add_many("pread", other_path, handler_reads, 8ULL * handler_reads);
	tally_flush();
	printf("%u\n", 2 * rounds);
	return 0;
}
