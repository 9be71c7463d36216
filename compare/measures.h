/* SPDX-License-Identifier: Apache-2.0 */
/* measures.h - the numbers of a run, as the named query `measures` returns them */
#ifndef HEADRACE_COMPARE_MEASURES_H
#define HEADRACE_COMPARE_MEASURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Returns whether the run has rows of the measure. */
bool hr_compare_run_has(const struct hr_compare_run *run, const char *measure);

#endif
