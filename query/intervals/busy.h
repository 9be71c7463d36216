/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - how long each rank (node, process, worker, class of calls) had an operation under way
 *
 * The answer is the length of the union of the intervals of operations. Events are not sorted as a
 * whole. Instead, batches of events are added up by the end of their last event, latest first. So
 * no event of the remaining batches ends after the next batch. The end of the next batch is the
 * cut: the time after it is final and added up, and only intervals before it are kept in memory.
 *
 * Threads   One thread calls hr__busy_new. Any number of threads call hr__busy_work, each with its
 *           own struct hr_busy_worker. They decode batches in parallel. One thread at a time adds
 *           up finished batches, in order. After that, one thread calls hr__busy_rows.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_H
#define HEADRACE_QUERY_INTERVALS_BUSY_H

#include "query/tables/rows.h"

/* The columns by which rows are grouped, in addition to cluster, job and attempt. */
enum hr_busy_by {
	HR_BUSY_NODE = 1,
	HR_BUSY_PROC = 2, /* needs HR_BUSY_NODE, because processes are numbered per node */
	HR_BUSY_RANK = 4,
	HR_BUSY_WORKER = 8,
	HR_BUSY_CLASS = 16,
};

enum hr_busy_scope { HR_BUSY_ALL, HR_BUSY_DATA, HR_BUSY_RUNTIME };

#define HR_BUSY_ANY_RANK (-1)

struct hr_busy_args {
	unsigned by; /* bits of enum hr_busy_by */
	enum hr_busy_scope scope;
	/* Only operations of this rank, or HR_BUSY_ANY_RANK. */
	int32_t rank;
};

struct hr_busy;
struct hr_busy_worker;

struct hr_during;
struct hr_busy_keys;

/*
 * Prepares the sums. Without `during`, only batches of events are read that the statement's WHERE
 * (prune.h) can match. With `during`, the I/O of its regions is also added up. Then `by` must be
 * HR_BUSY_RANK, and *ret owns `during`, which a failure frees. Returns 0 or -ENOMEM.
 */
int hr__busy_new(struct hr_query *q, const struct hr_busy_args *args, struct hr_during *during,
		 struct hr_busy **ret);
void hr__busy_free(struct hr_busy *b);
size_t hr__busy_batches(const struct hr_busy *b);
const struct hr_busy_keys *hr__busy_keys(const struct hr_busy *b);

struct hr_busy_worker *hr__busy_worker_new(void);
void hr__busy_worker_free(struct hr_busy_worker *w);

/*
 * Adds up batches of events until none is left. Returns 1 if this thread has made the rows,
 * otherwise 0. After an error, all threads return it: -ENOMEM, or -EINTR after hr_query_interrupt.
 */
int hr__busy_work(struct hr_busy *b, struct hr_busy_worker *w);

/*
 * Returns how many intervals before the cut fit into the allocated memory (for tests). Call it when
 * no thread is in hr__busy_work.
 */
size_t hr__busy_pending(const struct hr_busy *b);

/* Returns the rows with at least one operation, unsorted. */
size_t hr__busy_rows(const struct hr_busy *b, const struct hr_busy_row **ret);

#endif
