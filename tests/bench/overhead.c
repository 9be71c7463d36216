/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overhead - what the preloaded shim adds to an operation, against the program alone and against other libraries
 *
 *      overhead --lib LIBHEADRACE --daemon PROGRAM [--preload OTHER]... [--rounds N] [--scale N] [--dir DIR]
 *
 * One run alternates all variants, so that a noisy machine is as noisy for each; it prints the minimum and the
 * median of the rounds, in ns per operation, and for variants the difference to the native minimum and median.
 * PROGRAM is started as `PROGRAM SOCKET --discard`, says "ready", and ends when its stdin does.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	 4096
#define FILES	 1000
#define VARIANTS 8
#define ROUNDS	 101

enum measure {
	M_PREAD,
	M_PREAD_2,
	M_READ_LSEEK,
	M_SMALL_FILES,
	M_LSEEK,
	M_LSEEK_EXCLUDED,
	M_PREAD_EXCLUDED,
	M_WALL,
	M_COUNT
};
static const char *const measures[M_COUNT] = {
    "pread 4 KiB", "pread 4 KiB, 2 threads", "read 4 KiB + lseek",    "open fstat read close",
    "lseek",	   "lseek, excluded",	     "pread 4 KiB, excluded", "process, per op of it",
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ---- the measured program ---------------------------------------------------------------------- */

struct job {
	const char *path;
	long ops;
	double ns;
};

static void *do_pread(void *arg)
{
	struct job *j = arg;
	char buf[BLOCK];
	int fd = open(j->path, O_RDONLY);
	double start = now_ns();

	for (long i = 0; i < j->ops; i++)
		if (pread(fd, buf, sizeof(buf), (i & 63) * BLOCK) != BLOCK)
			abort();
	j->ns = (now_ns() - start) / (double)j->ops;
	close(fd);
	return NULL;
}

static double pread_threads(const char *path, long ops)
{
	struct job jobs[2] = {{path, ops, 0}, {path, ops, 0}};
	pthread_t t;

	pthread_create(&t, NULL, do_pread, &jobs[1]);
	do_pread(&jobs[0]);
	pthread_join(t, NULL);
	return (jobs[0].ns + jobs[1].ns) / 2;
}

static double read_lseek(const char *path, long ops)
{
	char buf[BLOCK];
	int fd = open(path, O_RDONLY);
	double start = now_ns();

	for (long i = 0; i < ops / 2; i++)
		if (lseek(fd, (i & 63) * BLOCK, SEEK_SET) < 0 || read(fd, buf, BLOCK) != BLOCK)
			abort();
	close(fd);
	return (now_ns() - start) / (double)ops;
}

static double small_files(const char *dir, long ops)
{
	char path[4096], buf[BLOCK];
	double start = now_ns();

	for (long i = 0; i < ops / 4; i++) {
		struct stat st;
		int fd;

		snprintf(path, sizeof(path), "%s/small/%ld", dir, i % FILES);
		fd = open(path, O_RDONLY);
		if (fd < 0 || fstat(fd, &st) != 0 || read(fd, buf, sizeof(buf)) < 0 ||
		    close(fd) != 0)
			abort();
	}
	return (now_ns() - start) / (double)(ops / 4 * 4);
}

static double lseeks(const char *path, long ops)
{
	int fd = open(path, O_RDONLY);
	double start = now_ns();

	for (long i = 0; i < ops; i++)
		if (lseek(fd, i & 4095, SEEK_SET) < 0)
			abort();
	close(fd);
	return (now_ns() - start) / (double)ops;
}

static int child(const char *dir, long scale)
{
	char data[4000], excluded[4000];
	struct job j = {data, scale, 0};

	snprintf(data, sizeof(data), "%s/data", dir);
	snprintf(excluded, sizeof(excluded), "%s/excluded/data", dir);
	do_pread(&j);
	do_pread(&j);
	printf("%d %.2f\n", M_PREAD, j.ns);
	printf("%d %.2f\n", M_PREAD_2, pread_threads(data, scale));
	printf("%d %.2f\n", M_READ_LSEEK, read_lseek(data, scale));
	printf("%d %.2f\n", M_SMALL_FILES, small_files(dir, scale / 10));
	printf("%d %.2f\n", M_LSEEK, lseeks(data, scale));
	printf("%d %.2f\n", M_LSEEK_EXCLUDED, lseeks(excluded, scale));
	j.path = excluded;
	do_pread(&j);
	printf("%d %.2f\n", M_PREAD_EXCLUDED, j.ns);
	return 0;
}

/* ---- the driver -------------------------------------------------------------------------------- */

struct variant {
	const char *preload; /* NULL: native */
	double ns[M_COUNT][ROUNDS];
};

static void make_files(const char *dir)
{
	char path[4096];
	char block[BLOCK] = {1};
	const char *const big[] = {"data", "excluded/data"};

	snprintf(path, sizeof(path), "%s/small", dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/excluded", dir);
	mkdir(path, 0700);
	for (int i = 0; i < FILES + 2; i++) {
		int fd;

		if (i < FILES)
			snprintf(path, sizeof(path), "%s/small/%d", dir, i);
		else
			snprintf(path, sizeof(path), "%s/%s", dir, big[i - FILES]);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		for (int k = 0; k < (i < FILES ? 1 : 64); k++)
			if (write(fd, block, sizeof(block)) != sizeof(block))
				abort();
		close(fd);
	}
}

static void run_variant(struct variant *v, const char *self, const char *dir, const char *scale,
			int round)
{
	double start = now_ns();
	int out[2], status, m;
	double ns;
	FILE *f;
	pid_t pid;

	if (pipe(out) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		if (v->preload != NULL)
			setenv("LD_PRELOAD", v->preload, 1);
		execl(self, self, "--child", dir, scale, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	while (fscanf(f, "%d %lf", &m, &ns) == 2)
		if (m >= 0 && m < M_COUNT)
			v->ns[m][round] = ns;
	fclose(f);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fprintf(stderr, "overhead: %s: child failed\n", v->preload ? v->preload : "native");
	/* pread three times, two threads, read + lseek, lseek twice, excluded pread: 8.1 scales */
	v->ns[M_WALL][round] = (now_ns() - start) / (atof(scale) * 8.1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(struct variant *v, int n, int rounds)
{
	for (int i = 0; i < n; i++)
		for (int m = 0; m < M_COUNT; m++)
			qsort(v[i].ns[m], (size_t)rounds, sizeof(double), compare);
	for (int i = 0; i < n; i++) {
		printf("\n%s\n", v[i].preload ? v[i].preload : "native");
		for (int m = 0; m < M_COUNT; m++) {
			double min = v[i].ns[m][0], median = v[i].ns[m][rounds / 2];

			printf("  %-24s min %8.1f  median %8.1f ns", measures[m], min, median);
			if (i > 0)
				printf("   added %+7.1f / %+7.1f", min - v[0].ns[m][0],
				       median - v[0].ns[m][rounds / 2]);
			printf("\n");
		}
	}
}

/* Starts the daemon; returns the descriptor whose closing ends it. */
static int start_daemon(const char *program, const char *socket, pid_t *ret_pid)
{
	int in[2], out[2];
	char byte;

	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		abort();
	*ret_pid = fork();
	if (*ret_pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(program, program, socket, "--discard", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	if (read(out[0], &byte, 1) != 1) {
		fprintf(stderr, "overhead: %s does not start\n", program);
		exit(1);
	}
	return in[1];
}

static int usage(void)
{
	fprintf(stderr,
		"usage: overhead --lib LIB --daemon PROGRAM [--preload OTHER]... [--rounds N] "
		"[--scale N] [--dir DIR]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct variant v[VARIANTS];
	const char *daemon = NULL, *scale = "200000";
	char template[] = "/tmp/overhead.XXXXXX", path[4096], self[4096];
	const char *dir = NULL;
	int n = 1, rounds = 7, in;
	ssize_t len;
	pid_t pid;

	if (argc == 4 && strcmp(argv[1], "--child") == 0)
		return child(argv[2], atol(argv[3]));
	for (int i = 1; i + 1 < argc; i += 2) {
		if ((strcmp(argv[i], "--lib") == 0 || strcmp(argv[i], "--preload") == 0) &&
		    n < VARIANTS)
			v[n++].preload = argv[i + 1];
		else if (strcmp(argv[i], "--daemon") == 0)
			daemon = argv[i + 1];
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--scale") == 0)
			scale = argv[i + 1];
		else if (strcmp(argv[i], "--dir") == 0)
			dir = argv[i + 1];
		else
			return usage();
	}
	if (daemon == NULL || n < 2 || rounds < 1 || rounds > ROUNDS)
		return usage();
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len > 0 ? len : 0] = '\0';
	if (dir == NULL)
		dir = mkdtemp(template);
	make_files(dir);
	snprintf(path, sizeof(path), "%s/excluded", dir);
	setenv("HEADRACE_EXCLUDE", path, 1);
	snprintf(path, sizeof(path), "%s/sock", dir);
	setenv("HEADRACE_SOCKET", path, 1);
	in = start_daemon(daemon, path, &pid);
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < n; i++)
			run_variant(&v[i], self, dir, scale, r);
	close(in);
	waitpid(pid, NULL, 0);
	report(v, n, rounds);
	return 0;
}
