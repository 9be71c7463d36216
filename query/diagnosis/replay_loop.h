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
	double ns; /* duration of its fetch: the sum of the fields below except `gap` */
	double io,
	    cached; /* I/O that the kernel's caches did not serve, and I/O that they served */
	double cpu, lock, rest; /* `lock`: waits for locks; `rest` depends on no setting */
	double gap; /* from the end of the wait until the next request, or until the loop ended */
};

/* What is the same in all replays of a loop. */
struct hr_recorded_loop {
	const struct hr_diagnosis *d;
	const struct hr_loop *loop;
	bool first; /* the first loop over its loader */
	/* The fetches of all batches are known; otherwise, the fields below are not set. */
	bool known;
	struct hr_recorded_batch *batches;
	size_t n;	 /* number of batches */
	double replayed; /* how long it takes with the recorded settings, in ns */
	double create;	 /* duration of iter() */
	double start;	 /* from the end of iter() until a worker begins its first batch */
	double end;	 /* duration of the last wait, until all workers have ended */
	/*
	 * Parts of a hand-over: of a worker that makes its next batch meanwhile, of a worker that
	 * does not, and of the training thread.
	 */
	double pickle_busy, pickle_idle, unpickle;
	double cores; /* 0: unknown */
	/* Limits of the share of a core that the training thread uses between waits. */
	double main_low, main_high;
	double others; /* cores that other threads of its process use between waits */
	/* Exponent of the mount (samples.h): lower limit, most probable value, upper limit. */
	double load[3];
	/* Share of the time between waits in which the rank waited for other ranks. */
	double stalled;
	/*
	 * While a worker makes a batch: how many workers do so at the same time, including this one
	 * (mean).
	 */
	double busy;
	double wanted; /* upper limit of the cores that the training process and its workers used */
	/*
	 * CPU work took `slow` times as long as it would on idle cores. Other programs cause the
	 * factor `outside` of `slow`.
	 */
	double slow, outside;
};

/* The settings of one replay of a loop, and what the replay assumes. */
struct hr_changed_loop {
	uint32_t workers, prefetch;
	bool persistent, same;
	bool barriers;	   /* the threads of the training process wait for each other */
	bool shared;	   /* two CPUs share a pipeline, and starts of workers delay each other */
	double cores;	   /* 0: unknown */
	double main_share; /* share of a core that the training thread uses between waits */
	double outside;	   /* how many times as long CPU work takes because of other programs */
	/*
	 * Multiple of the time of I/O that the caches do not serve, with as many workers as
	 * recorded.
	 */
	double io;
	/* Exponent (samples.h) by which this time changes with the number of workers. */
	double load;
	double cached; /* multiple of the time of I/O that the kernel's caches serve */
	double gap;    /* multiple of the time between waits */
	double batch;  /* multiple of the batch size */
};

struct hr_loop_result {
	double ns;   /* duration of the loop */
	double busy; /* as in hr_recorded_loop */
	double slow; /* how many times as long CPU work took (mean) */
};

/*
 * Reads r->loop: the fields up to `unpickle`, but not `replayed`. The caller frees r->batches.
 * -ENOMEM.
 */
int hr__loop_read(struct hr_recorded_loop *r);
/* The time from a batch until the next request, or until the loop ended, in ns. */
double hr__loop_gap(const struct hr_recorded_loop *r, size_t batch);
/* How long the training thread waited for a batch that had been made, in ns. */
double hr__loop_handover(const struct hr_recorded_loop *r, size_t batch);
/* From the creation of the workers until the worker of this batch began to make it, in ns. */
double hr__loop_start(const struct hr_recorded_loop *r, size_t batch);

/* ---- replay_run.c ---- */

/* -ENOMEM. */
int hr__loop_run(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
		 struct hr_loop_result *ret);

#endif
