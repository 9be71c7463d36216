/* SPDX-License-Identifier: Apache-2.0 */
/* causes.h - finds why quantities differ; used by compare.c */
#ifndef HEADRACE_COMPARE_CAUSES_H
#define HEADRACE_COMPARE_CAUSES_H

#include "compare/compare.h"

struct hr_causes_search {
	const struct hr_compare_side *sides;
	const struct hr_side_means *means; /* of both sides */
	const struct hr_compare_scale *scale;
	double left[HR_QUANTITIES]; /* seconds of B minus A without a cause so far */
	struct hr_comparison *to;   /* gets causes and `unsure` */
	bool failed;		    /* no memory */
};

/* Finds all causes. */
void hr_causes_find(struct hr_causes_search *s);

#endif
