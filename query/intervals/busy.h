/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - how long each rank (node, process, worker, class of calls) had an operation under way
 *
 * The answer is the length of the union of all intervals of operations, without a sort of all
 * events. Batches are added up in the order in which their last events end, latest first. So when a
 * batch has been added up, the events of all remaining batches end at or before the end of the next
 * batch, which is the cut. The time after the cut is final: it is added up, and its intervals are
 * freed. Memory holds only the intervals before the cut.
 *
 * Threads   One thread calls hr__busy_new. Any number of threads call hr__busy_work, each with its
 *           own struct hr_busy_worker. They decode batches in parallel. One thread at a time adds
 *           up finished batches, in order. The thread that adds the last batch calls hr__busy_rows.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_H
#define HEADRACE_QUERY_INTERVALS_BUSY_H

#include "query/tables/internal.h"

/* The columns by which rows are grouped, in addition to cluster, job and attempt. */
enum hr_busy_by {
	HR_BUSY_NODE = 1,
	HR_BUSY_PROC = 2, /* needs HR_BUSY_NODE: processes are numbered per node */
	HR_BUSY_RANK = 4,
	HR_BUSY_WORKER = 8,
	HR_BUSY_CLASS = 16,
};

enum hr_busy_scope { HR_BUSY_ALL, HR_BUSY_DATA, HR_BUSY_RUNTIME };

#define HR_BUSY_ANY_RANK (-1)

struct hr_busy_args {
	unsigned by; /* enum hr_busy_by */
	enum hr_busy_scope scope;
	/* Only operations of this rank, or HR_BUSY_ANY_RANK. */
	int32_t rank;
};

/* A column that is not in hr_busy_args.by has the same value in all rows. */
struct hr_busy_row {
	/* A stream of the row's cluster, job and attempt (and node, if grouped by node). */
	const struct hr_qstream *st;
	uint64_t proc;
	int32_t rank, worker; /* -1: none */
	unsigned class;	      /* enum hr_class */
	uint64_t busy_ns;     /* length of the union of the operations' intervals */
	uint64_t dur_ns;      /* sum of the operations' durations */
	uint64_t count;
	int64_t first_ns, last_ns; /* wall clock: first start, last end */
};

struct hr_busy;
struct hr_busy_worker;

struct hr_during;
struct hr_busy_keys;

/*
 * Prepares the sums. Without `during`, only batches are read that the statement's predicates
 * (prune.h) can match. With `during`, the I/O of its regions is also added up; then `by` must be
 * HR_BUSY_RANK, *ret owns `during`, and a failure frees it. Returns 0 or -ENOMEM.
 */
int hr__busy_new(struct hr_query *q, const struct hr_busy_args *args, struct hr_during *during,
		 struct hr_busy **ret);
void hr__busy_free(struct hr_busy *b);
size_t hr__busy_batches(const struct hr_busy *b);
const struct hr_busy_keys *hr__busy_keys(const struct hr_busy *b);

struct hr_busy_worker *hr__busy_worker_new(void);
void hr__busy_worker_free(struct hr_busy_worker *w);

/*
 * Adds up batches until none is left. Returns 1 if this thread has made the rows, 0 if another
 * thread has made them or will. After an error, all threads return it: -ENOMEM, or -EINTR after
 * hr_query_interrupt.
 */
int hr__busy_work(struct hr_busy *b, struct hr_busy_worker *w);

/*
 * Returns for how many pending intervals there is memory: at least their maximum number so far. No
 * thread may be in hr__busy_work meanwhile.
 */
size_t hr__busy_pending(const struct hr_busy *b);

/* Returns the rows that have at least one operation, in no order. */
size_t hr__busy_rows(const struct hr_busy *b, const struct hr_busy_row **ret);

#endif
