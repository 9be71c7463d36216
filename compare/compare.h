/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what differs between two sides, each with one or more runs, and why
 *
 * Durations are means over the runs and over their training processes. If the sides did different
 * amounts of work, B is also known as it would be with the work of A: its training loops and files
 * are scaled. The difference in work is a cause of its own, and what is left has other causes.
 * Each second by which the whole run differs belongs to one quantity of level 2 (quantities.def),
 * and each of these to one or more causes. A difference counts if it is larger than its noise
 * (noise.h).
 */
#ifndef HEADRACE_COMPARE_COMPARE_H
#define HEADRACE_COMPARE_COMPARE_H

#include <stdbool.h>

#include "common/text.h"
#include "compare/kinds.h"
#include "compare/side.h"

#define HR_COMPARE_LEAST 0.01 /* share of the whole run: less does not count */

enum hr_compare_cause_id {
#define HR_WHY(id, more, less) HR_WHY_##id,
#include "compare/causes.def"
#undef HR_WHY
	HR_WHYS
};

struct hr_difference {
	double a, b;  /* seconds */
	double noise; /* half width of the confidence interval of b - a (noise.h) */
	bool differs; /* b - a is larger than the noise, and than HR_COMPARE_LEAST */
};

struct hr_compare_cause {
	enum hr_compare_cause_id id;
	double seconds; /* by which B took longer; negative: less time */
	double noise;
	char *what;	/* a sentence (malloc'ed) */
	char *evidence; /* the numbers that show it (malloc'ed), or NULL */
};

/* A change that is larger than all causes, and not larger than its noise. */
struct hr_compare_unsure {
	enum hr_quantity quantity;
	double seconds; /* of the quantity, without what causes explain; 0: there is none */
	double noise;
};

#define HR_COMPARE_SETTINGS 6u
struct hr_compare_setting {
	const char *name;
	double a, b; /* -1: not known */
};

/* The means of a rank on both sides. A side that lacks the rank has 0 processes. */
struct hr_compare_rank {
	int64_t rank;
	struct hr_rank_means side[HR_COMPARE_SIDES];
};

struct hr_compare_ranks {
	struct hr_compare_rank *list; /* sorted by rank */
	size_t n;
};

struct hr_comparison {
	bool trains; /* all runs have a training loop; else only `wall` and the files are known */
	struct hr_difference quantities[HR_QUANTITIES]; /* B with the work of A */
	struct hr_difference measured[HR_QUANTITIES];	/* B with its own work */
	double steps[HR_COMPARE_SIDES];	 /* training steps of a process; 0: not recorded */
	double epochs[HR_COMPARE_SIDES]; /* its epochs; 0: not recorded */
	double work[HR_COMPARE_SIDES];	 /* training samples or steps of the job; 0: not known */
	bool samples;			 /* `work` is samples */
	bool scaled;			 /* the work differs: `quantities` are not `measured` */
	struct hr_compare_setting settings[HR_COMPARE_SETTINGS];
	struct hr_kinds kinds;
	struct hr_compare_ranks ranks;
	struct hr_compare_cause *causes; /* largest first */
	size_t n_causes, causes_room;
	struct hr_compare_unsure unsure;
};

/* Compares two sides, whose texts must outlive the result. Returns 0 or -ENOMEM. */
int hr_compare(const struct hr_compare_side sides[HR_COMPARE_SIDES], struct hr_comparison *ret);
void hr_comparison_done(struct hr_comparison *c);

const char *hr_compare_cause_name(enum hr_compare_cause_id id);

/* The unit of `work`, for people. */
static inline const char *hr_compare_work_unit(const struct hr_comparison *c)
{
	return c->samples ? "samples" : "steps";
}

/* Returns the seconds of a rank in the training loop in which it did not wait for other ranks. */
double hr_compare_rank_own(const struct hr_rank_means *m);

#endif
