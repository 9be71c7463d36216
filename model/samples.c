/* SPDX-License-Identifier: Apache-2.0 */
#include "model/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "common/order.h"

static double mean_of(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return n > 0 ? sum / (double)n : 0;
}

/* ---- points of the axes ---------------------------------------------------------------------- */

static bool is_axis(const struct hr_axes *axes, unsigned parameter)
{
	for (unsigned i = 0; i < axes->n; i++)
		if (axes->parameters[i] == parameter)
			return true;
	return false;
}

static bool is_taken(const struct hr_axes *axes, const struct hr_point *p)
{
	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		if (axes->fixed[i] && p->at[i] != axes->values[i])
			return false;
	return true;
}

static size_t taken_count(const struct hr_axes *axes, const struct hr_series *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += is_taken(axes, &s->points[i]);
	return n;
}

/* Fixes the parameters that are no axes at the values that most points have. */
static void axes_fix(const struct hr_series *s, unsigned n_parameters, struct hr_axes *axes)
{
	struct hr_axes best = *axes, tried = *axes;
	size_t most = 0;

	for (size_t i = 0; i < s->n; i++) {
		size_t n;

		if (!is_taken(axes, &s->points[i]) || (most > 0 && is_taken(&best, &s->points[i])))
			continue;
		for (unsigned k = 0; k < n_parameters; k++) {
			if (is_axis(axes, k))
				continue;
			tried.fixed[k] = true;
			tried.values[k] = s->points[i].at[k];
		}
		n = taken_count(&tried, s);
		if (n > most) {
			most = n;
			best = tried;
		}
	}
	*axes = best;
}

int hr_model_samples_take(const struct hr_series *s, const struct hr_measurements *m,
			  struct hr_axes *axes, struct hr_model_samples *ret)
{
	struct hr_model_samples to = {.list = calloc(s->n + 1, sizeof(*to.list)),
				      .n_parameters = axes->n};

	if (to.list == NULL)
		return -ENOMEM;
	axes_fix(s, m->n_parameters, axes);
	for (size_t i = 0; i < s->n; i++) {
		const struct hr_point *p = &s->points[i];
		struct hr_model_sample *sample = &to.list[to.n];

		if (!is_taken(axes, p))
			continue;
		for (unsigned k = 0; k < axes->n; k++)
			sample->x[k] = p->at[axes->parameters[k]];
		sample->mean = mean_of(p->values, p->n);
		sample->values = p->values;
		sample->n = p->n;
		to.n++;
	}
	*ret = to;
	return 0;
}

void hr_model_samples_done(struct hr_model_samples *s)
{
	free(s->list);
	*s = (struct hr_model_samples){0};
}

/* ---- lines along one parameter --------------------------------------------------------------- */

/* Whether two points differ at most in this parameter. */
static bool is_same_line(const struct hr_model_samples *s, const struct hr_model_sample *a,
			 const struct hr_model_sample *b, unsigned parameter)
{
	for (unsigned i = 0; i < s->n_parameters; i++)
		if (i != parameter && a->x[i] != b->x[i])
			return false;
	return true;
}

/* Returns the number of points on the line of a point. */
static size_t line_count(const struct hr_model_samples *s, const struct hr_model_sample *of,
			 unsigned parameter)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += is_same_line(s, of, &s->list[i], parameter);
	return n;
}

/* Returns the first point of the first line that has the most points. `s` is not empty. */
static const struct hr_model_sample *line_longest(const struct hr_model_samples *s,
						  unsigned parameter, size_t *ret_n)
{
	const struct hr_model_sample *best = s->list;

	*ret_n = 0;
	for (size_t i = 0; i < s->n; i++) {
		size_t n = line_count(s, &s->list[i], parameter);

		if (n > *ret_n) {
			*ret_n = n;
			best = &s->list[i];
		}
	}
	return best;
}

/* Whether the line of a point has a point at x. */
static bool line_has(const struct hr_model_samples *s, const struct hr_model_sample *of,
		     unsigned parameter, double x)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].x[parameter] == x && is_same_line(s, of, &s->list[i], parameter))
			return true;
	return false;
}

/*
 * Averages the points at x of all lines that are as long as the longest one. Extra-P leaves out
 * the lines that have no point at the first value of the longest line.
 */
static struct hr_model_sample line_point(const struct hr_model_samples *s, unsigned parameter,
					 double x, double first, size_t longest)
{
	struct hr_model_sample point = {.x = {x}};
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct hr_model_sample *from = &s->list[i];

		if (from->x[parameter] != x || line_count(s, from, parameter) != longest ||
		    !line_has(s, from, parameter, first))
			continue;
		sum += from->mean;
		point.values = from->values;
		point.n = from->n;
		n++;
	}
	point.mean = n > 0 ? sum / (double)n : 0;
	if (n > 1) {
		point.values = NULL;
		point.n = n;
	}
	return point;
}

int hr_model_samples_line(const struct hr_model_samples *s, unsigned parameter,
			  struct hr_model_samples *ret)
{
	struct hr_model_samples to = {.list = calloc(s->n + 1, sizeof(*to.list)),
				      .n_parameters = 1};
	const struct hr_model_sample *first;
	size_t longest;

	if (to.list == NULL)
		return -ENOMEM;
	if (s->n == 0)
		goto done;
	first = line_longest(s, parameter, &longest);
	for (size_t i = 0; i < s->n; i++) {
		const struct hr_model_sample *at = &s->list[i];
		struct hr_model_sample point;
		bool known = false;

		for (size_t k = 0; k < to.n; k++)
			known = known || to.list[k].x[0] == at->x[parameter];
		if (known || line_count(s, at, parameter) != longest)
			continue;
		point = line_point(s, parameter, at->x[parameter], first->x[parameter], longest);
		if (point.n > 0)
			to.list[to.n++] = point;
	}
done:
	*ret = to;
	return 0;
}

size_t hr_model_samples_count(const struct hr_model_samples *s, unsigned parameter, double *values,
			      size_t *n)
{
	const struct hr_model_sample *first;
	size_t longest = 0, room = *n;

	*n = 0;
	if (s->n == 0)
		return 0;
	first = line_longest(s, parameter, &longest);
	for (size_t i = 0; i < s->n && *n < room; i++)
		if (is_same_line(s, first, &s->list[i], parameter))
			values[(*n)++] = s->list[i].x[parameter];
	hr_doubles_sort(values, *n);
	return longest;
}
