/* SPDX-License-Identifier: Apache-2.0 */
/* node_stats.h - statistics of a node, from the drain thread, for status and metrics */
#ifndef HEADRACE_DAEMON_BASE_NODE_STATS_H
#define HEADRACE_DAEMON_BASE_NODE_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* Snapshots in the journal contain it: a change of its layout changes the journal's version. */
struct hr_engine_stats {
	uint64_t records, events, bytes_moved, lost, torn, hostile, batches;
	uint64_t read_bytes, written_bytes; /* bytes of a copy between files count in both */
	uint64_t stray, detached; /* parts of `lost`; all other lost operations found a full ring */
	/* Boot clock: start of the job; 0: no START entry was applied yet. */
	uint64_t start_ns;
	uint32_t processes, processes_total;
	/*
	 * Live processes that had an input wait: their number, sum of the starts of their first
	 * waits, sum of all their waits.
	 */
	uint32_t waiters;
	uint64_t waiting_since_ns, waited_ns;
	uint64_t steps;
	/* operations on files: that probes counted, recorded, and lost */
	uint64_t kernel_ops, kernel_added, kernel_lost;
};

#define HR_HANG_LINE 128u

/*
 * Training processes that have been in a step or a wait for a batch for much longer than usual
 * (marks `hang`, proto/args.def), and the process that probably keeps them.
 */
struct hr_job_hang {
	uint32_t processes; /* 0: none */
	uint64_t since_ns;  /* boot clock */
	uint64_t wait_ns;   /* of all of them: how long they have waited for the current batch */
	uint32_t pid, rank_plus1, worker_plus1;
	char line[HR_HANG_LINE]; /* of its Python code; empty: not known, or hidden */
};

struct hr_node_stats { /* hr_drain_stats returns a consistent copy to any thread */
	struct hr_engine_stats engine;
	struct hr_job_hang hang;
	uint64_t stored_bytes;
	/* Result of the last append: 0 or -errno. After an error, headraced retries each second. */
	int store_error;
	bool counters_only; /* max_bytes was reached */
	/*
	 * The disk had no room for the journal, so a kill of headraced loses all frames that are
	 * not stored.
	 */
	bool journal_in_memory;
	/* operations that a full store did not accept at the end */
	uint64_t given_up, given_up_bytes;
	bool unreported;  /* the store also had no room to report `given_up` in a Loss frame */
	uint64_t refused; /* processes and threads that got no ring, because a limit was reached */
	int input_wait;	  /* share of live training loops' time, in 1/1000; -1: no training loop */
};

#endif
