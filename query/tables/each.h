/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEADRACE_QUERY_TABLES_EACH_H
#define HEADRACE_QUERY_TABLES_EACH_H

#include <stddef.h>

#define HR_EACH_THREADS_MAX 256u

/*
 * Calls run(data, i) once for each i < n, in several threads and in any order. Returns 0, or the
 * first negative result of run(). After a negative result, the remaining calls may be left out.
 */
int hr_each(unsigned threads, size_t n, int (*run)(void *data, size_t i), void *data);

/*
 * Calls run(data) in up to `threads` threads at the same time, one of which is the caller. Ignores
 * its results.
 */
void hr_threads_run(unsigned threads, void *(*run)(void *data), void *data);

#endif
