/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_store.h - a job that says what it does, and what is true of it
 *
 * Purpose   Rank 0 trains with two workers: steps, epochs, waits for input (some within others, some added up),
 *           checkpoints, an optimizer; a second thread writes meanwhile. Rank 1 trains without workers and reads
 *           while it waits. Rank 2 says nothing. A process without rank has two steps, of which one does not end,
 *           and a long wait.
 *           Operations lie within regions, across their ends, and beside each other.
 * Truth     The lists that the store was made from; sums are made of them one window at a time.
 * Owner     The test. The same numbers each time.
 */
#ifndef HEADRACE_TESTS_QUERY_TRAIN_STORE_H
#define HEADRACE_TESTS_QUERY_TRAIN_STORE_H

#include <stddef.h>

#include "common/event.h"
#include "common/region.h"

#define TRAIN_EVENTS  8000u
#define TRAIN_REGIONS 4000u
#define TRAIN_MS      UINT64_C(1000000)

/* Threads, by their place in the batches' tasks; proc 1: rank 0, 2 and 3: its workers, 4: rank 1, 5: rank 2, 6: none. */
enum train_task {
	TRAIN_0,
	TRAIN_0_OTHER, /* does not train */
	TRAIN_WORKER_0,
	TRAIN_WORKER_1,
	TRAIN_1,
	TRAIN_2,
	TRAIN_NONE,
	TRAIN_TASKS
};

/* Sets of threads: bits by number. */
/* Files of fixture__send_paths(). */
#define TRAIN_RANK_0                                                                               \
	(1u << TRAIN_0 | 1u << TRAIN_0_OTHER | 1u << TRAIN_WORKER_0 | 1u << TRAIN_WORKER_1)
enum { TRAIN_DATA = 1, TRAIN_SCRATCH = 2, TRAIN_RUNTIME = 5 };

struct train {
	struct hr_event events[TRAIN_EVENTS]; /* by the ends, times since FIX_BOOT_NS */
	size_t n_events;
	struct hr_region regions[TRAIN_REGIONS]; /* likewise; domain: the task */
	size_t n_regions;
	char *store;
};

struct train_sums {
	uint64_t ops, bytes_read, bytes_written, io_ns, busy_ns;
};

struct train *train_new(void);
void train_free(struct train *t);

/* What a set of threads did on data between two moments: operations that began there; when any was under way. */
struct train_sums train_between(const struct train *t, unsigned set, uint64_t from, uint64_t to);

/*
 * I/O of a training thread in its waits that begin between two moments: its own, and that of other threads of its process in the
 * rest of the wait.
 */
struct train_waited {
	uint64_t own_ns, others_ns;
};
struct train_waited train_waited(const struct train *t, enum train_task task, uint64_t from,
				 uint64_t to);

/* I/O that stops a training thread: what it has under way outside checkpoints and steps of optimizers, and I/O in waits. */
uint64_t train_unoverlapped(const struct train *t, enum train_task task, uint64_t from,
			    uint64_t to);

/* What a training thread says between two moments; what lies within another such region has depth 2, and counts for nothing. */
struct train_parts {
	uint64_t dur, wait, checkpoint, optimizer, own, unoverlapped;
};
struct train_parts train_parts(const struct train *t, enum train_task task, uint64_t from,
			       uint64_t dur);

/*
 * Lengths of a thread's regions of a kind, each of those that were added up; what did not end, and what is within, is none. At most
 * TRAIN_REGIONS.
 */
size_t train_lengths(const struct train *t, enum train_task task, uint32_t kind, uint64_t *ret);

/* The smallest of a list that is sorted by this, which a share of them is no longer than. */
uint64_t train_at_share(uint64_t *list, size_t n, unsigned percent);

/* The threads of a thread's rank. */
unsigned train_rank(enum train_task task);

#endif
