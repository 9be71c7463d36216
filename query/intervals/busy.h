/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - how long each rank (node, process, worker, class of calls) had an operation under way
 *
 * Purpose   The union of intervals, without a sort of all events. Batches are taken by the end of
 *           their last event, the latest first, from all streams at once. What lies above the ends of
 *           all batches to come is final, since no event reaches above its end: it is added up and
 *           forgotten. So no more is kept than what batches have in common, however long operations
 *           are, and in whatever order they were written.
 * Threads   hr__busy_new and hr__busy_rows: one. hr__busy_work: any number, each with a worker of
 *           its own. They decode batches side by side, into one united list of intervals for each
 *           key; whoever finishes the batch whose turn it is adds it to what is pending.
 * Lifetime  A struct hr_busy lives in a running statement; the query outlives it.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_H
#define HEADRACE_QUERY_INTERVALS_BUSY_H

#include "query/tables/internal.h"

/* What rows are told apart by, besides cluster, job and attempt. */
enum hr_busy_by {
	HR_BUSY_NODE = 1,
	HR_BUSY_PROC = 2, /* numbers of processes are a node's: with HR_BUSY_NODE only */
	HR_BUSY_RANK = 4,
	HR_BUSY_WORKER = 8,
	HR_BUSY_CLASS = 16,
};

enum hr_busy_scope { HR_BUSY_ALL, HR_BUSY_DATA, HR_BUSY_RUNTIME };

#define HR_BUSY_ANY_RANK (-1)

struct hr_busy_asked {
	unsigned by; /* enum hr_busy_by */
	enum hr_busy_scope scope;
	/* of this rank's processes alone, whose batches alone are read; or HR_BUSY_ANY_RANK */
	int32_t rank;
};

/* What is not in `by` is the same in all rows, and says nothing. */
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
 * Prunes by the statement's predicates. `during`: NULL, or regions during which the time of each rank (`by` is HR_BUSY_RANK) is
 * to be added up; they belong to *ret, or are freed. -ENOMEM.
 */
int hr__busy_new(struct hr_query *q, const struct hr_busy_asked *asked, struct hr_during *during,
		 struct hr_busy **ret);
void hr__busy_free(struct hr_busy *b);
size_t hr__busy_batches(const struct hr_busy *b);
const struct hr_busy_keys *hr__busy_keys(const struct hr_busy *b);

struct hr_busy_worker *hr__busy_worker_new(void); /* NULL: out of memory */
void hr__busy_worker_free(struct hr_busy_worker *w);

/*
 * Takes part in the work until there is none left. 1 for the one thread that has made the rows, 0
 * for all others. -ENOMEM, -EINTR after hr_query_interrupt: to all.
 */
int hr__busy_work(struct hr_busy *b, struct hr_busy_worker *w);

/* How many intervals there is room for in what is kept: its most so far. While no thread works. */
size_t hr__busy_pending(const struct hr_busy *b);

/* The rows with at least one operation, in no order; for that one thread. */
size_t hr__busy_rows(const struct hr_busy *b, const struct hr_busy_row **ret);

#endif
