/* SPDX-License-Identifier: Apache-2.0 */
/* outliers.h - repetitions that differ from the others of their point; pure functions */
#ifndef HEADRACE_MODEL_OUTLIERS_H
#define HEADRACE_MODEL_OUTLIERS_H

#include "model/samples.h"

/*
 * Returns the difference to the median of its point, relative to that median, from which on a
 * repetition is an outlier: 9 times the median of all such differences, and at least 0.1 %. In sets
 * of normally distributed values, one of 100 has such a value. Points with less than three
 * repetitions do not count. Returns INFINITY if no point has three repetitions or without memory.
 */
double hr_outliers_limit(const struct hr_model_samples *s);

/* Returns the median of the repetitions of a sample that has at least one. */
double hr_model_sample_median(const struct hr_model_sample *s);

/* Whether a value of a sample with this median is an outlier. */
bool hr_outlier_is(const struct hr_model_sample *s, double median, double value, double limit);

#endif
