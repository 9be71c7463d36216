/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - stages of the pipeline bench
 *
 * A stage measures one part of a record's way on the generated job and prints its rows with
 * hr_bench_row(). To add one: a file pipeline_<name>.c with a function of this type, a line in
 * `stages` of pipeline.c, the file in tests/bench/CMakeLists.txt. Stages run in order, in one
 * thread, and may leave the store at `store` to those that follow.
 */
#ifndef HEADRACE_TESTS_BENCH_PIPELINE_H
#define HEADRACE_TESTS_BENCH_PIPELINE_H

#include "tests/bench/generate.h"

struct hr_bench {
	struct hr_gen_config config;
	const char *store; /* folder for the store; removed at the end unless named by the user */
};

typedef int hr_bench_stage(const struct hr_bench *bench);

hr_bench_stage hr_bench_drain;
hr_bench_stage hr_bench_counters;
hr_bench_stage hr_bench_codec;
hr_bench_stage hr_bench_append;
hr_bench_stage hr_bench_open;
hr_bench_stage hr_bench_scan;
hr_bench_stage hr_bench_query;

/* Seconds of CPU time of this thread, and of wall time. */
double hr_bench_cpu_s(void);
double hr_bench_wall_s(void);

/* "encode          43.1 ns/event" */
void hr_bench_row(const char *what, double value, const char *unit);

#endif
