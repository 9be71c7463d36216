/* SPDX-License-Identifier: Apache-2.0 */
#include "model/search.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "model/search_internal.h"
#include "model/solve.h"

#define CONSTANT_LEAST 0.0005 /* a smaller constant, relative to the smallest value, counts as 0 */

void hr__model_add_error(struct hr_model *m, double predicted, double actual, size_t n)
{
	double difference = predicted - actual, sum = fabs(actual) + fabs(predicted);

	m->rss += difference * difference;
	if (sum != 0)
		m->smape += fabs(difference) / sum * 2 / (double)n * 100;
}

struct hr_model hr__model_constant(const struct hr_model_samples *s)
{
	struct hr_model m = {.adjusted_r2 = 1};
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->list[i].mean;
	m.function.coefficients[0] = sum / (double)s->n;
	for (size_t i = 0; i < s->n; i++)
		hr__model_add_error(&m, m.function.coefficients[0], s->list[i].mean, s->n);
	return m;
}

/* What the search for one term needs: the term and the value of each point, and room for both. */
struct fit {
	size_t n;
	double *term, *value;
	double *matrix, *right; /* of the points that are not left out */
};

static int fit_init(struct fit *f, size_t n)
{
	double *room = calloc(5 * n + 1, sizeof(*room));

	if (room == NULL)
		return -ENOMEM;
	*f = (struct fit){n, room, room + n, room + 2 * n, room + 4 * n};
	return 0;
}

/* Fits c0 + c1 * term to all points but `left_out` (n: to all). */
static bool fit_solve(const struct fit *f, size_t left_out, double c[2], double *ret_least)
{
	size_t rows = left_out < f->n ? f->n - 1 : f->n, row = 0;
	struct hr_solution solution;

	*ret_least = INFINITY;
	for (size_t i = 0; i < f->n; i++) {
		if (i == left_out)
			continue;
		f->matrix[row] = 1;
		f->matrix[rows + row] = f->term[i];
		f->right[row++] = f->value[i];
		*ret_least = fmin(*ret_least, f->value[i]);
	}
	if (!hr_solve(f->matrix, f->right, rows, 2, DBL_EPSILON * (double)rows, &solution))
		return false;
	c[0] = solution.x[0];
	c[1] = solution.x[1];
	return true;
}

/* Tries one term. False: the term cannot describe the points. */
static bool term_try(const struct hr_model_samples *s, const struct fit *f, struct hr_term term,
		     double spread, struct hr_model *ret)
{
	struct hr_model m = {.function.form = {.n_products = 1, .products = {1}, .terms = {term}}};
	double c[2], least, n = (double)f->n;

	for (size_t i = 0; i < f->n; i++) {
		if (!fit_solve(f, i, c, &least))
			return false;
		if (fabs(least == 0 ? c[0] : c[0] / least) < CONSTANT_LEAST)
			c[0] = 0;
		hr__model_add_error(&m, c[0] + c[1] * f->term[i], f->value[i], f->n);
	}
	if (!fit_solve(f, f->n, c, &least) || !isfinite(m.rss))
		return false;
	m.function.coefficients[0] = c[0];
	m.function.coefficients[1] = c[1];
	m.adjusted_r2 = 1 - m.rss / spread * (n - 1) / (n - 2);
	*ret = m;
	return hr__model_is_whole(&m, s);
}

static int search_one(const struct hr_model_samples *s, enum hr_space space, struct hr_model *ret)
{
	struct hr_term terms[HR_TERMS_MOST];
	struct hr_model best = hr__model_constant(s);
	double spread = best.rss;
	struct hr_model m;
	size_t n_terms = hr_space_terms(space, terms);
	bool logs = true;
	struct fit f;

	if (spread == 0) {
		*ret = best;
		return 0;
	}
	if (fit_init(&f, s->n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		f.value[i] = s->list[i].mean;
		logs = logs && hr_space_log_allowed(space, s->list[i].x[0]);
	}
	for (size_t k = 0; k < n_terms; k++) {
		if (terms[k].log != 0 && !logs)
			continue;
		for (size_t i = 0; i < s->n; i++)
			f.term[i] = hr_term_value(terms[k], s->list[i].x[0]);
		if (term_try(s, &f, terms[k], spread, &m) && m.smape < best.smape)
			best = m;
	}
	free(f.term);
	*ret = best;
	return 0;
}

int hr_search(const struct hr_model_samples *s, enum hr_space space, struct hr_model *ret)
{
	struct hr_model lines[HR_MODEL_PARAMETERS];
	int r = 0;

	if (s->n_parameters == 1)
		return search_one(s, space, ret);
	for (unsigned i = 0; i < s->n_parameters && r == 0; i++) {
		struct hr_model_samples line;

		r = hr_model_samples_line(s, i, &line);
		if (r < 0)
			break;
		r = search_one(&line, space, &lines[i]);
		hr_model_samples_done(&line);
	}
	return r < 0 ? r : hr__search_several(s, lines, ret);
}
