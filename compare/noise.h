/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.h - by how much the means of two sides differ by chance
 *
 * Runs of the same program differ. Their spread is known from repeated runs; with few runs, or one,
 * headrace adds what is usual: a standard deviation of 3 % of the quantity, 0.5 % of the whole run
 * and 30 ms, which counts like three further runs. The result is a t interval (Welch), as of a moderated
 * t test (Smyth 2004, doi 10.2202/1544-6115.1027).
 */
#ifndef HEADRACE_COMPARE_NOISE_H
#define HEADRACE_COMPARE_NOISE_H

#include <stdbool.h>

/* A quantity of the runs of one side. */
struct hr_compare_sample {
	double mean;
	double
	    variance;	/* of a run: from the spread of the runs, or of the steps of a single run */
	double freedom; /* degrees of freedom of `variance`; 0: it is not known */
	unsigned n;	/* number of runs */
};

/*
 * Returns the half width of the 99 % confidence interval of b->mean - a->mean, or of the 99.9 %
 * interval for one of `many` quantities, of which one would often differ by chance. `whole`: mean
 * duration of the whole run. All are seconds.
 */
double hr_noise(const struct hr_compare_sample *a, const struct hr_compare_sample *b, double whole,
		bool many);

#endif
