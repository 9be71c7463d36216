/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the quantities of each rank on both sides of a comparison */
#ifndef HEADRACE_COMPARE_RANKS_H
#define HEADRACE_COMPARE_RANKS_H

#include "compare/side.h"

/* The means of a rank on both sides. A side that lacks the rank has 0 processes. */
struct hr_compare_rank {
	int64_t rank;
	struct hr_rank_means side[HR_COMPARE_SIDES];
};

struct hr_compare_ranks {
	struct hr_compare_rank *list; /* sorted by rank */
	size_t n;
};

/* Joins the ranks of both sides. Processes without a rank are left out. Returns 0 or -ENOMEM. */
int hr_compare_ranks_find(const struct hr_side_means means[HR_COMPARE_SIDES],
			  struct hr_compare_ranks *ret);
void hr_compare_ranks_done(struct hr_compare_ranks *r);

/* Returns the seconds of a rank in the training loop in which it did not wait for other ranks. */
double hr_compare_rank_own(const struct hr_rank_means *m);

#endif
