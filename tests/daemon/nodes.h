/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - daemons as children of a test, and what they left in the store
 *
 * One store and one socket in a fresh folder under /tmp; removed by nodes_done.
 */
#ifndef HEADRACE_TESTS_DAEMON_NODES_H
#define HEADRACE_TESTS_DAEMON_NODES_H

#include <stdint.h>
#include <sys/types.h>

#define NODES_FULL_AT_ONCE 2

struct nodes {
	char folder[64];
	char store[96];
	char socket[96];
	uint64_t instance;
	uint64_t half_bytes;
	int level;
	const char *ranks;
	const char *journal_dir; /* NULL: in the store */
	uint64_t max_bytes;
	uint32_t max_sessions;
	int full; /* 1: no room to make a journal on disk; NODES_FULL_AT_ONCE: nor to store a frame */
	int control[2]; /* to the daemon: 's' stops it, 't' requests level trace */
	int flushed[2]; /* from the daemon */
};

/* Waits until a condition holds, in a test; fails after five minutes. */
#define nodes_await(condition)                                                                     \
	do {                                                                                       \
		for (unsigned ms_ = 0; !(condition); ms_++) {                                      \
			if (ms_ == 300000)                                                         \
				fail_msg("%s", #condition);                                        \
			usleep(1000);                                                              \
		}                                                                                  \
	} while (0)

/* Daemons wait for their clients as long as the test takes: hr_attach_pending_ns is ten minutes. */
void nodes_init(struct nodes *n, uint64_t half_bytes);
void nodes_done(struct nodes *n);

/* Forks a daemon and waits until it listens. */
pid_t nodes_start(struct nodes *n);
/* Returns once every thread of it stands still; SIGCONT wakes it. */
void nodes_pause(pid_t daemon);
void nodes_kill(pid_t daemon);
/* Returns once the store has all that the daemon has taken. */
void nodes_flush(struct nodes *n);
/* Returns once the daemon has served a request for level trace. */
void nodes_trace(struct nodes *n);
void nodes_reap(pid_t child); /* which ends by itself */
/* Ends the job properly; returns the daemon's exit status. */
int nodes_stop(struct nodes *n, pid_t daemon);

/* What the store says about preads of one process image. */
struct nodes_sums {
	uint64_t events;
	uint64_t rollup_count, rollup_bytes;
	uint64_t file_reads;
	uint64_t lost, torn, hostile, other_loss;
	uint64_t processes, ended_processes;
	uint64_t child_processes; /* whose parent is recorded, too */
	int stream_ended;
	uint64_t limit;
	uint64_t journal_memory, journal_damaged, max_size; /* rows */
	uint64_t damaged_operations;			    /* of journal_damaged */
	uint64_t counters_levels, deselected;
	uint64_t excluded; /* opens, of all patterns */
	size_t problems;
};

/* seen[offset]++ for each event with 0 <= offset < n_seen. */
void nodes_read(const struct nodes *n, uint8_t *seen, size_t n_seen, struct nodes_sums *ret);

#endif
