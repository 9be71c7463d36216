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

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static int block, other;
static unsigned handler_reads;

static void on_alarm(int signal_number)
{
	char buf[8];

	(void)signal_number;
	if (pread(other, buf, sizeof(buf), 0) == sizeof(buf))
		handler_reads++;
	siglongjmp(back, 1);
}

static void left_by_jump(void)
{
	struct itimerval soon = {.it_value.tv_usec = 3000};
	char buf[64];

	if (sigsetjmp(back, 1) == 0) {
		CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
		ssize_t got = pread(block, buf, sizeof(buf), 4096);
		die("a read that never returns gave %zd", got);
	}
}

static void *stuck(void *arg)
{
	char buf[64];

	t_pread(other, 100, 0);
	*(volatile int *)arg = 1;
	ssize_t got = pread(block, buf, sizeof(buf), 8192);
	die("a read that never returns gave %zd", got);
}

static void left_by_cancel(void)
{
	volatile int about_to_block = 0;
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, stuck, (void *)&about_to_block) == 0);
	while (!about_to_block)
		usleep(500);
	usleep(2000);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 &&
	      result == PTHREAD_CANCELED);
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10);
	struct sigaction action = {.sa_handler = on_alarm};
	const char *other_path = data_file(argv[2], 1);

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
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
