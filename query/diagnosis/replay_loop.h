/* SPDX-License-Identifier: Apache-2.0 */
/* replay_loop.h - shared by replay.c (settings) and replay_loop.c (one loop, repeated) */
#ifndef HEADRACE_QUERY_DIAGNOSIS_REPLAY_LOOP_H
#define HEADRACE_QUERY_DIAGNOSIS_REPLAY_LOOP_H

#include "query/diagnosis/replay.h"

/* What a replay needs of a batch, in ns. */
struct hr_recorded_batch {
	double ns; /* of its fetch, whose parts are: */
	double io,
	    cached;	  /* I/O that the kernel's caches do not serve, and that which they serve */
	double cpu, rest; /* `rest` depends on no setting */
	double gap;	  /* until the next request, or until the loop ended */
};

/* What is the same in all replays of a loop. */
struct hr_recorded_loop {
	const struct hr_diagnosis *d;
	const struct hr_loop *loop;
	bool first; /* over its loader */
	bool known; /* the fetches of all batches are known. Otherwise without: */
	struct hr_recorded_batch *batches;
	double replayed; /* how long it takes with the recorded settings, in ns */
	double
	    share; /* the part of the time of fetches, without waits for cores, that is CPU time */
	size_t n;  /* batches */
	double create;		    /* iter() */
	double start;		    /* from then until a worker fetches */
	double end;		    /* until all workers have ended */
	double pickle, unpickle;    /* a hand-over: the worker's and the training thread's part */
	double cores;		    /* 0: unknown */
	double main_low, main_high; /* share of a core that the thread uses between waits */
	double load_low, load_high; /* exponent of the mount (samples.h) */
	double stalled; /* share of the time between waits that it waited for other ranks */
};

/* What differs in a replay. */
struct hr_changed_loop {
	uint32_t workers, prefetch;
	bool persistent, same;
	double io;     /* multiple of the time of I/O, */
	double cached; /* and of that which the kernel's caches serve */
	double slow;  /* multiple of the CPU time of fetches, where they no longer wait for cores */
	double gap;   /* multiple of the time between waits */
	double batch; /* multiple of the batch size */
};

/* Reads r->loop, but not `replayed` and `share`. The caller frees r->batches. -ENOMEM. */
int hr__loop_read(struct hr_recorded_loop *r);
/* The time from a batch until the next request, or until the loop ended, in ns. */
double hr__loop_gap(const struct hr_recorded_loop *r, size_t batch);
/* The duration of the loop, in ns; NAN: out of memory. */
double hr__loop_run(const struct hr_recorded_loop *r, const struct hr_changed_loop *c);

#endif
