/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overhead - what headrace adds to an operation, against the program alone and against other libraries
 *
 *      overhead [--headrace PROGRAM] [--lib LIBHEADRACE [--daemon STUB]] [--preload OTHER]...
 *               [--rounds N] [--ops N] [--short N] [--dir DIR]
 *
 * Variants: the program alone; under `PROGRAM run` as a user has it; with LIBHEADRACE alone, no daemon there;
 * with it and a stub of a daemon that throws records away (tests/shim/core/fake_headraced), which is the shim's
 * own cost; with any other preload library. One run alternates them, so that a noisy machine is as noisy for
 * each. It prints minimum and median of the rounds, in ns per operation: wall time, and CPU time of the program
 * itself (on few cores the daemon shares them). Then attach: the time that a short process's first open takes
 * more than its later ones, and the whole of that process, over all N * rounds of them.
 */
#include "tests/bench/overhead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIANTS   8
#define ROUNDS	   101
#define SHORT_MOST 100000

static const char *const measures[M_COUNT] = {
    "pread 4 KiB",
    "pread 4 KiB, 2 threads",
    "read 4 KiB + lseek",
    "open fstat read close",
    "open + close, new path",
    "open + close, known path",
    "lseek",
    "lseek, excluded",
    "pread 4 KiB, excluded",
};

struct samples {
	double *v;
	int n;
};

struct variant {
	char name[256];
	const char *headrace; /* runs the program, or NULL */
	const char *preload;  /* or NULL */
	bool stub;	      /* HEADRACE_SOCKET is the stub's; else nobody's */
	double wall[M_COUNT][ROUNDS], cpu[M_COUNT][ROUNDS];
	struct samples attach, whole; /* of short processes, ns */
};

struct bench {
	struct variant v[VARIANTS];
	int n, rounds;
	const char *daemon, *lib, *dir, *ops, *spawn;
	char self[4096], own_dir[64];
};

/* ---- files ----------------------------------------------------------------------------------------- */

static void make_file(const char *path, int blocks)
{
	static const char block[BENCH_BLOCK] = {1};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	for (int k = 0; k < blocks; k++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			abort();
	close(fd);
}

static void make_files(const char *dir)
{
	static const char *const folders[] = {"small", "new", "excluded", "stores"};
	char path[4096];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
		mkdir(path, 0700);
	}
	for (int i = 0; i < BENCH_SMALL; i++) {
		snprintf(path, sizeof(path), "%s/small/%d", dir, i);
		make_file(path, 1);
	}
	for (int i = 0; i < BENCH_NEW; i++) {
		snprintf(path, sizeof(path), "%s/new/sample_%06d.JPEG", dir, i);
		make_file(path, 0);
	}
	snprintf(path, sizeof(path), "%s/data", dir);
	make_file(path, 64);
	snprintf(path, sizeof(path), "%s/excluded/data", dir);
	make_file(path, 64);
}

static void remove_files(const char *dir)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", dir, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* ---- one child ------------------------------------------------------------------------------------- */

static void set_path(const char *name, const char *dir, const char *file)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	setenv(name, path, 1);
}

static void exec_child(const struct bench *b, const struct variant *v, int round, char **argv)
{
	char store[4096];
	char *run[12] = {(char *)v->headrace, "run", "-o", store, "--"};
	int null = open("/dev/null", O_WRONLY);

	set_path("HEADRACE_EXCLUDE", b->dir, "excluded");
	if (v->headrace) {
		snprintf(store, sizeof(store), "%s/stores/%d.%d", b->dir, (int)getpid(), round);
		for (int i = 0; i < 5; i++)
			run[5 + i] = argv[i];
		dup2(null, 2); /* its summary */
		execv(v->headrace, run);
	} else {
		set_path("HEADRACE_SOCKET", b->dir, v->stub ? "sock" : "nobody");
		if (v->preload)
			setenv("LD_PRELOAD", v->preload, 1);
		execv(b->self, argv);
	}
	_exit(127);
}

static void add_sample(struct samples *s, double ns)
{
	if (!s->v)
		s->v = malloc(SHORT_MOST * sizeof(*s->v));
	if (s->v && s->n < SHORT_MOST)
		s->v[s->n++] = ns;
}

static void run_child(const struct bench *b, struct variant *v, int round, char *mode,
		      const char *n)
{
	char *argv[] = {(char *)b->self, mode, (char *)b->dir, (char *)n, NULL};
	double start = bench_now_ns(), wall, cpu;
	int out[2], status, m;
	pid_t pid;
	FILE *f;

	if (pipe2(out, O_CLOEXEC) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		exec_child(b, v, round, argv);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	while (fscanf(f, "%d %lf %lf", &m, &wall, &cpu) == 3) {
		if (m >= 0 && m < M_COUNT) {
			v->wall[m][round] = wall;
			v->cpu[m][round] = cpu;
		} else if (m == M_ATTACH || m == M_SHORT) {
			add_sample(m == M_ATTACH ? &v->attach : &v->whole, wall);
		}
	}
	fclose(f);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fprintf(stderr, "overhead: %s: child failed\n", v->name);
	if (strcmp(mode, "--child") == 0)
		v->wall[M_WHOLE][round] = bench_now_ns() - start;
}

/* ---- the report -------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report_ops(const struct bench *b, const struct variant *v, int m)
{
	const struct variant *alone = &b->v[0];
	int mid = b->rounds / 2;

	printf("  %-24s %8.1f %8.1f %8.1f %8.1f", measures[m], v->wall[m][0], v->wall[m][mid],
	       v->cpu[m][0], v->cpu[m][mid]);
	if (v != alone)
		printf("   added %+8.1f %+8.1f %+8.1f %+8.1f", v->wall[m][0] - alone->wall[m][0],
		       v->wall[m][mid] - alone->wall[m][mid], v->cpu[m][0] - alone->cpu[m][0],
		       v->cpu[m][mid] - alone->cpu[m][mid]);
	printf("\n");
}

static void report_samples(const char *what, struct samples *s)
{
	if (!s->n)
		return;
	qsort(s->v, (size_t)s->n, sizeof(double), compare);
	printf("  %-24s p50 %.0f  p99 %.0f  max %.0f us  (%d processes)\n", what,
	       s->v[s->n / 2] / 1e3, s->v[s->n * 99 / 100] / 1e3, s->v[s->n - 1] / 1e3, s->n);
}

static void report(struct bench *b)
{
	for (int i = 0; i < b->n; i++)
		for (int m = 0; m < M_COUNT; m++) {
			qsort(b->v[i].wall[m], (size_t)b->rounds, sizeof(double), compare);
			qsort(b->v[i].cpu[m], (size_t)b->rounds, sizeof(double), compare);
		}
	for (int i = 0; i < b->n; i++) {
		struct variant *v = &b->v[i];

		printf("\n%s\n  ns per operation         wall min      med  cpu min      med\n",
		       v->name);
		for (int m = 0; m < M_WHOLE; m++)
			report_ops(b, v, m);
		printf("  %-24s min %.1f  median %.1f ms\n", "whole program",
		       v->wall[M_WHOLE][0] / 1e6, v->wall[M_WHOLE][b->rounds / 2] / 1e6);
		report_samples("first open, more", &v->attach);
		report_samples("short process", &v->whole);
	}
}

/* ---- the driver -------------------------------------------------------------------------------------- */

/* Starts the stub, `PROGRAM SOCKET --discard`: it says "ready" and ends when its stdin does, which is returned. */
static int start_stub(const char *program, const char *socket, pid_t *ret_pid)
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

static struct variant *add(struct bench *b, const char *name, const char *preload)
{
	struct variant *v = &b->v[b->n < VARIANTS - 1 ? b->n++ : b->n];

	snprintf(v->name, sizeof(v->name), "%s", name);
	v->preload = preload;
	return v;
}

static int usage(void)
{
	fprintf(stderr, "usage: overhead [--headrace PROGRAM] [--lib LIB [--daemon STUB]] "
			"[--preload OTHER]...\n"
			"                [--rounds N] [--ops N] [--short N] [--dir DIR]\n");
	return 2;
}

static int options(struct bench *b, int argc, char **argv)
{
	add(b, "alone", NULL);
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!value)
			return usage();
		if (strcmp(name, "--headrace") == 0)
			add(b, "headrace run", NULL)->headrace = value;
		else if (strcmp(name, "--lib") == 0)
			add(b, "shim, no daemon", b->lib = value);
		else if (strcmp(name, "--daemon") == 0)
			b->daemon = value;
		else if (strcmp(name, "--preload") == 0)
			add(b, value, value);
		else if (strcmp(name, "--rounds") == 0)
			b->rounds = atoi(value);
		else if (strcmp(name, "--ops") == 0)
			b->ops = value;
		else if (strcmp(name, "--short") == 0)
			b->spawn = value;
		else if (strcmp(name, "--dir") == 0)
			b->dir = value;
		else
			return usage();
	}
	if (b->n < 2 || b->rounds < 1 || b->rounds > ROUNDS || (b->daemon && !b->lib))
		return usage();
	if (b->daemon)
		add(b, "shim, stub of a daemon", b->lib)->stub = true;
	return 0;
}

int main(int argc, char **argv)
{
	static struct bench b = {.rounds = 7, .ops = "200000", .spawn = "100"};
	ssize_t len = readlink("/proc/self/exe", b.self, sizeof(b.self) - 1);
	char socket[4096];
	pid_t stub = 0;
	int in = -1;

	b.self[len > 0 ? len : 0] = '\0';
	if (argc == 4 && strcmp(argv[1], "--child") == 0)
		return bench_child(argv[2], atol(argv[3]));
	if (argc == 4 && strcmp(argv[1], "--spawn") == 0)
		return bench_spawn(b.self, argv[2], atol(argv[3]));
	if (argc == 3 && strcmp(argv[1], "--short") == 0)
		return bench_short(argv[2]);
	if (options(&b, argc, argv))
		return 2;
	if (!b.dir) {
		strcpy(b.own_dir, "/tmp/overhead.XXXXXX");
		b.dir = mkdtemp(b.own_dir);
	}
	make_files(b.dir);
	snprintf(socket, sizeof(socket), "%s/sock", b.dir);
	if (b.daemon)
		in = start_stub(b.daemon, socket, &stub);
	for (int r = 0; r < b.rounds; r++)
		for (int i = 0; i < b.n; i++) {
			run_child(&b, &b.v[i], r, "--child", b.ops);
			run_child(&b, &b.v[i], r, "--spawn", b.spawn);
		}
	if (b.daemon) {
		close(in);
		waitpid(stub, NULL, 0);
	}
	report(&b);
	if (b.own_dir[0])
		remove_files(b.dir);
	return 0;
}
