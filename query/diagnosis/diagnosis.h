/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnosis.h - what the training jobs of a query spent their time on
 *
 * hr_diagnosis_make reads regions and events once. Parts, findings and replays come from its
 * result, so they show the same numbers. One thread calls; the scan of events uses all threads of
 * the query.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H
#define HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H

#include "query/diagnosis/life.h"
#include "query/diagnosis/parts.h"
#include "query/diagnosis/stalls.h"

/*
 * What a fetch spent its time on, in nanoseconds. `ns` is its whole time: the sum of all other
 * fields except `cached` and `io_core`, which are parts of `io`. "The thread" is the thread that
 * makes the batch.
 */
struct hr_spent {
	double ns;
	double io; /* the thread had an operation under way */
	/* The part of `io` that is probably CPU time, because the kernel's caches had the data. */
	double cached;
	double io_core; /* the part of `io` in which the thread could run, but had no core */
	/* While the thread had no operation under way: */
	double cpu;
	double core;		     /* the thread could run, but had no core */
	double fault;		     /* the thread waited for pages of mapped files */
	double sleep, network, lock; /* the thread slept, or waited for a socket or a lock */
	double asleep;		     /* the thread did not run, for an unknown reason */
	double unknown;		     /* all this time, if the thread reported no CPU time */
};

/* The time in which the thread neither ran nor waited for a core, a file or a page. */
static inline double hr_spent_idle(const struct hr_spent *s)
{
	return s->sleep + s->network + s->lock + s->asleep;
}

/* The time of a life (life.h) in each phase and part, in nanoseconds. */
struct hr_part_sums {
	uint64_t ns[HR_PHASE_END + 1][HR_PART_END];
};

/*
 * Operations during a block. All zero: there were none, or the block's parts do not depend on them.
 */
struct hr_block_ops {
	uint64_t ns[HR_SCAN_GROUPS]; /* operations of the thread that explain the block */
	/* operations of the other threads of its process, added up */
	uint64_t others[HR_SCAN_GROUPS];
	int64_t runtime_end; /* end of the last runtime operation; 0: none */
};

/* The first life, worker, fetch and item of a stream, as positions in the lists of a diagnosis. */
struct hr_stream_firsts {
	size_t life, worker, fetch, item;
};

/* The longest wait for a batch of a life. */
struct hr_longest_wait {
	int64_t from, to; /* equal: the life has no wait */
};

static inline int64_t hr_longest_ns(const struct hr_longest_wait *w)
{
	int64_t ns;

	return __builtin_sub_overflow(w->to, w->from, &ns) ? INT64_MAX : ns;
}

struct hr_diagnosis {
	struct hr_query *q;
	struct hr_scope scope;
	uint32_t *jobs; /* of each stream: the number of its job. Streams of a job are adjacent. */
	size_t n_jobs;
	bool *saves;		     /* of each stream: it has regions of kind checkpoint */
	struct hr_train_lives lives; /* sorted by stream */
	/* Of each stream; the entry after the last one has the lengths of the lists. */
	struct hr_stream_firsts *first;
	struct hr_item *items;	  /* sorted by stream and file */
	struct hr_block_ops *ops; /* hr_block.ops is the index; [0] is zero */
	struct hr_samples samples;
	struct hr_spent *spent; /* what each fetch of `lives` spent its time on */
	struct hr_loads loads;	/* loads of the mounts that fetches use */
	/* One entry for each life: */
	struct hr_cycles *cycles;
	struct hr_part_sums *sums;
	struct hr_longest_wait *longest;
	/* The stalls that this life caused in other lives, by the parts of this life. */
	struct hr_part_sums *caused;
};

/* -ENOMEM; -EINTR after hr_query_interrupt. Call hr_diagnosis_done after a failure, too. */
int hr_diagnosis_make(struct hr_query *q, const struct hr_scope *scope, struct hr_diagnosis *ret);
void hr_diagnosis_done(struct hr_diagnosis *d);

/*
 * The diagnosis of all ranks and of the whole time, which all tables of a query share. The first
 * caller makes it, and hr_query_free frees it. The errors are those of hr_diagnosis_make.
 */
int hr_diagnosis_shared(struct hr_query *q, const struct hr_diagnosis **ret);

/* The mount of a file; NULL: unknown. */
const struct hr_qmount *hr__item_mounted(const struct hr_diagnosis *d, const struct hr_item *item);
/* Whether a text of the query consists of these bytes. */
bool hr__text_is(const duckdb_string_t *text, const char *bytes, size_t n);

/* The parts of each step of all lives. The caller frees the rows, also after a failure. -ENOMEM. */
int hr_parts_make(const struct hr_diagnosis *d, struct hr_parts *ret);

/* The streams [first, end) of the job to which a stream belongs. */
struct hr_job_streams {
	size_t first, end;
};
struct hr_job_streams hr__job_streams(const struct hr_diagnosis *d, uint32_t stream);

/* scope.c: the span of each job; the caller frees the list, also after a failure. -ENOMEM. */
int hr__spans_read(const struct hr_diagnosis *d, struct hr_job_span **ret);
/*
 * scope.c: when each job started (0: unknown) and ended, as in the table jobs; jobs that have not
 * ended end now. The caller frees the list, also after a failure. -ENOMEM.
 */
int hr__job_times(const struct hr_diagnosis *d, struct hr_job_span **ret);
/* read.c: fills lives, firsts, items, operations and samples. -ENOMEM, -EINTR. */
int hr__read_all(struct hr_diagnosis *d);
void hr__cores_find(struct hr_diagnosis *d);
int hr__spent_make(struct hr_diagnosis *d);
int hr__stalls_make(struct hr_diagnosis *d);
void hr__stalls_done(struct hr_diagnosis *d);
int hr__longest_waits_find(struct hr_diagnosis *d);
int hr__sums_make(struct hr_diagnosis *d);

/* The life with the longest wait of a job; of equal waits, the first one. NULL: no wait. */
const struct hr_train_life *hr__longest_waiter(const struct hr_diagnosis *d, uint32_t job);

#endif
