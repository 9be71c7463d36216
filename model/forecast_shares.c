/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One parameter: the value is a * ((1 - s) + s * u), where u is the term, 1 at its largest measured
 * value, a is the value there, and s is the share of the term. A term that describes the cost of
 * something has a share between 0 and 1, each equally likely; other shares have a probability of
 * HR_PRIOR_NEGATIVE. The nodes are a grid over s: coarse over the whole range, and fine around the
 * best fit. For each s, a and the noise are integrated exactly.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/forecast_internal.h"
#include "common/order.h"

#define COARSE	    51u
#define FINE	    25u
#define FINE_REACH  5.0 /* standard deviations on both sides of the best fit */
#define RANGE_LOW   (-1.0)
#define RANGE_HIGH  1.5
#define RANGE_REACH 6.0

/* One term, fitted to the means. */
struct share_fit {
	struct hr_term term;
	double *u;	      /* the term at each point, at most 1 */
	double largest;	      /* the term's largest value */
	double c0, c1;	      /* of u */
	double between;	      /* weighted squared differences */
	double covariance[3]; /* of c0, of both, of c1, for noise 1 */
};

static void fit_measure(const struct hr__evidence *e, struct share_fit *f)
{
	f->between = 0;
	for (size_t i = 0; i < e->n; i++) {
		double d = e->mean[i] - f->c0 - f->c1 * f->u[i];

		f->between += e->weight[i] * d * d;
	}
}

/* Fits the term. Returns false if it is not finite, or about constant at the points. */
static bool fit_term(const struct hr__evidence *e, struct hr_term term, double *u,
		     struct share_fit *ret)
{
	struct share_fit f = {.term = term, .u = u};
	double w = 0, wu = 0, wuu = 0, wm = 0, wum = 0, determinant;

	if (term.log != 0 && !e->logs[0])
		return false;
	for (size_t i = 0; i < e->n; i++) {
		u[i] = hr_term_value(term, e->x[i][0]);
		f.largest = fmax(f.largest, fabs(u[i]));
		if (!isfinite(u[i]))
			return false;
	}
	for (size_t i = 0; i < e->n; i++) {
		u[i] /= f.largest > 0 ? f.largest : 1;
		w += e->weight[i];
		wu += e->weight[i] * u[i];
		wuu += e->weight[i] * u[i] * u[i];
		wm += e->weight[i] * e->mean[i];
		wum += e->weight[i] * u[i] * e->mean[i];
	}
	determinant = w * wuu - wu * wu;
	if (!(determinant > 1e-12 * w * wuu))
		return false;
	f.c1 = (w * wum - wu * wm) / determinant;
	f.c0 = (wm - f.c1 * wu) / w;
	f.covariance[0] = wuu / determinant;
	f.covariance[1] = -wu / determinant;
	f.covariance[2] = w / determinant;
	fit_measure(e, &f);
	*ret = f;
	return true;
}

/* Adds the node of a share, with the logarithm of its weight from the prior. */
static int node_add(const struct hr__evidence *e, const double *u, double s, double u_at,
		    double prior, struct hr__mixture *to)
{
	double wdd = 0, wmd = 0, rss = e->within, degrees = e->n_values - 1, a, scale;

	for (size_t i = 0; i < e->n; i++) {
		double d = 1 - s + s * u[i];

		if (d <= 0)
			return 0; /* a value with another sign than all means */
		wdd += e->weight[i] * d * d;
		wmd += e->weight[i] * d * e->mean[i];
	}
	a = wmd / wdd;
	for (size_t i = 0; i < e->n; i++) {
		double d = e->mean[i] - a * (1 - s + s * u[i]);

		rss += e->weight[i] * d * d;
	}
	scale = sqrt(rss / (degrees > 3 ? degrees - 2 : 1) / wdd);
	return hr__mixture_node(to, prior - degrees / 2 * log(rss) - 0.5 * log(wdd * a * a),
				a * (1 - s + s * u_at), scale * fabs(1 - s + s * u_at));
}

/* Fills the grid of shares, sorted. */
static void grid_fill(const struct hr__evidence *e, const struct share_fit *f,
		      double grid[COARSE + FINE])
{
	double a = f->c0 + f->c1, best = f->c1 / a, to_c0 = -f->c1 / (a * a),
	       to_c1 = f->c0 / (a * a);
	double variance = to_c0 * to_c0 * f->covariance[0] + 2 * to_c0 * to_c1 * f->covariance[1] +
			  to_c1 * to_c1 * f->covariance[2];
	double degrees = e->n_values > 3 ? e->n_values - 2 : 1;
	double deviation = sqrt(fmax(variance, 0) * (f->between + e->within) / degrees);
	double low, high;

	if (!isfinite(best) || !isfinite(deviation))
		best = deviation = 0;
	low = fmin(RANGE_LOW, best - RANGE_REACH * deviation);
	high = fmax(RANGE_HIGH, best + RANGE_REACH * deviation);
	for (unsigned i = 0; i < COARSE; i++)
		grid[i] = low + (high - low) * i / (COARSE - 1);
	for (unsigned i = 0; i < FINE; i++)
		grid[COARSE + i] = best + deviation * FINE_REACH * (2.0 * i / (FINE - 1) - 1);
	hr_doubles_sort(grid, COARSE + FINE);
}

/* Adds the nodes of a term. `prior`: the logarithm of its probability. */
static int term_add(const struct hr__evidence *e, const struct share_fit *f, double x, double prior,
		    struct hr__mixture *to)
{
	struct hr_function function = {
	    .form = {.n_products = 1, .products = {1}, .terms = {f->term}},
	    .coefficients = {f->c0, f->c1 / f->largest}};
	double u_at = hr_term_value(f->term, x) / f->largest, grid[COARSE + FINE];
	const unsigned last = COARSE + FINE - 1;
	int r = hr__mixture_candidate(to, &function, &x);

	grid_fill(e, f, grid);
	for (unsigned i = 0; i <= last && r == 0; i++) {
		double width = (grid[i < last ? i + 1 : i] - grid[i > 0 ? i - 1 : i]) / 2;
		double share = grid[i] >= 0 && grid[i] <= 1 ? 1 : HR_PRIOR_NEGATIVE;

		if (width > 0)
			r = node_add(e, f->u, grid[i], u_at, prior + log(width * share), to);
	}
	return r;
}

/* Adds the constant: one node. */
static int constant_add(const struct hr__evidence *e, double x, struct hr__mixture *to)
{
	struct hr_function constant = {0};
	double w = 0, wm = 0;

	for (size_t i = 0; i < e->n; i++) {
		w += e->weight[i];
		wm += e->weight[i] * e->mean[i];
	}
	constant.coefficients[0] = wm / w;
	if (hr__mixture_candidate(to, &constant, &x) < 0)
		return -ENOMEM;
	return node_add(e, e->mean, 0, 0, log(HR_PRIOR_CONSTANT), to);
}

int hr__shares_add(struct hr__evidence *e, enum hr_space space, double x, struct hr__mixture *to)
{
	struct hr_term terms[HR_TERMS_MOST];
	size_t n = hr_space_terms(space, terms), n_fits = 0;
	double *room = calloc(n * e->n + 1, sizeof(*room)), sum = 0, least = INFINITY;
	struct share_fit fits[HR_TERMS_MOST];
	int r;

	if (room == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!fit_term(e, terms[i], room + n_fits * e->n, &fits[n_fits]))
			continue;
		sum += exp(hr__term_prior(terms[i]));
		least = fmin(least, fits[n_fits++].between);
	}
	if (n_fits > 0)
		hr__evidence_check(e, least, 2);
	r = constant_add(e, x, to);
	for (size_t i = 0; i < n_fits && r == 0; i++)
		r = term_add(e, &fits[i], x,
			     log((1 - HR_PRIOR_CONSTANT) / sum) + hr__term_prior(fits[i].term), to);
	free(room);
	return r;
}
