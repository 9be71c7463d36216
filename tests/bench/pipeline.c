/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	hr_bench_stage *run;
} stages[] = {
    {"drain", hr_bench_drain},	 {"counters", hr_bench_counters}, {"codec", hr_bench_codec},
    {"append", hr_bench_append}, {"open", hr_bench_open},	  {"scan", hr_bench_scan},
    {"query", hr_bench_query},
};
#define N_STAGES (sizeof(stages) / sizeof(stages[0]))

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double hr_bench_cpu_s(void)
{
	return seconds(CLOCK_THREAD_CPUTIME_ID);
}

double hr_bench_wall_s(void)
{
	return seconds(CLOCK_MONOTONIC);
}

void hr_bench_row(const char *what, double value, const char *unit)
{
	printf("  %-28s %12.3f %s\n", what, value, unit);
	fflush(stdout);
}

static int usage(void)
{
	fprintf(stderr, "usage: pipeline [-n EVENTS] [-s STORE] [STAGE...]\nstages:");
	for (size_t i = 0; i < N_STAGES; i++)
		fprintf(stderr, " %s", stages[i].name);
	fprintf(stderr, "\nWithout -s the store is made in $TMPDIR and removed.\n");
	return 2;
}

static bool selected(const char *name, char **list)
{
	if (!*list)
		return true;
	for (; *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

static int run_stages(const struct hr_bench *bench, char **list)
{
	for (size_t i = 0; i < N_STAGES; i++) {
		int r;

		if (!selected(stages[i].name, list))
			continue;
		printf("%s\n", stages[i].name);
		r = stages[i].run(bench);
		if (r < 0) {
			fprintf(stderr, "pipeline: %s: %s\n", stages[i].name, strerror(-r));
			return 1;
		}
	}
	return 0;
}

/* The bench's own folder: everything in it was made by this program. */
static void remove_folder(const char *path)
{
	char command[4200];

	snprintf(command, sizeof(command), "rm -rf -- '%s'", path);
	if (system(command) != 0)
		fprintf(stderr, "pipeline: %s is left\n", path);
}

int main(int argc, char **argv)
{
	struct hr_bench bench = {.config = HR_GEN_CONFIG(20000000)};
	const char *tmp = getenv("TMPDIR");
	char own[4096] = "", store[4120];
	int c, r;

	while ((c = getopt(argc, argv, "n:s:")) != -1) {
		if (c == 'n')
			bench.config.events = strtoull(optarg, NULL, 0);
		else if (c == 's')
			bench.store = optarg;
		else
			return usage();
	}
	if (!bench.store) {
		snprintf(own, sizeof(own), "%s/headrace-bench-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(own))
			return usage();
		snprintf(store, sizeof(store), "%s/store", own);
		bench.store = store;
	}
	r = run_stages(&bench, argv + optind);
	if (own[0])
		remove_folder(own);
	return r;
}
