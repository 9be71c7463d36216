/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spent.h - what a thread uses during a range: CPU time, page faults, reads from storage, waits (as _headrace/spent.py)
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
#define ARGS_MAX    4096u /* limit of args in bytes (HR_REGION_TEXT of proto/abi.h) */

/* Totals of the calling thread since its start, at the time at_ns. */
struct spent {
	unsigned long long at_ns, cpu_ns, major_faults, storage_bytes;
	uint64_t waited_ns[SPENT_WAITS]; /* see headrace_api.waited */
};

/* Returns the current totals. Takes 0.7 us. */
struct spent spent_now(const struct headrace_api *api);

/*
 * Sets how long the thread was ready to run, but had no core, since `from` (CLOCK_MONOTONIC, ns) or
 * since the previous read, whichever is later. A read takes 5 us, so within 20 ms of the previous
 * read, this function returns false.
 */
bool spent_core_wait(unsigned long long from, unsigned long long *ret_ns);

/* Appends text to the first `n` bytes. Returns how many bytes the whole text needs. */
__attribute__((format(printf, 4, 5))) size_t spent_put(char *room, size_t size, size_t n,
						       const char *format, ...);

/*
 * Appends JSON members: what was used from `before` to `now`; in a child that was forked in between,
 * none. Returns the same as spent_put.
 */
size_t spent_put_since(char *room, size_t size, size_t n, const struct spent *before,
		       const struct spent *now);

#endif
