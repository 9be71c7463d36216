/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spent.h - what a thread uses during a range, like _headrace/spent.py: CPU time, page faults,
 * waits
 *
 * Threads   Python's lock is held. All state belongs to the calling thread.
 */
#ifndef HEADRACE_PYTHON_SPENT_H
#define HEADRACE_PYTHON_SPENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/headrace.h"

#define SPENT_WAITS 3

/* Totals of the calling thread since its start, and the time at which they were read. */
struct spent {
	unsigned long long at_ns, cpu_ns, major_faults; /* CLOCK_MONOTONIC; the thread's CPU time */
	uint64_t waited_ns[SPENT_WAITS];		/* see headrace_api.waited */
};

/* The totals at this moment. Takes 0.7 us. */
struct spent spent_now(const struct headrace_api *api);

/*
 * Finds how long the thread was ready to run, but had no core, since `from` (CLOCK_MONOTONIC, ns)
 * or the previous read, whichever is later. It takes 5 us to read the kernel's file for this, so it
 * is read at most once in 20 ms; otherwise the function returns false.
 */
bool spent_core_wait(unsigned long long from, unsigned long long *ret_ns);

/* Appends text to the first `n` bytes; returns the bytes needed for the whole text. */
__attribute__((format(printf, 4, 5))) size_t spent_put(char *room, size_t size, size_t n,
						       const char *format, ...);

/* Appends members of a JSON object: what was used from `before` to `now`. Returns as spent_put. */
size_t spent_put_since(char *room, size_t size, size_t n, const struct spent *before,
		       const struct spent *now);

#endif
