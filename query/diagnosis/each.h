/* SPDX-License-Identifier: Apache-2.0 */
/* each.h - the same for each of many things, with all threads of a query */
#ifndef HEADRACE_QUERY_DIAGNOSIS_EACH_H
#define HEADRACE_QUERY_DIAGNOSIS_EACH_H

#include <stddef.h>

#define HR_EACH_THREADS_MAX 64u

/*
 * Calls run(data, i) once for each i < n, in several threads and in any order. Returns 0, or the
 * first result of run() that is below 0; further things may then be left out.
 */
int hr__each(unsigned threads, size_t n, int (*run)(void *data, size_t i), void *data);

/* Runs run(data) in at most `threads` threads at the same time; this one is the first. */
void hr__threads_run(unsigned threads, void (*run)(void *data), void *data);

#endif
