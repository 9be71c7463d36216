/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_stats.h - statistics of a node: the drain thread fills them, status and metrics report them
 */
#ifndef HEADRACE_DAEMON_BASE_NODE_STATS_H
#define HEADRACE_DAEMON_BASE_NODE_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct hr_node_stats { /* a consistent copy, any thread */
	uint64_t events, bytes_moved, lost, torn, hostile;
	uint64_t read_bytes, written_bytes; /* a copy from file to file is both */
	uint64_t stray, detached;	    /* of `lost`; the rest found a full ring */
	uint64_t stored_bytes;
	uint32_t sessions_total;
	int store_error; /* 0, or -errno of the last failed append; appended again when it goes away */
	bool counters_only; /* max_bytes was reached */
	/* no room for it on disk: a kill of the daemon loses what is not stored */
	bool journal_in_memory;
	uint64_t given_up,
	    given_up_bytes; /* operations that a full store did not take at the end */
	bool unreported;    /* nor had it room for the Loss frame that says so */
	uint64_t refused;   /* processes and threads that got no rings: a limit was reached */
	int input_wait;	    /* 1/1000 of the time of live training loops; -1: there are none */
	uint64_t steps;	    /* of training loops */
	uint64_t kernel_ops, kernel_added, kernel_lost; /* that probes told of (engine.h) */
};

#endif
