/* SPDX-License-Identifier: Apache-2.0 */
/* made_runs.h - runs of a training job with chosen measures, for tests of compare/ */
#ifndef HEADRACE_TESTS_COMPARE_MADE_RUNS_H
#define HEADRACE_TESTS_COMPARE_MADE_RUNS_H

#include "compare/compare.h"

#define MADE_MEASURES 64u
#define MADE_RUNS     5u

struct made_run {
	struct hr_measure list[MADE_MEASURES];
	size_t n;
};

/* One side with MADE_RUNS equal runs, apart from a spread of 1 % of each duration. */
struct made_side {
	struct made_run made[MADE_RUNS];
	struct hr_compare_run runs[MADE_RUNS];
};

/* Makes runs of one rank with 100 steps: 8 s computing, 2 s start, no files. */
void made_side_init(struct made_side *s);
void made_side_add(struct made_side *s, struct hr_measure m); /* adds a measure to each run */
void made_side_part(struct made_side *s, int64_t rank, const char *phase, const char *part,
		    double seconds);
/* Adds reads of a kind of files: opens, reads of `bytes` bytes that take `each` seconds. */
void made_side_reads(struct made_side *s, const char *name, double opens, double reads,
		     double bytes, double each);
struct hr_compare_side made_side(struct made_side *s);

#endif
