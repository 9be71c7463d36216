/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - measurements of a function, for tests; one thread */
#ifndef HEADRACE_TESTS_MODEL_SERIES_H
#define HEADRACE_TESTS_MODEL_SERIES_H

#include "model/samples.h"
#include "tests/unit.h"

/* Adds `repetitions` values of `function` for each of n points of one parameter. */
static inline void series_add(struct hr_measurements *m, const double *points, size_t n,
			      unsigned repetitions, double (*function)(double x, void *arg),
			      void *arg)
{
	assert_true(hr_measurements_parameter(m, "ranks", 5, true) >= 0);
	for (size_t i = 0; i < n; i++) {
		double at[HR_MODEL_PARAMETERS] = {points[i]};

		for (unsigned k = 0; k < repetitions; k++)
			assert_int_equal(
			    hr_measurements_add(m, "train", "read_s", at, function(points[i], arg)),
			    0);
	}
}

/* Returns the samples of the first series, along its first parameters. */
static inline struct hr_model_samples series_samples(const struct hr_measurements *m,
						     unsigned parameters)
{
	struct hr_axes axes = {.n = parameters, .parameters = {0, 1, 2}};
	struct hr_model_samples samples;

	assert_int_equal(hr_model_samples_take(&m->series[0], m, &axes, &samples), 0);
	return samples;
}

#endif
