/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnosis.h - what the training jobs of a query spent their time on
 *
 * hr_diagnosis_make reads regions and events once. Parts, findings and replays come from its result,
 * so that they show the same numbers. One thread calls; the scan of events uses all threads of the
 * query.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H
#define HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H

#include "query/diagnosis/life.h"
#include "query/diagnosis/parts.h"
#include "query/diagnosis/stalls.h"

/* The time of a fetch, in nanoseconds: ns is the sum of all but cached and io_core. */
struct hr_spent {
	double ns;
	double io; /* its thread had an operation under way */
	/* The part of `io` that is probably CPU time, because the kernel's caches had the data. */
	double cached;
	double io_core; /* the part of `io` in which it could run and had no core */
	/* Outside operations: */
	double cpu;
	double core;		     /* it could run and had no core */
	double fault;		     /* it waited for pages of mapped files */
	double sleep, network, lock; /* it slept, or waited for a socket or a lock */
	double asleep;		     /* none of these */
	double unknown;		     /* all of it, if the thread reported no CPU time */
};

/* It neither ran nor waited for a core, a file or a page. */
static inline double hr_spent_idle(const struct hr_spent *s)
{
	return s->sleep + s->network + s->lock + s->asleep;
}

/* The time of a life, in nanoseconds. */
struct hr_part_sums {
	uint64_t ns[HR_PHASE_END + 1][HR_PART_END];
};

/* Operations during a block; all zero: none that matter. */
struct hr_block_ops {
	uint64_t ns[HR_SCAN_GROUPS];	 /* of the thread that explains it */
	uint64_t others[HR_SCAN_GROUPS]; /* of other threads of its process, summed over them */
	int64_t runtime_end;		 /* end of the last runtime operation; 0: none */
};

/* Where those of a stream begin in the lists of a diagnosis. */
struct hr_stream_firsts {
	size_t life, worker, fetch, item;
};

struct hr_diagnosis {
	struct hr_query *q;
	struct hr_scope scope;
	uint32_t *jobs; /* of each stream: the number of its job. Streams of a job are adjacent. */
	size_t n_jobs;
	struct hr_train_lives lives;	/* by stream */
	struct hr_stream_firsts *first; /* of each stream; then the lengths of the lists */
	struct hr_item *items;		/* by stream and file */
	struct hr_block_ops *ops;	/* of hr_block.ops; [0] is zero */
	struct hr_samples samples;
	struct hr_spent *spent; /* of each fetch of `lives` */
	struct hr_loads loads;	/* of each mount that fetches use */
	/* of each life: */
	struct hr_cycles *cycles;
	struct hr_part_sums *sums;
	struct hr_part_sums *caused; /* stalls of other lives that this one caused, by its parts */
};

/*
 * Returns the diagnosis of a scope for the table functions; hr_diagnosis_release must follow. After
 * hr_query_keep, the query keeps that of HR_SCOPE_ALL for its further statements. -ENOMEM, -EINTR.
 */
int hr_diagnosis_get(struct hr_query *q, const struct hr_scope *scope,
		     const struct hr_diagnosis **ret);
void hr_diagnosis_release(struct hr_query *q, const struct hr_diagnosis *d); /* accepts NULL */

/* -ENOMEM; -EINTR after hr_query_interrupt. Call hr_diagnosis_done after a failure, too. */
int hr_diagnosis_make(struct hr_query *q, const struct hr_scope *scope, struct hr_diagnosis *ret);
void hr_diagnosis_done(struct hr_diagnosis *d);

/* The mount of a file; NULL: unknown. */
const struct hr_qmount *hr__item_mounted(const struct hr_diagnosis *d, const struct hr_item *item);
/* Whether a text of the query has these bytes. */
bool hr__text_is(const duckdb_string_t *text, const char *bytes, size_t n);

/* The parts of each step of all lives; the caller frees the rows, also of a failure. -ENOMEM. */
int hr_parts_make(const struct hr_diagnosis *d, struct hr_parts *ret);

/* The streams [first, end) of the job of a stream. */
struct hr_job_streams {
	size_t first, end;
};
struct hr_job_streams hr__job_streams(const struct hr_diagnosis *d, uint32_t stream);

/* scope.c: the span of each job; the caller frees the list, also after a failure. -ENOMEM. */
int hr__spans_read(const struct hr_diagnosis *d, struct hr_job_span **ret);
/* read.c: fills lives, firsts, items, operations and samples. -ENOMEM, -EINTR. */
int hr__read_all(struct hr_diagnosis *d);
void hr__cores_find(struct hr_diagnosis *d);
int hr__spent_make(struct hr_diagnosis *d);
int hr__stalls_make(struct hr_diagnosis *d);
void hr__stalls_done(struct hr_diagnosis *d);
int hr__sums_make(struct hr_diagnosis *d);

#endif
