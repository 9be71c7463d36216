/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - adds up the operations of a process during intervals of its time
 *
 * An interval is a time of one thread. Operations of other threads of the process during this time
 * are added up separately. The operations of one thread do not overlap, so the sum of their
 * durations is the time in which the thread had an operation under way.
 *
 * A scan reads one stream. One thread adds intervals and calls hr__scan_begin. Then any number of
 * threads call hr__scan_work, each with its own struct hr_scan_worker, and share the batches of
 * events.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_SCAN_H
#define HEADRACE_QUERY_DIAGNOSIS_SCAN_H

#include "common/ops.h"
#include "proto/abi.h"
#include "query/diagnosis/items.h"
#include "query/diagnosis/samples.h"
#include "query/tables/internal.h"
#include "store/batch_reader.h"

enum hr_scan_group {
	HR_SCAN_READ,
	HR_SCAN_METADATA, /* open, close, stat, folders, names */
	HR_SCAN_WRITE,
	HR_SCAN_SYNC,
	HR_SCAN_RUNTIME, /* any operation on files of the Python installation */
	HR_SCAN_GROUPS
};

/* Sums of the operations in an interval. Several threads add to them. */
struct hr_scan_ops {
	/* durations of operations of the interval's thread */
	_Atomic uint64_t ns[HR_SCAN_GROUPS];
	_Atomic uint64_t others[HR_SCAN_GROUPS]; /* durations of operations of other threads */
	/* The part of `ns` in operations that the kernel's caches probably served. */
	_Atomic uint64_t cached_ns;
	/* end of the last operation of group HR_SCAN_RUNTIME; 0: none */
	_Atomic int64_t runtime_end;
};

/* What the thread of an interval does. */
enum hr_interval_use {
	/* the diagnosis is not about this rank: makes no sums of files and no samples */
	HR_USE_NONE,
	HR_USE_OWN,    /* a training thread, outside fetches */
	HR_USE_WAITED, /* a fetch while a training thread waits for its batch */
	HR_USE_HIDDEN  /* a fetch while no training thread waits for its batch */
};

struct hr_interval {
	uint64_t proc;
	int64_t from, to;
	uint32_t tid;
	uint32_t ops; /* index of the sums; several intervals may share them */
	enum hr_interval_use use;
};

struct hr_op_scan {
	uint32_t stream;
	struct hr_interval *intervals; /* those of one process do not overlap */
	size_t n, room;
	uint32_t n_ops;
	/* Valid after hr__scan_begin: */
	struct hr_scan_ops *ops;
	uint32_t *batches; /* the batches of events that may have operations in intervals */
	uint32_t n_batches;
	_Atomic uint32_t next; /* index in `batches` of the next one to read */
};

/* Sums of one interval that a thread has collected, and not yet added to hr_scan_ops. */
struct hr_scan_sums {
	uint32_t ops;
	bool own, any;
	uint64_t ns[HR_SCAN_GROUPS], cached_ns;
	int64_t runtime_end;
};

/* The data of a thread that scans. */
struct hr_scan_worker {
	struct hr_query *q;
	struct hr_batch_reader reader;
	/* Properties of each kind of operation. */
	struct hr_scan_op {
		uint8_t class, bytes_rule;
		/* the group of operations on files outside the Python installation */
		uint8_t group;
	} ops[HR_OP_MAX];
	struct hr_scan_sums sums;
	struct hr_items items; /* sums of files, for the current stream */
	/* Samples from all streams that the thread has read. */
	struct hr_samples samples;
};

/* Returns the index of new sums, for hr_interval.ops. */
static inline uint32_t hr__scan_ops(struct hr_op_scan *s)
{
	return s->n_ops++;
}

int hr__scan_add(struct hr_op_scan *s, const struct hr_interval *interval);

/* Sorts the intervals, and finds the batches of events to read. -ENOMEM. */
int hr__scan_begin(struct hr_query *q, struct hr_op_scan *s);

/*
 * Reads batches of events until none is left. Skips damaged batches, and records each in the notes
 * of the query. -ENOMEM; -EINTR after hr_query_interrupt.
 */
int hr__scan_work(struct hr_op_scan *s, struct hr_scan_worker *w);

/* Whether batches of events are left to read. */
static inline bool hr__scan_more(struct hr_op_scan *s)
{
	return atomic_load_explicit(&s->next, memory_order_relaxed) < s->n_batches;
}

void hr__scan_done(struct hr_op_scan *s);

void hr__scan_worker_init(struct hr_query *q, struct hr_scan_worker *ret);
void hr__scan_worker_done(struct hr_scan_worker *w);

#endif
