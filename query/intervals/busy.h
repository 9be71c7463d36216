/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - how long each rank (node, process, worker, class of calls) had an operation under way
 *
 * Purpose   The union of intervals, without a sort of all events. Batches of all streams are read
 *           in the order of their last event's end, latest first. Time after the ends of all
 *           remaining batches is final, since none of their events reaches there: it is added up
 *           and dropped. So only intervals that overlap remaining batches stay in memory, however
 *           long operations are and in whatever order they were written.
 * Threads   hr__busy_new and hr__busy_rows: one. hr__busy_work: any number, each with a worker of
 *           its own. They decode batches in parallel, into one united list of intervals for each
 *           key. The thread that finishes the next batch in order adds it to the pending intervals.
 * Lifetime  A struct hr_busy lives in a running statement; the query outlives it.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_H
#define HEADRACE_QUERY_INTERVALS_BUSY_H

#include "query/tables/internal.h"

/* The columns by which rows differ, besides cluster, job and attempt. */
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
	/* read only the processes of this rank and their batches; or HR_BUSY_ANY_RANK */
	int32_t rank;
};

/* Columns that are not in `by` have the same value in all rows. */
struct hr_busy_row {
	const struct hr_qstream *st; /* some stream of its cluster, job and attempt (and node) */
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
 * Prunes by the statement's predicates. `during`: NULL, or regions for which the time of each rank
 * is added up (`by` is HR_BUSY_RANK); *ret owns them, and they are freed on failure. -ENOMEM.
 */
int hr__busy_new(struct hr_query *q, const struct hr_busy_args *args, struct hr_during *during,
		 struct hr_busy **ret);
void hr__busy_free(struct hr_busy *b);
size_t hr__busy_batches(const struct hr_busy *b);
const struct hr_busy_keys *hr__busy_keys(const struct hr_busy *b);

struct hr_busy_worker *hr__busy_worker_new(void); /* NULL: out of memory */
void hr__busy_worker_free(struct hr_busy_worker *w);

/*
 * Works until no batch is left. Returns 1 in the one thread that made the rows and 0 in all others;
 * -ENOMEM, or -EINTR after hr_query_interrupt, in all.
 */
int hr__busy_work(struct hr_busy *b, struct hr_busy_worker *w);

/* Room for pending intervals, in intervals: the most so far. Call it while no thread works. */
size_t hr__busy_pending(const struct hr_busy *b);

/* The rows with at least one operation, unordered; only for the thread that made them. */
size_t hr__busy_rows(const struct hr_busy *b, const struct hr_busy_row **ret);

#endif
