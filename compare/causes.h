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
	struct hr_comparison *to;
	bool failed; /* no memory */
};

/* Returns the mean of a measure (hr_side_sum) of side A or B. */
double hr_causes_sum(const struct hr_causes_search *s, int side, const char *measure);

/* Returns ln(b / a); 0: one of them is not positive. */
double hr_log_ratio(double a, double b);

/*
 * Adds a cause that takes `seconds` of the quantity, if this is more than the noise. Then the
 * caller sets what and evidence of the result. NULL: not added.
 */
struct hr_compare_cause *hr_compare_cause_add(struct hr_causes_search *s,
					      enum hr_compare_cause_id id,
					      enum hr_quantity quantity, double seconds);

/* Formats a text (malloc'ed). On failure, returns NULL and sets s->failed. */
__attribute__((format(printf, 2, 3))) char *hr_compare_cause_text(struct hr_causes_search *s,
								  const char *format, ...);

/* Adds a cause that takes all that is left of the quantity, which it shows. */
void hr_compare_cause_add_simple(struct hr_causes_search *s, enum hr_compare_cause_id id,
				 enum hr_quantity quantity);

/* Finds all causes. */
void hr_causes_find(struct hr_causes_search *s);

/* Finds those in kinds of files: reads, metadata and writes. */
void hr_causes_of_files(struct hr_causes_search *s);

#endif
