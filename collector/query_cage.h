/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_cage.h - limits of the process that runs a client's SQL
 *
 * Purpose   The engine has its own restrictions (query/query.h). These limits apply if they fail: a
 *           bug in the engine must not allow a client to read another user's jobs, to write, to
 *           reach the network, or to starve the collector.
 * Threads   Call these functions while the process has one thread; later threads inherit the limits.
 *
 *      hr_cage_begin   at once: ends with its parent, low priority, first victim when memory is short
 *      hr_cage_enter   when the libraries are loaded: file descriptors, file sizes, processor time;
 *                      Landlock (reads the store, writes the spill folder, no TCP); seccomp (no sockets,
 *                      programs, processes, tracing)
 *      hr_cage_memory  when the store is open: address space beyond the current mappings
 *
 * The process can still read the whole store, because a query opens folders of streams by name.
 * If the kernel lacks Landlock or seccomp, the other limits still apply.
 */
#ifndef HEADRACE_COLLECTOR_QUERY_CAGE_H
#define HEADRACE_COLLECTOR_QUERY_CAGE_H

#include <stdint.h>

struct hr_cage {
	const char *store;
	const char *spill;    /* NULL: none */
	uint64_t spill_bytes; /* of one file; 0: nothing may be written */
	uint64_t time_ms;     /* real time, from which the limit of processor time follows */
	unsigned threads;
	int statm; /* set by hr_cage_enter: /proc/self/statm, which cannot be opened afterwards */
};

/* 0, or -errno if the process cannot be made to end with its parent. */
int hr_cage_begin(void);

/* 0, or -errno: no statement may run. */
int hr_cage_enter(struct hr_cage *cage);

/* Allows `bytes` more than now, plus memory of threads. Closes statm. 0 or -errno. */
int hr_cage_memory(struct hr_cage *cage, uint64_t bytes);

#endif
