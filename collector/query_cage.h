/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_cage.h - limits of the process that runs a client's SQL
 *
 * Purpose   The engine restricts SQL itself (query/query.h). If it has a bug, the limits here
 *           keep a client from reading files outside the store, writing, reaching the network, or
 *           starving the collector.
 * Threads   Call these functions while the process has one thread; later threads inherit the
 *           limits.
 *
 *      hr_cage_begin   Call it first. The process then ends with its parent, has low priority, and is
 *                      killed first when memory is short.
 *      hr_cage_enter   Call it when the libraries are loaded. Limits file descriptors, file sizes and
 *                      processor time. Landlock permits only to read the store and to write the spill
 *                      folder, and no TCP. seccomp forbids sockets, programs, processes and tracing.
 *      hr_cage_memory  Call it when the store is open. Limits address space beyond current mappings.
 *
 * The process can still read the whole store, since a query opens streams by name. Without Landlock
 * or seccomp in the kernel, the other limits apply.
 */
#ifndef HEADRACE_COLLECTOR_QUERY_CAGE_H
#define HEADRACE_COLLECTOR_QUERY_CAGE_H

#include <stdint.h>

struct hr_cage {
	const char *store;
	const char *spill;    /* NULL: none */
	uint64_t spill_bytes; /* size limit of one file; 0: nothing may be written */
	uint64_t time_ms;     /* real time, from which the limit of processor time follows */
	unsigned threads;
	int statm; /* set by hr_cage_enter: /proc/self/statm, which cannot be opened afterwards */
};

/* Returns 0, or -errno if the process would outlive its parent. */
int hr_cage_begin(void);

/* Returns 0 or -errno. After a failure, no statement may run. */
int hr_cage_enter(struct hr_cage *cage);

/*
 * Limits the address space to the sum of its current size, `bytes`, and the needs of the engine and
 * its threads. Closes `statm`. Returns 0 or -errno.
 */
int hr_cage_memory(struct hr_cage *cage, uint64_t bytes);

#endif
