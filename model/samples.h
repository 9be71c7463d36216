/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.h - what one model is made of: the points of a series along one to three parameters
 *
 * Owner     Samples own their list; the values belong to the measurements, which must remain.
 * Threads   One at a time.
 */
#ifndef HEADRACE_MODEL_SAMPLES_H
#define HEADRACE_MODEL_SAMPLES_H

#include "model/points.h"

#define HR_MODEL_LEAST 5u /* distinct values that a model needs of each parameter, as in Extra-P */

/* The parameters of a model, and the values of the other parameters. */
struct hr_axes {
	unsigned n;
	unsigned parameters[HR_MODEL_PARAMETERS]; /* indexes in hr_measurements.parameters */
	bool fixed[HR_MODEL_PARAMETERS];	  /* only points with this value... */
	double values[HR_MODEL_PARAMETERS];	  /* ...of this parameter of the measurements */
};

struct hr_model_sample {
	double x[HR_MODEL_PARAMETERS]; /* in the order of the axes */
	double mean;
	const double *values; /* repetitions; NULL: only their mean is known */
	size_t n;
};

struct hr_model_samples {
	struct hr_model_sample *list;
	size_t n;
	unsigned n_parameters;
	/*
	 * Relative standard deviation by which each point differs from its form, besides the noise
	 * of its repetitions, which does not include it: no form describes a real job exactly.
	 */
	double usual;
};

/*
 * Takes the points of the axes. If a parameter that is no axis and not fixed has several values,
 * takes the points with the combination that most points have (the first one of several), and
 * stores it in `axes`. Returns 0 or -ENOMEM.
 */
int hr_model_samples_take(const struct hr_series *s, const struct hr_measurements *m,
			  struct hr_axes *axes, struct hr_model_samples *ret);
void hr_model_samples_done(struct hr_model_samples *s);

/*
 * Takes, for one parameter, the points that Extra-P models it with: lines along which only this
 * parameter changes. All lines of the largest number of points are averaged. The result has one
 * parameter, and no repetitions if several lines were averaged. Returns 0 or -ENOMEM.
 */
int hr_model_samples_line(const struct hr_model_samples *s, unsigned parameter,
			  struct hr_model_samples *ret);

/*
 * Returns the number of points on the longest line of a parameter. Up to *n of their values are
 * stored in `values`, and *n becomes their number.
 */
size_t hr_model_samples_count(const struct hr_model_samples *s, unsigned parameter, double *values,
			      size_t *n);

#endif
