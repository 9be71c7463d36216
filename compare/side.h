/* SPDX-License-Identifier: Apache-2.0 */
/*
 * side.h - the numbers of a run, as the named query `measures` returns them, and the means of the
 * runs of one side of a comparison
 */
#ifndef HEADRACE_COMPARE_SIDE_H
#define HEADRACE_COMPARE_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/noise.h"
#include "compare/quantities.h"

/* A row of the query. A text is NULL, and a number is -1, if the row has no value. */
struct hr_measure {
	const char *measure, *phase, *name, *mount;
	int64_t rank;
	int piece;
	double value; /* seconds, number or bytes */
};

/* One run. The caller owns all memory. */
struct hr_compare_run {
	const char *job, *store;
	const struct hr_measure *list;
	size_t n;
};

/* Returns the sum of the rows of a measure, and of a name unless it is NULL. */
double hr_compare_run_sum(const struct hr_compare_run *run, const char *measure, const char *name);

/* Returns the value of the row of a measure with this name; -1: there is none. */
double hr_compare_run_value(const struct hr_compare_run *run, const char *measure,
			    const char *name);

/* Returns how the job ended, for example "ended" or "failed"; NULL: not known. */
const char *hr_compare_run_state(const struct hr_compare_run *run);

#define HR_COMPARE_RUNS 64u /* maximum number of runs of a side */

enum { HR_COMPARE_A, HR_COMPARE_B, HR_COMPARE_SIDES };

struct hr_compare_side {
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
	/* seconds of a training process, scaled */
	struct hr_compare_sample quantities[HR_QUANTITIES];
	struct hr_rank_means *ranks; /* sorted */
	size_t n_ranks;
};

/*
 * Returns the work of a run: training samples, or the steps of a process if the batch size is not
 * known for all runs (`samples` false). 0: not known.
 */
double hr_compare_run_work(const struct hr_compare_run *run, bool samples);

/* The work to which training loops are scaled. */
struct hr_compare_scale {
	bool samples;
	double work; /* 0: nothing is scaled */
};

/* Returns the factor that scales the training loop of a run. */
double hr_compare_run_scale(const struct hr_compare_run *run, const struct hr_compare_scale *scale);

/* Returns the mean of a measure over the training processes: "steps", "epochs"; 0: not recorded. */
double hr_side_per_process(const struct hr_compare_side *side, const char *measure);

/*
 * Computes the means. The durations of the training loop of each run are scaled. `trains` false:
 * only the duration of the jobs. Returns 0 or -ENOMEM.
 */
int hr_side_means(const struct hr_compare_side *side, const struct hr_compare_scale *scale,
		  bool trains, struct hr_side_means *ret);
void hr_side_means_done(struct hr_side_means *m);

/* Returns the mean over the runs of the sum of a measure, scaled unless `scale` is NULL. */
double hr_side_sum(const struct hr_compare_side *side, const char *measure,
		   const struct hr_compare_scale *scale);

/* Returns the mean of a setting over the runs; -1: no run has it. */
double hr_side_setting(const struct hr_compare_side *side, const char *name);

/* Returns whether all runs have rows of the measure. */
bool hr_side_has(const struct hr_compare_side *side, const char *measure);

#endif
