/* SPDX-License-Identifier: Apache-2.0 */
/* side.h - the means of the runs of one side of a comparison */
#ifndef HEADRACE_COMPARE_SIDE_H
#define HEADRACE_COMPARE_SIDE_H

#include "compare/measures.h"
#include "compare/noise.h"
#include "compare/quantities.h"

#define HR_COMPARE_RUNS 64u /* maximum number of runs of a side */

struct hr_compare_side {
	const char *name; /* for messages: "A" */
	const struct hr_compare_run *runs;
	size_t n; /* 1 to HR_COMPARE_RUNS */
};

/* The mean quantities of a rank, in seconds, per process. */
struct hr_rank_means {
	int64_t rank;
	double processes; /* of all runs */
	double seconds[HR_QUANTITIES];
};

struct hr_side_means {
	double steps; /* training steps of a process in a run; 0: no steps were recorded */
	/* seconds of a training process, as long as it does the number of steps of the scale */
	struct hr_compare_sample quantities[HR_QUANTITIES];
	struct hr_rank_means *ranks; /* sorted */
	size_t n_ranks;
};

/* Returns the factor that scales a run to `steps` training steps; 1: steps is 0, or not known. */
double hr_compare_run_scale(const struct hr_compare_run *run, double steps);

/* Returns the mean number of training steps of a process, or of its epochs. */
double hr_side_steps(const struct hr_compare_side *side);
double hr_side_epochs(const struct hr_compare_side *side);

/* Returns whether all runs have a training process. */
bool hr_side_trains(const struct hr_compare_side *side);

/*
 * Computes the means. The durations of the training loop of each run are scaled to `steps`, unless
 * it is 0. `trains` false: only the duration of the jobs. Returns 0 or -ENOMEM.
 */
int hr_side_means(const struct hr_compare_side *side, double steps, bool trains,
		  struct hr_side_means *ret);
void hr_side_means_done(struct hr_side_means *m);

/* Returns the mean over the runs of the sum of a measure (hr_compare_run_sum), with the scale of `steps`. */
double hr_side_sum(const struct hr_compare_side *side, const char *measure, const char *name,
		   double steps);

/* Returns the mean of a setting over the runs; -1: no run has it. */
double hr_side_setting(const struct hr_compare_side *side, const char *name);

/* Returns whether all runs have rows of the measure. */
bool hr_side_has(const struct hr_compare_side *side, const char *measure);

#endif
