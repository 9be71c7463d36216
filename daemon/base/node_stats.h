/* SPDX-License-Identifier: Apache-2.0 */
/* node_stats.h - statistics of a node, from the drain thread, for status and metrics */
#ifndef HEADRACE_DAEMON_BASE_NODE_STATS_H
#define HEADRACE_DAEMON_BASE_NODE_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct hr_node_stats { /* a consistent copy, which hr_drain_stats returns to any thread */
	uint64_t events, bytes_moved, lost, torn, hostile;
	uint64_t read_bytes, written_bytes; /* a copy from file to file counts in both */
	uint64_t stray, detached; /* parts of `lost`; other lost operations found a full ring */
	uint64_t stored_bytes;
	uint32_t sessions_total;
	/* Result of the last append: 0 or -errno. headraced retries each second. */
	int store_error;
	bool counters_only; /* max_bytes was reached */
	/*
	 * The disk had no room for the journal, so a kill of headraced loses frames that are not
	 * stored.
	 */
	bool journal_in_memory;
	/* Operations that a full store did not accept at the end. */
	uint64_t given_up, given_up_bytes;
	bool unreported; /* the store also had no room for the Loss frame that reports `given_up` */
	uint64_t refused;  /* processes and threads without rings, because a limit was reached */
	int input_wait;	   /* 1/1000 of the time of live training loops; -1: no training loop */
	uint64_t steps;	   /* number of steps of training loops */
	uint64_t start_ns; /* start of the job (boot clock); 0: not known */
	uint64_t kernel_ops, kernel_added, kernel_lost; /* reported by probes (engine.h) */
};

#endif
