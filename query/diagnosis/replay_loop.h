/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_loop.h - shared by replay.c (settings), replay_loop.c (a loop) and replay_run.c (its
 * replay)
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_REPLAY_LOOP_H
#define HEADRACE_QUERY_DIAGNOSIS_REPLAY_LOOP_H

#include "query/diagnosis/replay.h"

/* A recorded batch. Times are in ns. */
struct hr_recorded_batch {
	double ns; /* time to make the batch: the sum of the fields below except `gap` */
	double io,
	    /* operations that the kernel's caches did not serve, and those that they served */
	    cached;
	double cpu, lock, rest; /* `lock`: waits for locks; `rest`: no setting changes it */
	/* from the end of the wait for it until the next wait, or the end of the loop */
	double gap;
};

/* A recorded loop: the input of all its replays. */
struct hr_recorded_loop {
	const struct hr_diagnosis *d;
	const struct hr_loop *loop;
	bool first; /* no earlier loop has the same loader */
	/* The fetches of all batches were recorded. Otherwise, the fields below are not set. */
	bool known;
	struct hr_recorded_batch *batches;
	size_t n;
	double replayed; /* duration of a replay with the recorded settings, in ns */
	double create;
	double start; /* from the end of iter() until a worker begins its first batch */
	double end;   /* duration of the last wait, in which the workers end */
	/* Parts of a hand-over: by a busy worker, by an idle one, by the training thread. */
	double pickle_busy, pickle_idle, unpickle;
	double cores; /* 0: unknown */
	/* Limits of the share of a core that the training thread uses between waits for batches. */
	double main_low, main_high;
	double others; /* cores that other threads of the process use between waits for batches */
	/* Exponent of the mount (samples.h): lower limit, probable value, upper limit. */
	double load[3];
	/* Share of the time between waits for batches in which the rank waited for other ranks. */
	double stalled;
	/* How many workers make batches at a time, seen from a busy worker (mean). */
	double busy;
	double wanted; /* how many cores the training process and its workers used at most */
	/*
	 * CPU work took this many times as long as on idle cores: in all, and because of other
	 * programs.
	 */
	double slow, outside;
};

/* The settings and the assumed values of one replay of a loop. */
struct hr_changed_loop {
	uint32_t workers, prefetch;
	bool persistent, same;
	bool barriers; /* the threads of the training process wait for the slowest of them */
	/* two CPUs share the pipeline of a core, and starts of workers delay each other */
	bool shared;
	double cores; /* 0: unknown */
	/* share of a core that the training thread uses between waits for batches */
	double main_share;
	double outside; /* factor of the time of CPU work because of other programs */
	/* Factor of the time of operations that the kernel's caches do not serve. */
	double io;
	/* Exponent (samples.h): how this factor changes with the number of busy workers. */
	double load;
	double cached; /* factor of the time of operations that the kernel's caches serve */
	double gap;    /* factor of the time between waits for batches */
	double batch;  /* factor of the batch size */
};

struct hr_loop_result {
	double ns;
	double busy; /* see hr_recorded_loop */
	double slow; /* how many times as long CPU work took as on idle cores (mean) */
};

/* Sets the fields up to `unpickle` except `replayed`. The caller frees r->batches. -ENOMEM. */
int hr__loop_read(struct hr_recorded_loop *r);
/* Returns the time from a wait until the next one, or until the end of the loop, in ns. */
double hr__loop_gap(const struct hr_recorded_loop *r, size_t batch);
/* Returns how long the training thread waited for a batch after the batch was made, in ns. */
double hr__loop_handover(const struct hr_recorded_loop *r, size_t batch);
/* Returns the time from the end of iter() until the worker of this batch began it, in ns. */
double hr__loop_start(const struct hr_recorded_loop *r, size_t batch);

/* replay_run.c: replays the loop. -ENOMEM. */

int hr__loop_run(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
		 struct hr_loop_result *ret);

#endif
