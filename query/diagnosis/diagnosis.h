/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnosis.h - what the training jobs of a query spent their time on
 *
 * hr_diagnosis_make reads regions and events once. The tables of parts, findings and replays all
 * use the result, so their numbers agree. It uses all threads of the query.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H
#define HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H

#include "query/diagnosis/life.h"
#include "query/diagnosis/parts.h"
#include "query/diagnosis/stalls.h"

/*
 * What a worker spent the time of one fetch (one batch) on, in nanoseconds. `ns` is the whole time:
 * the sum of all other fields except `cached` and `io_core`, which are parts of `io`. "The thread"
 * is the thread that makes the batch.
 */
struct hr_spent {
	double ns;
	double io; /* the thread used a file */
	/* The part of `io` that is probably CPU time, because the kernel's caches had the data. */
	double cached;
	double io_core; /* the part of `io` in which the thread could run, but had no core */
	/* While the thread used no file: */
	double cpu;
	double core;
	double fault;		     /* waits for pages of mapped files */
	double sleep, network, lock; /* time.sleep etc., waits for sockets, waits for locks */
	double asleep;		     /* the thread did not run, for an unknown reason */
	/* all time without an operation, if the thread reported no CPU time */
	double unknown;
};

/* Returns the time in which the thread did not run, and waited for no core, file or page. */
static inline double hr_spent_idle(const struct hr_spent *s)
{
	return s->sleep + s->network + s->lock + s->asleep;
}

/* The time of a training process in each phase and part, in nanoseconds. */
struct hr_part_sums {
	uint64_t ns[HR_PHASE_END + 1][HR_PART_END];
};

/* Durations of operations during a block (life.h); 0 if the block's parts do not depend on them. */
struct hr_block_ops {
	uint64_t ns[HR_SCAN_GROUPS]; /* operations of the thread whose work explains the block */
	/* sums of the other threads of this process */
	uint64_t others[HR_SCAN_GROUPS];
	/* end of the last operation on a file of the Python installation; 0: none */
	int64_t runtime_end;
};

/*
 * Where a stream's training processes, workers, fetches, files and lines begin in the lists of a
 * diagnosis.
 */
struct hr_stream_firsts {
	size_t life, worker, fetch, item, line;
};

/* The longest wait of a training process for a batch. */
struct hr_longest_wait {
	int64_t from, to; /* equal: the process did not wait */
};

static inline int64_t hr_longest_ns(const struct hr_longest_wait *w)
{
	int64_t ns;

	return __builtin_sub_overflow(w->to, w->from, &ns) ? INT64_MAX : ns;
}

struct hr_diagnosis {
	struct hr_query *q;
	struct hr_scope scope;
	/* for each stream, the number of its job; the streams of a job are adjacent */
	uint32_t *jobs;
	size_t n_jobs;
	/* for each stream: whether it has regions of kind checkpoint */
	bool *saves;
	struct hr_train_lives lives; /* sorted by stream */
	/* One entry for each stream. One more entry after these has the lengths of the lists. */
	struct hr_stream_firsts *first;
	struct hr_item *items;	  /* sorted by stream and file */
	struct hr_block_ops *ops; /* hr_block.ops is an index in this list; ops[0] is all zero */
	struct hr_samples samples;
	struct hr_spent *spent; /* for each element of lives.fetches */
	struct hr_loads loads;	/* of the mounts whose files were read to make batches */
	/* One entry for each element of `lives`: */
	struct hr_cycles *cycles;
	struct hr_part_sums *sums;
	struct hr_longest_wait *longest;
	/*
	 * The stalls of other ranks that this rank caused, by what this rank did in the meantime.
	 */
	struct hr_part_sums *caused;
};

/* Call hr_diagnosis_done after a failure, too. -ENOMEM; -EINTR after hr_query_interrupt. */
int hr_diagnosis_make(struct hr_query *q, const struct hr_scope *scope, struct hr_diagnosis *ret);
void hr_diagnosis_done(struct hr_diagnosis *d);

/*
 * Returns the diagnosis of all ranks and of the whole time. All tables of a query share this
 * diagnosis: the first caller makes it, and hr_query_free frees it. The errors are those of
 * hr_diagnosis_make.
 */
int hr_diagnosis_shared(struct hr_query *q, const struct hr_diagnosis **ret);

/* Returns the mount of a file; NULL: unknown. */
const struct hr_qmount *hr__item_mounted(const struct hr_diagnosis *d, const struct hr_item *item);
bool hr__text_is(const duckdb_string_t *text, const char *bytes, size_t n);

/* The streams of one job: indexes from `first` to `end` (exclusive) in hr_query.streams. */
struct hr_job_streams {
	size_t first, end;
};
/* Sets jobs and n_jobs, and makes the list `saves`. -ENOMEM. */
int hr__jobs_number(struct hr_diagnosis *d);
struct hr_job_streams hr__job_streams(const struct hr_diagnosis *d, uint32_t stream);

/*
 * scope.c: returns the part of each job's time that the diagnosis is about. The caller frees the
 * list, also after a failure. -ENOMEM.
 */
int hr__spans_read(const struct hr_diagnosis *d, struct hr_job_span **ret);
/*
 * scope.c: returns when each job started (0: unknown) and ended, as in the table `jobs`. The end of
 * a job that still runs is the current time. The caller frees the list, also after a failure.
 * -ENOMEM.
 */
int hr__job_times(const struct hr_diagnosis *d, struct hr_job_span **ret);
/* read.c: sets lives, first, items, ops, samples and saves. Returns 0, -ENOMEM or -EINTR. */
int hr__read_all(struct hr_diagnosis *d);
int hr__spent_make(struct hr_diagnosis *d);
int hr__stalls_make(struct hr_diagnosis *d);
void hr__stalls_done(struct hr_diagnosis *d);
int hr__longest_waits_find(struct hr_diagnosis *d);
int hr__sums_make(struct hr_diagnosis *d);

/* Returns the training process with the longest single wait of a job; NULL: none waited. */
const struct hr_train_life *hr__longest_waiter(const struct hr_diagnosis *d, uint32_t job);

#endif
