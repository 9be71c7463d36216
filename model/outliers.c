/* SPDX-License-Identifier: Apache-2.0 */
#include "model/outliers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/order.h"

#define REPETITIONS_LEAST 3u
#define TIMES_MEDIAN	  9.0
#define LIMIT_LEAST	  0.001

static double median_of_sorted(const double *v, size_t n)
{
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double hr_model_sample_median(const struct hr_model_sample *s)
{
	double sorted[HR_MODEL_VALUES_MOST];

	memcpy(sorted, s->values, s->n * sizeof(*sorted));
	hr_doubles_sort(sorted, s->n);
	return median_of_sorted(sorted, s->n);
}

static bool sample_counts(const struct hr_model_sample *s)
{
	return s->values != NULL && s->n >= REPETITIONS_LEAST;
}

/*
 * Stores the differences of a sample's repetitions to their median, without those of the one or two
 * values in the middle, which define it. Returns their number.
 */
static size_t differences_store(const struct hr_model_sample *s, double *to)
{
	double median = hr_model_sample_median(s);
	size_t middle = s->n % 2 ? 1 : 2;

	if (median == 0)
		return 0;
	for (size_t i = 0; i < s->n; i++)
		to[i] = fabs((s->values[i] - median) / median);
	hr_doubles_sort(to, s->n);
	memmove(to, to + middle, (s->n - middle) * sizeof(*to));
	return s->n - middle;
}

double hr_outliers_limit(const struct hr_model_samples *s)
{
	size_t room = 1, n = 0;
	double *all, limit = INFINITY;

	for (size_t i = 0; i < s->n; i++)
		room += s->list[i].n;
	all = calloc(room, sizeof(*all));
	if (all == NULL)
		return INFINITY;
	for (size_t i = 0; i < s->n; i++)
		if (sample_counts(&s->list[i]))
			n += differences_store(&s->list[i], all + n);
	hr_doubles_sort(all, n);
	if (n > 0)
		limit = fmax(TIMES_MEDIAN * median_of_sorted(all, n), LIMIT_LEAST);
	free(all);
	return limit;
}

bool hr_outlier_is(const struct hr_model_sample *s, double median, double value, double limit)
{
	return sample_counts(s) && median != 0 && fabs((value - median) / median) > limit;
}
