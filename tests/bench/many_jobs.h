/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_jobs.h - a store of many small jobs, each with one stream of one process
 */
#ifndef HEADRACE_TESTS_BENCH_MANY_JOBS_H
#define HEADRACE_TESTS_BENCH_MANY_JOBS_H

#include <stdint.h>

/*
 * Adds the jobs `first` to `last`, named after their number, to the store at `path`, which is created where it is absent. Each ran
 * on node "n<number modulo 64>" and has ended.
 */
void hr_many_jobs(const char *path, uint32_t first, uint32_t last);

#endif
