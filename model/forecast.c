/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forecast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "model/forecast_internal.h"
#include "model/outliers.h"

#define MISFIT_TIMES	10.0
#define PRECISION	1e-9 /* relative: values are not more precise than this */
#define WEIGHT_LEAST	1e-7 /* of the largest node; smaller ones are left out */
#define CANDIDATE_LEAST 0.001
#define SLICES		5u

/* The normal distribution in SLICES slices of equal probability: the middle of each. */
static const double slice_middles[SLICES] = {-1.2816, -0.5244, 0, 0.5244, 1.2816};

/* ---- evidence -------------------------------------------------------------------------------- */

/* Takes one sample without its outliers. */
static void evidence_take(struct hr__evidence *e, const struct hr_model_sample *s, double limit,
			  size_t i)
{
	double median = s->values != NULL ? hr_model_sample_median(s) : 0, sum = 0, square = 0;
	size_t n = 0;

	for (size_t k = 0; s->values != NULL && k < s->n; k++) {
		if (hr_outlier_is(s, median, s->values[k], limit))
			continue;
		sum += s->values[k];
		n++;
	}
	e->mean[i] = n > 0 ? sum / (double)n : s->mean;
	for (size_t k = 0; n > 0 && k < s->n; k++)
		if (!hr_outlier_is(s, median, s->values[k], limit))
			square += (s->values[k] - e->mean[i]) * (s->values[k] - e->mean[i]);
	e->weight[i] = n > 0 ? (double)n : (double)s->n;
	e->within += e->mean[i] != 0 ? square / (e->mean[i] * e->mean[i]) : 0;
	e->n_values += n > 0 ? (double)n : 1;
}

/*
 * Lowers the weights so that the variance of a mean includes `usual`, which repetitions do not
 * lower.
 */
static void evidence_add_usual(struct hr__evidence *e, const struct hr_model_samples *s)
{
	double noise = e->noise * e->noise, usual = s->usual * s->usual;

	if (!(noise > 0) || usual == 0)
		return;
	for (size_t i = 0; i < e->n; i++)
		e->weight[i] *= noise / (noise + usual * (double)s->list[i].n);
}

int hr__evidence_init(const struct hr_model_samples *s, enum hr_space space,
		      struct hr__evidence *ret)
{
	struct hr__evidence e = {.n = s->n};
	double limit = hr_outliers_limit(s);
	size_t positive = 0, negative = 0;

	e.x = calloc(s->n + 1, sizeof(*e.x));
	e.mean = calloc(2 * s->n + 1, sizeof(*e.mean));
	e.weight = e.mean != NULL ? e.mean + s->n : NULL;
	*ret = e;
	if (e.x == NULL || e.mean == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		evidence_take(&e, &s->list[i], limit, i);
		for (unsigned k = 0; k < s->n_parameters; k++) {
			e.x[i][k] = s->list[i].x[k];
			e.logs[k] = (i == 0 || e.logs[k]) && hr_space_log_allowed(space, e.x[i][k]);
		}
		e.scale += fabs(e.mean[i]) / (double)s->n;
		positive += e.mean[i] > 0;
		negative += e.mean[i] < 0;
	}
	e.one_sign = positive == s->n || negative == s->n;
	e.scale = e.scale > 0 ? e.scale : 1;
	for (size_t i = 0; i < s->n; i++)
		e.weight[i] /= e.one_sign ? e.mean[i] * e.mean[i] : e.scale * e.scale;
	e.noise = e.n_values > (double)s->n ? sqrt(e.within / (e.n_values - (double)s->n)) : NAN;
	e.within += e.n_values * PRECISION * PRECISION;
	evidence_add_usual(&e, s);
	*ret = e;
	return 0;
}

void hr__evidence_done(struct hr__evidence *e)
{
	free(e->x);
	free(e->mean);
}

void hr__evidence_check(struct hr__evidence *e, double between, unsigned unknowns)
{
	double points = (double)e->n, noise = e->within / (e->n_values - points);

	if (e->n_values <= points || points <= unknowns ||
	    between / (points - unknowns) <= MISFIT_TIMES * noise)
		return;
	e->misfit = true;
	e->within = points * PRECISION * PRECISION;
	e->n_values = points;
}

double hr__term_prior(struct hr_term term)
{
	double power = fabs((double)term.numerator / term.denominator);

	return -0.5 * power - 0.4 * abs(term.log) - 0.4 * (term.denominator - 1);
}

/* ---- mixture --------------------------------------------------------------------------------- */

int hr__mixture_node(struct hr__mixture *m, double log_weight, double value, double scale)
{
	if (!isfinite(log_weight) || !isfinite(value) || !isfinite(scale))
		return 0;
	if (!hr_array_reserve(m->nodes, m->n, m->room))
		return -ENOMEM;
	m->nodes[m->n++] = (struct hr__node){log_weight, value, scale, m->n_candidates - 1};
	return 0;
}

int hr__mixture_candidate(struct hr__mixture *m, const struct hr_function *f, const double *x)
{
	if (!hr_array_reserve(m->candidates, m->n_candidates, m->candidates_room))
		return -ENOMEM;
	m->candidates[m->n_candidates++] =
	    (struct hr_candidate){.function = *f, .predicted = hr_function_value(f, x)};
	return 0;
}

/* Turns logarithms into weights, drops tiny ones, and adds up the candidates' probabilities. */
static void mixture_normalise(struct hr__mixture *m)
{
	double most = -INFINITY, sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		most = fmax(most, m->nodes[i].weight);
	for (size_t i = 0; i < m->n; i++) {
		struct hr__node node = m->nodes[i];

		node.weight = exp(node.weight - most);
		if (node.weight < WEIGHT_LEAST)
			continue;
		sum += node.weight;
		m->nodes[n++] = node;
	}
	m->n = n;
	for (size_t i = 0; i < n; i++) {
		m->nodes[i].weight /= sum;
		m->candidates[m->nodes[i].candidate].probability += m->nodes[i].weight;
	}
}

struct slice {
	double value, weight;
};

static int slice_compare(const void *a, const void *b)
{
	double x = ((const struct slice *)a)->value, y = ((const struct slice *)b)->value;

	return (x > y) - (x < y);
}

/* Returns the value below which the slices have this weight. */
static double slices_quantile(const struct slice *s, size_t n, double weight)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += s[i].weight;
		if (sum >= weight)
			return s[i].value;
	}
	return n > 0 ? s[n - 1].value : NAN;
}

static int mixture_quantiles(const struct hr__mixture *m, struct hr_forecast *ret)
{
	struct slice *slices = calloc(m->n * SLICES + 1, sizeof(*slices));
	size_t n = 0;

	if (slices == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++)
		for (unsigned k = 0; k < SLICES; k++)
			slices[n++] =
			    (struct slice){m->nodes[i].value + slice_middles[k] * m->nodes[i].scale,
					   m->nodes[i].weight / SLICES};
	qsort(slices, n, sizeof(*slices), slice_compare);
	ret->low = slices_quantile(slices, n, 0.05);
	ret->value = slices_quantile(slices, n, 0.5);
	ret->high = slices_quantile(slices, n, 0.95);
	free(slices);
	return 0;
}

static int candidate_compare(const void *a, const void *b)
{
	double x = ((const struct hr_candidate *)a)->probability,
	       y = ((const struct hr_candidate *)b)->probability;

	return (x < y) - (x > y);
}

/* ---- forecast -------------------------------------------------------------------------------- */

/* Values that are all positive stay positive. */
static void forecast_clip(const struct hr__evidence *e, struct hr_forecast *f)
{
	if (!e->one_sign || e->n == 0 || e->mean[0] < 0)
		return;
	f->low = fmax(f->low, 0);
	f->value = fmax(f->value, 0);
	f->high = fmax(f->high, 0);
}

static int forecast_fill(struct hr__evidence *e, struct hr__mixture *m, struct hr_forecast *f)
{
	mixture_normalise(m);
	if (mixture_quantiles(m, f) < 0)
		return -ENOMEM;
	forecast_clip(e, f);
	f->noise = e->noise;
	f->misfit = e->misfit;
	qsort(m->candidates, m->n_candidates, sizeof(*m->candidates), candidate_compare);
	while (f->n < m->n_candidates && m->candidates[f->n].probability >= CANDIDATE_LEAST)
		f->n++;
	while (f->n_equal < f->n && m->candidates[f->n_equal].probability >=
					HR_FORECAST_EQUAL * m->candidates[0].probability)
		f->n_equal++;
	f->candidates = m->candidates;
	m->candidates = NULL;
	return 0;
}

int hr_forecast_init(const struct hr_model_samples *s, enum hr_space space, const double *x,
		     struct hr_forecast *ret)
{
	struct hr_forecast f = {0};
	struct hr__mixture m = {0};
	struct hr__evidence e;
	int r = hr__evidence_init(s, space, &e);

	if (r == 0 && s->n_parameters == 1 && e.one_sign)
		r = hr__shares_add(&e, space, x[0], &m);
	else if (r == 0)
		r = hr__linear_add(&e, s, space, x, &m);
	if (r == 0)
		r = forecast_fill(&e, &m, &f);
	if (r == 0)
		*ret = f;
	free(m.nodes);
	free(m.candidates);
	hr__evidence_done(&e);
	return r;
}

void hr_forecast_done(struct hr_forecast *f)
{
	free(f->candidates);
	*f = (struct hr_forecast){0};
}
