/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_cage.h - limits of the process that runs the SQL of a client
 *
 * Purpose   The engine restricts SQL itself (query/query.h). If the engine has a bug, these limits
 *           prevent access to other files and the network, and protect the collector.
 * Threads   Call these functions while the process has one thread. New threads inherit limits.
 *
 *      hr_cage_begin   Call it first. The process then ends with its parent, has low priority, and
 *                      is the first that the kernel kills if memory is short.
 *      hr_cage_enter   Call it when the libraries are loaded. Limits descriptors, file sizes and
 *                      processor time. Landlock allows to read the store and to write the spill
 *                      folder, but no other files and no TCP. seccomp forbids sockets, programs,
 *                      processes and tracing.
 *      hr_cage_memory  Call it when the store is open. Limits further address space.
 *
 * The process can still read the whole store. If the kernel lacks Landlock or seccomp, the other
 * limits apply.
 */
#ifndef HEADRACE_COLLECTOR_QUERY_CAGE_H
#define HEADRACE_COLLECTOR_QUERY_CAGE_H

#include <stdint.h>

struct hr_cage {
	const char *store;
	const char *spill;    /* folder for temporary files; NULL: none */
	uint64_t spill_bytes; /* size limit of a file there; 0: nothing may be written */
	uint64_t time_ms;     /* time limit; the limit of processor time depends on it */
	unsigned threads;
	int statm; /* descriptor of /proc/self/statm, which cannot be opened later */
};

/* Returns 0, or -errno if the process would outlive its parent. */
int hr_cage_begin(void);

/* Returns 0 or -errno. After a failure, no statement may run. */
int hr_cage_enter(struct hr_cage *cage);

/*
 * Limits the address space to the current size plus `bytes`, and what the engine and its threads
 * need. Closes `statm`. Returns 0 or -errno.
 */
int hr_cage_memory(struct hr_cage *cage, uint64_t bytes);

#endif
