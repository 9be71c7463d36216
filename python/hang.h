/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.h - marks what a thread has done for much longer than usual
 *
 * A mark `hang` (docs/python.md) has the thread's stack, its system call, and the stacks of the
 * other threads of the process. It is repeated when the work has lasted twice as long, and then
 * every 10 s.
 *
 * Threads   The thread that works calls hang_begin() and hang_end(); one other thread calls the
 *           rest. Neither waits for the other, and Python's lock is not needed.
 */
#ifndef HEADRACE_PYTHON_HANG_H
#define HEADRACE_PYTHON_HANG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/headrace.h"
#include "python/stable_abi.h"

enum hang_work {
	HANG_STEP,  /* a step, without its waits for batches */
	HANG_WAIT,  /* a wait for a batch that a worker makes */
	HANG_FETCH, /* the making of a batch */
	HANG_GROUP, /* the start of a process group, for which all ranks must be there */
	HANG_WORKS
};

/* Initially all 0. Times are CLOCK_MONOTONIC in ns. */
struct hang_watch {
	_Atomic uint64_t began_ns; /* of the current work; 0: none */
	_Atomic unsigned work;
	_Atomic uint64_t ended[HANG_WORKS], sum_ns[HANG_WORKS]; /* earlier works, and their time */
	/* Of the thread that makes marks: the current work, and how long it is at the next mark. */
	uint64_t watched_ns, due_ns;
};

/* Begins a work, and ends the one before. */
void hang_begin(struct hang_watch *watch, enum hang_work work, uint64_t at_ns);
void hang_end(struct hang_watch *watch, uint64_t at_ns);

/*
 * Returns whether the work has lasted 10 times as long as usual, and 2 s (the first work of its
 * kind: 5 s), or that the next mark is due.
 */
bool hang_is_due(struct hang_watch *watch, uint64_t now_ns);

/* Marks the work of this thread, which has the id `tid`. Call this if hang_is_due(). */
void hang_mark(struct hang_watch *watch, const struct headrace_api *api,
	       const PyThreadState *thread, int tid);

#endif
