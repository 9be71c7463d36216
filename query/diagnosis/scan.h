/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - adds up the operations of a process during intervals of its time
 *
 * An interval belongs to a thread. Operations of other threads of the process during the interval
 * are added up separately. Operations of one thread follow each other, so their durations within
 * the interval add up to the time during which the thread had an operation under way.
 *
 * A scan reads one stream. One thread adds intervals and calls hr__scan_begin. Then any number of
 * threads call hr__scan_work, each with its own worker structure, and share the batches.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_SCAN_H
#define HEADRACE_QUERY_DIAGNOSIS_SCAN_H

#include "common/ops.h"
#include "proto/abi.h"
#include "query/diagnosis/items.h"
#include "query/diagnosis/samples.h"
#include "query/tables/internal.h"

enum hr_scan_group {
	HR_SCAN_READ,
	HR_SCAN_METADATA, /* open, close, stat, folders, names */
	HR_SCAN_WRITE,
	HR_SCAN_SYNC,
	HR_SCAN_RUNTIME, /* any operation on files of the Python installation */
	HR_SCAN_GROUPS
};

/* Sums of an interval, while threads add to it. */
struct hr_scan_ops {
	_Atomic uint64_t ns[HR_SCAN_GROUPS];	 /* time of operations of the interval's thread */
	_Atomic uint64_t others[HR_SCAN_GROUPS]; /* the same of other threads, added up */
	/* The part of `ns` in operations that the kernel's caches probably served. */
	_Atomic uint64_t cached_ns;
	_Atomic int64_t runtime_end; /* end of the last runtime operation; 0: none */
};

/* Whose time an interval is. */
enum hr_interval_use {
	HR_USE_NONE, /* time of a rank that the diagnosis is not about: adds to no item or sample */
	HR_USE_OWN,  /* time of a training thread outside fetches */
	HR_USE_WAITED, /* time of a fetch while a training thread waits for it */
	HR_USE_HIDDEN  /* time of a fetch while no training thread waits for it */
};

struct hr_interval {
	uint64_t proc;
	int64_t from, to;
	uint32_t tid;
	uint32_t ops; /* index of its sums, which several intervals may share */
	enum hr_interval_use use;
};

struct hr_op_scan {
	uint32_t stream;
	struct hr_interval *intervals; /* intervals of one process do not overlap */
	size_t n, room;
	uint32_t n_ops;
	/* Valid after hr__scan_begin: */
	struct hr_scan_ops *ops;
	uint32_t *batches; /* the batches that may have operations in intervals */
	uint32_t n_batches;
	_Atomic uint32_t next; /* index in `batches`: the next one to read */
};

/* Sums of one interval that a thread has not yet added to hr_scan_ops. */
struct hr_scan_sums {
	uint32_t ops;
	bool own, any;
	uint64_t ns[HR_SCAN_GROUPS], cached_ns;
	int64_t runtime_end;
};

/* A thread that scans. */
struct hr_scan_worker {
	struct hr_query *q;
	struct hr_decoder *decoder;
	/* What the scan needs to know of each kind of operation. */
	struct hr_scan_op {
		uint8_t class, bytes_rule;
		uint8_t group; /* the group, unless it is a runtime operation */
	} ops[HR_OP_MAX];
	struct hr_scan_sums sums;
	struct hr_items items; /* items of the scan on which the thread works */
	/*
	 * Samples of operations of fetches that the kernel's caches did not serve, from all scans
	 * of the thread.
	 */
	struct hr_samples samples;
};

/* Makes new sums, and returns their index for interval->ops. */
static inline uint32_t hr__scan_ops(struct hr_op_scan *s)
{
	return s->n_ops++;
}

/* -ENOMEM. */
int hr__scan_add(struct hr_op_scan *s, const struct hr_interval *interval);

/* Sorts the intervals, and finds the batches to read. -ENOMEM. */
int hr__scan_begin(struct hr_query *q, struct hr_op_scan *s);

/*
 * Reads batches until none is left. Leaves damaged batches out, and records that in the query's
 * notes. -ENOMEM; -EINTR after hr_query_interrupt.
 */
int hr__scan_work(struct hr_op_scan *s, struct hr_scan_worker *w);

/* Whether hr__scan_work has something to do. */
static inline bool hr__scan_more(struct hr_op_scan *s)
{
	return atomic_load_explicit(&s->next, memory_order_relaxed) < s->n_batches;
}

void hr__scan_done(struct hr_op_scan *s);

int hr__scan_worker_init(struct hr_query *q, struct hr_scan_worker *ret);
void hr__scan_worker_done(struct hr_scan_worker *w);

#endif
