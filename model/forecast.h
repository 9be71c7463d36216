/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.h - the value at a point that was not measured, and the range that probably holds it
 *
 * Several forms often fit the points about equally well, and differ much at a larger point. The
 * forecast therefore weighs all forms of the search space by their probability (Bayes): how well
 * they fit, given the noise of the repetitions, and how simple they are. Its value is the median,
 * and its range holds 90 % of the probability. Repetitions that are outliers do not count.
 *
 * The method is deterministic. docs/model.md describes it.
 *
 * Owner     hr_forecast_done frees the candidates.
 * Threads   One per forecast.
 */
#ifndef HEADRACE_MODEL_FORECAST_H
#define HEADRACE_MODEL_FORECAST_H

#include "model/search.h"

/* hr_model_samples.usual for times of recorded runs (tests/bench/scaling_study.py) */
#define HR_FORECAST_USUAL 0.05
#define HR_FORECAST_EQUAL 0.1 /* a candidate fits about as well with this share of the best one's */

struct hr_candidate {
	struct hr_function function; /* fitted to the means, which weigh by their precision */
	double probability;
	double predicted; /* its value at the point */
};

struct hr_forecast {
	double value, low, high; /* median, 5 % and 95 % */
	double noise; /* relative standard deviation of repetitions; NAN: no point has several */
	/* No form fits the points within this noise: the range comes from the misfit instead. */
	bool misfit;
	struct hr_candidate *candidates; /* the most probable first, up to a probability of 0.1 % */
	size_t n;
	size_t n_equal; /* candidates that fit about equally well, with the first one */
};

/* Computes a forecast at x: one value for each parameter. Returns 0 or -ENOMEM. */
int hr_forecast_init(const struct hr_model_samples *s, enum hr_space space, const double *x,
		     struct hr_forecast *ret);
void hr_forecast_done(struct hr_forecast *f);

#endif
