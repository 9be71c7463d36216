/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes - what bench/probes.py runs in a job, outside of it, with a shim (linked dynamically) or without (statically)
 *
 *   cost FILE BATCHES OPS       CPU time of a pread of 4 KiB and of an lseek: "NAME NS" per batch; a pause between batches, for headraced
 *   rate FILE PER_SECOND READERS   preads of 4 KiB for a second at that rate (0: as fast as it goes), by so many processes together: "CALLS"
 *   wait                        until standard input ends
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	 4096
#define BLOCKS	 16
#define PAUSE_US 3000
#define SPURT	 64 /* calls between two looks at the clock */

static int fd;

static void die(const char *what)
{
	fprintf(stderr, "probes: %s: %m\n", what);
	exit(1);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void preads(long n)
{
	static char block[BLOCK];

	for (long i = 0; i < n; i++)
		if (pread(fd, block, BLOCK, i % BLOCKS * BLOCK) != BLOCK)
			die("pread");
}

static void lseeks(long n)
{
	for (long i = 0; i < n; i++)
		if (lseek(fd, i % BLOCKS, SEEK_SET) < 0)
			die("lseek");
}

static void batch(const char *name, void (*calls)(long), long ops)
{
	double began = now(CLOCK_THREAD_CPUTIME_ID);

	calls(ops);
	printf("%s %.2f\n", name, (now(CLOCK_THREAD_CPUTIME_ID) - began) / (double)ops);
	usleep(PAUSE_US);
}

static void cost(long batches, long ops)
{
	preads(ops); /* attaches, and warms up */
	lseeks(ops);
	for (long i = 0; i < batches; i++) {
		batch("pread", preads, ops);
		batch("lseek", lseeks, ops);
	}
}

/* For a second; how many it were. */
static long preads_at(double per_second)
{
	double began = now(CLOCK_MONOTONIC), at = began;
	long calls = 0;

	while (at < began + 1e9) {
		if (per_second == 0 || (double)calls < (at - began) * 1e-9 * per_second) {
			preads(SPURT);
			calls += SPURT;
		}
		at = now(CLOCK_MONOTONIC);
	}
	return calls;
}

static void rate(double per_second, long readers)
{
	long *calls = mmap(NULL, (size_t)readers * sizeof(*calls), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long all = 0;

	if (calls == MAP_FAILED)
		die("mmap");
	for (long i = 0; i < readers; i++)
		if (fork() == 0) {
			calls[i] = preads_at(per_second / (double)readers);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (long i = 0; i < readers; i++)
		all += calls[i];
	printf("%ld\n", all);
}

int main(int argc, char **argv)
{
	static char zeros[BLOCK];
	char c;

	if (argc == 2 && strcmp(argv[1], "wait") == 0) {
		puts("waits");
		fflush(stdout);
		return read(STDIN_FILENO, &c, 1) != 0;
	}
	if (argc != 5)
		return 2;
	fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die(argv[2]);
	for (int i = 0; i < BLOCKS; i++)
		if (pwrite(fd, zeros, BLOCK, (off_t)i * BLOCK) != BLOCK)
			die("pwrite");
	if (strcmp(argv[1], "cost") == 0)
		cost(strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
	else
		rate(strtod(argv[3], NULL), strtol(argv[4], NULL, 10));
	return 0;
}
