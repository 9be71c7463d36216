/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stalls.h - how long the training threads of a job waited for each other
 *
 * The ranks of data-parallel training meet in each step: in the last of its backward() and
 * collectives or, if these are not recorded, in its last optimizer step. A cycle of a rank is
 * the time from one meeting to the next. What a rank does in a cycle besides computing its step
 * (waits for batches, I/O, a checkpoint, a validation) is its delay. A rank whose delay is
 * shorter than that of another rank waits for the difference, somewhere before they meet:
 *
 *      rank 0   | wait |  compute  |     stall      |
 *      rank 1   | wait .................. | compute |
 *
 * If backward() and the collectives of each rank are recorded, the ranks wait in them. Then a
 * rank's own time is its time outside them (its delay and its own computing). The rank with the
 * longest own time comes last, and each other rank waits for the difference. Ranks whose cycles
 * do not end together have no stalls.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_STALLS_H
#define HEADRACE_QUERY_DIAGNOSIS_STALLS_H

#include <stddef.h>
#include <stdint.h>

/* In nanoseconds. */
struct hr_cycle {
	uint64_t step; /* the step whose meeting ends the cycle */
	int64_t from, to;
	double ns;     /* duration */
	double delay;  /* the part of `ns` in which the rank does not compute its step */
	double sync;   /* the part of `ns` in backward() and collectives */
	double stall;  /* the part of `ns` in which the rank waits for another one */
	double caused; /* stalls of other ranks because of this rank's delay */
	double slowed; /* stalls of other ranks because this rank computes longer */
};

/* The cycles of a life, sorted by step. None if the numbers of its steps do not ascend. */
struct hr_cycles {
	struct hr_cycle *list;
	size_t n, room;
};

/* NULL: the step has no cycle. */
struct hr_cycle *hr_cycle_of(const struct hr_cycles *c, uint64_t step);

/* Sums of all cycles. */
double hr_cycles_stall(const struct hr_cycles *c);
double hr_cycles_slowed(const struct hr_cycles *c);

#endif
