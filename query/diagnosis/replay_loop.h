/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_loop.h - shared by replay.c (settings), replay_loop.c (one recorded loop) and
 * replay_run.c (its replay)
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_REPLAY_LOOP_H
#define HEADRACE_QUERY_DIAGNOSIS_REPLAY_LOOP_H

#include "query/diagnosis/replay.h"

/* What a replay needs of a batch, in ns. */
struct hr_recorded_batch {
	double ns; /* of its fetch, whose parts are: */
	double io,
	    cached; /* I/O that the kernel's caches do not serve, and that which they serve */
	double cpu, lock, rest; /* `lock`: waits for locks; `rest` depends on no setting */
	double gap;		/* until the next request, or until the loop ended */
};

/* What is the same in all replays of a loop. */
struct hr_recorded_loop {
	const struct hr_diagnosis *d;
	const struct hr_loop *loop;
	bool first; /* over its loader */
	bool known; /* the fetches of all batches are known. Otherwise without: */
	struct hr_recorded_batch *batches;
	size_t n;	 /* batches */
	double replayed; /* how long it takes with the recorded settings, in ns */
	double create;	 /* iter() */
	double start;	 /* from then until a worker fetches */
	double end;	 /* until all workers have ended */
	/*
	 * A hand-over: the worker's part, if it makes its next batch meanwhile or not, and the
	 * training thread's.
	 */
	double pickle_busy, pickle_idle, unpickle;
	double cores;		    /* 0: unknown */
	double main_low, main_high; /* share of a core that the thread uses between waits */
	double others;		    /* cores that other threads of the process use meanwhile */
	double load
	    [3]; /* exponent of the mount (samples.h): lower limit, most probable, upper limit */
	double stalled; /* share of the time between waits that it waited for other ranks */
	double
	    busy; /* how many workers make batches at the same time as one does, itself included */
	double wanted; /* cores that its threads used, at most */
	/*
	 * CPU work took `slow` times as long as on cores of its own, `outside` times because of
	 * other programs.
	 */
	double slow, outside;
};

/* What differs in a replay. */
struct hr_changed_loop {
	uint32_t workers, prefetch;
	bool persistent, same;
	bool barriers;	   /* the threads of the training process wait for each other */
	bool shared;	   /* CPUs share a pipeline, and workers start at the same time as others */
	double cores;	   /* 0: unknown */
	double main_share; /* of a core that the training thread uses between waits */
	double outside;	   /* multiple of CPU work because of other programs */
	double io;	   /* multiple of the time of I/O with as many workers, */
	double load;	   /* whose exponent is this */
	double cached;	   /* multiple of the time of I/O that the kernel's caches serve */
	double gap;	   /* multiple of the time between waits */
	double batch;	   /* multiple of the batch size */
};

struct hr_loop_result {
	double ns;   /* duration of the loop */
	double busy; /* as in hr_recorded_loop */
	double slow; /* multiple of CPU work because of the loop's own threads, on average */
};

/*
 * Reads r->loop: the fields up to `unpickle`, but not `replayed`. The caller frees r->batches.
 * -ENOMEM.
 */
int hr__loop_read(struct hr_recorded_loop *r);
/* The time from a batch until the next request, or until the loop ended, in ns. */
double hr__loop_gap(const struct hr_recorded_loop *r, size_t batch);
/* The time for which a made batch delayed the thread, in ns. */
double hr__loop_handover(const struct hr_recorded_loop *r, size_t batch);
/* From the creation of the workers until the one of this batch began its first fetch, in ns. */
double hr__loop_start(const struct hr_recorded_loop *r, size_t batch);

/* ---- replay_run.c ---- */

/* -ENOMEM. */
int hr__loop_run(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
		 struct hr_loop_result *ret);

#endif
