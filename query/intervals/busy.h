/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - how long each rank (node, process, worker, class of calls) had an operation under way
 *
 * The union of intervals, without a sort of all events. Batches of all streams are read by the end
 * of their last event, latest first. No remaining batch reaches the time after that end, so this
 * time is added up and dropped. Only intervals that overlap remaining batches stay in memory.
 *
 * Any number of threads call hr__busy_work, each with its own worker. They decode batches in
 * parallel and unite the intervals of each key; one thread at a time adds finished batches in
 * order. One thread calls hr__busy_new and hr__busy_rows.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_H
#define HEADRACE_QUERY_INTERVALS_BUSY_H

#include "query/tables/internal.h"

/* The columns that divide the rows, besides cluster, job and attempt. */
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
	/* reads only processes and batches of this rank, or HR_BUSY_ANY_RANK */
	int32_t rank;
};

/* Columns that are not in `by` have the same value in all rows. */
struct hr_busy_row {
	const struct hr_qstream *st; /* a stream of its cluster, job and attempt (and node) */
	uint64_t proc;
	int32_t rank, worker; /* -1: none */
	unsigned class;	      /* enum hr_class */
	uint64_t busy_ns;     /* the union of the operations' intervals */
	uint64_t dur_ns;      /* the sum of their durations */
	uint64_t count;
	int64_t first_ns, last_ns; /* wall clock: first start, last end */
};

struct hr_busy;
struct hr_busy_worker;

struct hr_during;
struct hr_busy_keys;

/*
 * Prunes by the statement's predicates. `during`: NULL, or regions whose I/O is added up (`by` is
 * HR_BUSY_RANK); *ret owns them, and a failure frees them. -ENOMEM.
 */
int hr__busy_new(struct hr_query *q, const struct hr_busy_args *args, struct hr_during *during,
		 struct hr_busy **ret);
void hr__busy_free(struct hr_busy *b);
size_t hr__busy_batches(const struct hr_busy *b);
const struct hr_busy_keys *hr__busy_keys(const struct hr_busy *b);

struct hr_busy_worker *hr__busy_worker_new(void);
void hr__busy_worker_free(struct hr_busy_worker *w);

/*
 * Works until no batch is left. Returns 1 in the one thread that made the rows, 0 in others. In
 * all threads: -ENOMEM, or -EINTR after hr_query_interrupt.
 */
int hr__busy_work(struct hr_busy *b, struct hr_busy_worker *w);

/* Maximum number of pending intervals so far. Call it while no thread works. */
size_t hr__busy_pending(const struct hr_busy *b);

/* The rows with an operation, unordered. Only for the thread that made them. */
size_t hr__busy_rows(const struct hr_busy *b, const struct hr_busy_row **ret);

#endif
