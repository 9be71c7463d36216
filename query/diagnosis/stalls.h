/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stalls.h - how long the training threads of a job waited for each other
 *
 * The ranks of data-parallel training meet in each step: in the last of its backward() and
 * collectives or, if these are not recorded, in its last optimizer step. A cycle of a rank is
 * the time from one meeting to the next. Its delay is the time in a cycle in which the rank does
 * not compute (waits for batches, I/O, a checkpoint, a validation). A rank with a shorter delay
 * than another rank waits for that rank before they meet. This wait is a stall:
 *
 *      rank 0   | wait |  compute  |     stall      |
 *      rank 1   | wait .................. | compute |
 *
 * If backward() and collectives are recorded, the ranks wait in these, and a rank's own time is its
 * time outside them, and the CPU time of backward(), if it is known. The rank with the longest own
 * time comes last, and each other rank waits for the difference to its own time. Ranks whose cycles
 * do not end together have no stalls.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_STALLS_H
#define HEADRACE_QUERY_DIAGNOSIS_STALLS_H

#include <stddef.h>
#include <stdint.h>

/* A cycle of a rank. Times are in nanoseconds. */
struct hr_cycle {
	uint64_t step; /* the cycle ends when the ranks meet in this step */
	int64_t from, to;
	double ns;
	double delay;  /* the part of `ns` in which the rank does not compute its step */
	double sync;   /* the part of `ns` in backward() and collectives; without CPU time of it */
	double stall;  /* the part of `ns` in which the rank waits for another rank */
	double caused; /* stalls of other ranks that this rank's longer delay causes */
	double slowed; /* stalls of other ranks that this rank's longer computing causes */
};

/* A process's cycles, sorted by step. There are none if the numbers of its steps do not ascend. */
struct hr_cycles {
	struct hr_cycle *list;
	size_t n, room;
	double stall, slowed; /* sums over the list */
};

/* Returns NULL if the step has no cycle. */
struct hr_cycle *hr_cycle_of(const struct hr_cycles *c, uint64_t step);

#endif
