/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/overhead.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHORT_OPENS 9

static double clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

double bench_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Wall and CPU time of one stretch of calls; the CPU time is the whole process's. */
struct stretch {
	double wall, cpu;
};

static struct stretch begin(void)
{
	return (struct stretch){bench_now_ns(), clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

static void end(enum measure m, struct stretch since, long ops)
{
	double cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - since.cpu;
	double wall = bench_now_ns() - since.wall;

	printf("%d %.2f %.2f\n", m, wall / (double)ops, cpu / (double)ops);
}

static void need(bool ok)
{
	if (!ok)
		abort();
}

/* ---- what is measured -------------------------------------------------------------------------------- */

struct job {
	const char *path;
	long ops;
};

static void *do_pread(void *arg)
{
	struct job *j = arg;
	char buf[BENCH_BLOCK];
	int fd = open(j->path, O_RDONLY);

	for (long i = 0; i < j->ops; i++)
		need(pread(fd, buf, sizeof(buf), (i & 63) * BENCH_BLOCK) == BENCH_BLOCK);
	close(fd);
	return NULL;
}

/* Two threads at once count as one operation per pair: that is what a reader waits for. */
static void pread_threads(enum measure m, const char *path, long ops, bool second)
{
	struct job j = {path, ops};
	struct stretch s = begin();
	pthread_t t;

	if (second)
		pthread_create(&t, NULL, do_pread, &j);
	do_pread(&j);
	if (second)
		pthread_join(t, NULL);
	end(m, s, ops);
}

static void read_lseek(const char *path, long ops)
{
	char buf[BENCH_BLOCK];
	int fd = open(path, O_RDONLY);
	struct stretch s = begin();

	for (long i = 0; i < ops / 2; i++)
		need(lseek(fd, (i & 63) * BENCH_BLOCK, SEEK_SET) >= 0 &&
		     read(fd, buf, BENCH_BLOCK) == BENCH_BLOCK);
	end(M_READ_LSEEK, s, ops / 2 * 2);
	close(fd);
}

static void small_files(const char *dir, long ops)
{
	char path[4096], buf[BENCH_BLOCK];
	struct stretch s = begin();

	for (long i = 0; i < ops / 4; i++) {
		struct stat st;
		int fd;

		snprintf(path, sizeof(path), "%s/small/%ld", dir, i % BENCH_SMALL);
		fd = open(path, O_RDONLY);
		need(fd >= 0 && fstat(fd, &st) == 0 && read(fd, buf, sizeof(buf)) >= 0 &&
		     close(fd) == 0);
	}
	end(M_SMALL_FILES, s, ops / 4 * 4);
}

/* With the close, or the table of descriptors would grow as no program lets it grow. */
static void opens(enum measure m, const char *dir)
{
	struct stretch s = begin();
	char path[4096];

	for (long i = 0; i < BENCH_NEW; i++) {
		snprintf(path, sizeof(path), "%s/new/sample_%06ld.JPEG", dir, i);
		need(close(open(path, O_RDONLY)) == 0);
	}
	end(m, s, BENCH_NEW);
}

static void lseeks(enum measure m, const char *path, long ops)
{
	int fd = open(path, O_RDONLY);
	struct stretch s = begin();

	for (long i = 0; i < ops; i++)
		need(lseek(fd, i & 4095, SEEK_SET) >= 0);
	end(m, s, ops);
	close(fd);
}

int bench_child(const char *dir, long ops)
{
	char data[4096], excluded[4096];

	snprintf(data, sizeof(data), "%s/data", dir);
	snprintf(excluded, sizeof(excluded), "%s/excluded/data", dir);
	do_pread(&(struct job){data, ops}); /* warm */
	pread_threads(M_PREAD, data, ops, false);
	pread_threads(M_PREAD_2, data, ops, true);
	read_lseek(data, ops);
	small_files(dir, ops / 10);
	opens(M_OPEN_NEW, dir);
	opens(M_OPEN_KNOWN, dir);
	lseeks(M_LSEEK, data, ops);
	lseeks(M_LSEEK_EXCLUDED, excluded, ops);
	pread_threads(M_PREAD_EXCLUDED, excluded, ops, false);
	return 0;
}

/* ---- short processes --------------------------------------------------------------------------------- */

/* The first open of a process attaches; what the last ones take, on average, is an open. */
int bench_short(const char *dir)
{
	double at[SHORT_OPENS + 1], later;
	char path[4096];

	at[0] = bench_now_ns();
	for (int i = 0; i < SHORT_OPENS; i++) {
		snprintf(path, sizeof(path), "%s/small/%d", dir, i);
		need(open(path, O_RDONLY) >= 0);
		at[i + 1] = bench_now_ns();
	}
	later = (at[SHORT_OPENS] - at[1]) / (SHORT_OPENS - 1);
	printf("%d %.0f 0\n", M_ATTACH, at[1] - at[0] - later);
	return 0;
}

int bench_spawn(const char *program, const char *dir, long n)
{
	for (long i = 0; i < n; i++) {
		double start = bench_now_ns();
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			execl(program, program, "--short", dir, (char *)NULL);
			_exit(127);
		}
		need(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		     WEXITSTATUS(status) == 0);
		printf("%d %.0f 0\n", M_SHORT, bench_now_ns() - start);
		fflush(stdout);
	}
	return 0;
}
