/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several parameters, or values of both signs: each form is fitted by weighted least squares, and
 * its coefficients are normally distributed. Products are divided by their largest value, and
 * coefficients by the mean of all values, so that each coefficient is about between 0 and 1.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "model/forecast_internal.h"
#include "model/search_internal.h"
#include "model/solve.h"

/* Terms of each parameter that forms with several parameters combine: the most probable ones. */
#define TERMS_OF_TWO   20u
#define TERMS_OF_THREE 6u

struct linear_form {
	struct hr_form form;
	double prior;
	double largest[HR_PRODUCTS_MOST];
	struct hr_solution solution;
	double between;
};

struct linear {
	struct linear_form *list;
	size_t n, room;
	double *matrix; /* room for one form */
};

/* ---- one form -------------------------------------------------------------------------------- */

static void row_fill(const struct linear_form *f, const double *x, double scale, double *row)
{
	row[0] = scale;
	for (unsigned k = 0; k < f->form.n_products; k++)
		row[k + 1] = scale * hr_form_product(&f->form, k, x) / f->largest[k];
}

static bool largest_fill(const struct hr__evidence *e, struct linear_form *f)
{
	for (unsigned k = 0; k < f->form.n_products; k++) {
		f->largest[k] = 0;
		for (size_t i = 0; i < e->n; i++)
			f->largest[k] =
			    fmax(f->largest[k], fabs(hr_form_product(&f->form, k, e->x[i])));
		if (!(f->largest[k] > 0) || !isfinite(f->largest[k]))
			return false;
	}
	return true;
}

/* Returns the squared differences of the fitted form to the means. */
static double form_between(const struct hr__evidence *e, const struct linear_form *f)
{
	double sum = 0, row[HR_SOLVE_COLUMNS];

	for (size_t i = 0; i < e->n; i++) {
		double d = e->mean[i];

		row_fill(f, e->x[i], e->scale, row);
		for (unsigned k = 0; k <= f->form.n_products; k++)
			d -= row[k] * f->solution.x[k];
		sum += e->weight[i] * d * d;
	}
	return sum;
}

/* Fits a form, and adds it to the list if that is possible. Returns 0 or -ENOMEM. */
static int form_add(const struct hr__evidence *e, const struct hr_form *form, double prior,
		    struct linear *to)
{
	struct linear_form f = {.form = *form, .prior = prior};
	unsigned columns = form->n_products + 1;
	double row[HR_SOLVE_COLUMNS], *right = to->matrix + HR_SOLVE_COLUMNS * e->n;

	if (!largest_fill(e, &f) || columns >= e->n)
		return 0;
	for (size_t i = 0; i < e->n; i++) {
		double root = sqrt(e->weight[i]);

		row_fill(&f, e->x[i], e->scale, row);
		for (unsigned k = 0; k < columns; k++)
			to->matrix[k * e->n + i] = root * row[k];
		right[i] = root * e->mean[i];
	}
	if (!hr_solve(to->matrix, right, e->n, columns, 1e-10, &f.solution) ||
	    f.solution.rank < columns)
		return 0;
	f.between = form_between(e, &f);
	if (!hr_array_reserve(to->list, to->n, to->room))
		return -ENOMEM;
	to->list[to->n++] = f;
	return 0;
}

/* Returns the logarithm of the probability of a form with the data, up to a constant. */
static double form_weight(const struct hr__evidence *e, const struct linear_form *f)
{
	double unknowns = f->form.n_products + 1, degrees = e->n_values - unknowns;
	double weight = f->prior - degrees / 2 * log(f->between + e->within) -
			0.5 * hr_solution_log_determinant(&f->solution) + unknowns / 2 * log(M_PI) +
			lgamma(degrees / 2);

	for (unsigned k = 0; e->one_sign && k <= f->form.n_products; k++)
		if (f->solution.x[k] * e->mean[0] < 0)
			weight += log(HR_PRIOR_NEGATIVE);
	return weight;
}

static struct hr_function form_function(const struct hr__evidence *e, const struct linear_form *f)
{
	struct hr_function function = {.form = f->form};

	function.coefficients[0] = f->solution.x[0] * e->scale;
	for (unsigned k = 0; k < f->form.n_products; k++)
		function.coefficients[k + 1] = f->solution.x[k + 1] * e->scale / f->largest[k];
	return function;
}

static int node_add(const struct hr__evidence *e, const struct linear_form *f, const double *x,
		    struct hr__mixture *to)
{
	struct hr_function function = form_function(e, f);
	double degrees = e->n_values - f->form.n_products - 1, row[HR_SOLVE_COLUMNS], noise;

	if (hr__mixture_candidate(to, &function, x) < 0)
		return -ENOMEM;
	row_fill(f, x, e->scale, row);
	noise = (f->between + e->within) / (degrees > 3 ? degrees - 2 : 1);
	return hr__mixture_node(to, form_weight(e, f), hr_function_value(&function, x),
				sqrt(noise * hr_solution_variance(&f->solution, row)));
}

/* ---- all forms ------------------------------------------------------------------------------- */

/* Adds a form for each term of one parameter. Returns 0 or -ENOMEM. */
static int forms_of_one(const struct hr__evidence *e, unsigned parameter,
			const struct hr_term *terms, size_t n, struct linear *to)
{
	struct hr_form form = {.n_products = 1, .products = {(uint8_t)(1u << parameter)}};
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		form.terms[parameter] = terms[i];
		if (e->logs[parameter] || terms[i].log == 0)
			r = form_add(e, &form, hr__term_prior(terms[i]), to);
	}
	return r;
}

static void linear_done(struct linear *l)
{
	free(l->list);
	free(l->matrix);
}

static int linear_init(const struct hr__evidence *e, struct linear *l)
{
	*l = (struct linear){.matrix = calloc((HR_SOLVE_COLUMNS + 1) * e->n + 1, sizeof(double))};
	return l->matrix != NULL ? 0 : -ENOMEM;
}

/* Moves the most probable forms to the front, up to n. Returns their number. */
static size_t linear_choose(const struct hr__evidence *e, struct linear *l, size_t n)
{
	if (n > l->n)
		n = l->n;
	for (size_t i = 0; i < n; i++) {
		size_t best = i;
		struct linear_form kept = l->list[i];

		for (size_t k = i + 1; k < l->n; k++)
			if (form_weight(e, &l->list[k]) > form_weight(e, &l->list[best]))
				best = k;
		l->list[i] = l->list[best];
		l->list[best] = kept;
	}
	return n;
}

/* Finds the most probable terms of a parameter along its longest lines. Returns 0 or -ENOMEM. */
static int terms_choose(const struct hr_model_samples *s, unsigned parameter, enum hr_space space,
			struct hr_term *to, size_t *n)
{
	struct hr_term terms[HR_TERMS_MOST];
	struct hr_model_samples line;
	struct hr__evidence e;
	struct linear l = {0};
	int r = hr_model_samples_line(s, parameter, &line);

	if (r < 0)
		return r;
	r = hr__evidence_init(&line, space, &e);
	if (r == 0)
		r = linear_init(&e, &l);
	if (r == 0)
		r = forms_of_one(&e, 0, terms, hr_space_terms(space, terms), &l);
	if (r == 0) {
		*n = linear_choose(&e, &l, *n);
		for (size_t i = 0; i < *n; i++)
			to[i] = l.list[i].form.terms[0];
	}
	linear_done(&l);
	hr__evidence_done(&e);
	hr_model_samples_done(&line);
	return r;
}

struct chosen {
	struct hr_term terms[HR_MODEL_PARAMETERS][TERMS_OF_TWO];
	size_t n[HR_MODEL_PARAMETERS];
};

/* Adds all combinations of chosen terms of these parameters (two or three). */
static int forms_combine(const struct hr__evidence *e, const unsigned *parameters, unsigned n,
			 const struct chosen *c, struct linear *to)
{
	const struct hr__combination *list;
	size_t n_list = hr__combinations(n, &list), total = 1;
	int r = 0;

	for (unsigned i = 0; i < n; i++)
		total *= c->n[parameters[i]];
	for (size_t number = 0; number < total; number++) {
		struct hr_term terms[HR_MODEL_PARAMETERS] = {{0, 1, 0}, {0, 1, 0}, {0, 1, 0}};
		double prior = -log((double)n_list);
		size_t rest = number;

		for (unsigned i = 0; i < n; i++) {
			unsigned k = parameters[i];

			terms[k] = c->terms[k][rest % c->n[k]];
			rest /= c->n[k];
			prior += hr__term_prior(terms[k]);
		}
		for (size_t i = 0; i < n_list && r == 0; i++) {
			struct hr_form form = hr__form_make(&list[i], parameters, terms);

			r = form_add(e, &form, prior, to);
		}
	}
	return r;
}

/* Adds the forms of samples with several parameters: of each one, of each pair, and of all three.
 */
static int forms_of_several(const struct hr__evidence *e, const struct hr_model_samples *s,
			    enum hr_space space, struct linear *to)
{
	static const unsigned sets[][HR_MODEL_PARAMETERS] = {
	    {0, 1, 2}, {1, 2, 0}, {0, 2, 1}}; /* the first two of each are the pairs */
	struct chosen c = {0};
	int r = 0;

	for (unsigned i = 0; i < s->n_parameters && r == 0; i++) {
		c.n[i] = s->n_parameters == 2 ? TERMS_OF_TWO : TERMS_OF_THREE;
		r = terms_choose(s, i, space, c.terms[i], &c.n[i]);
		if (r == 0)
			r = forms_of_one(e, i, c.terms[i], c.n[i], to);
	}
	for (unsigned i = 0; i < (s->n_parameters == 2 ? 1 : 3) && r == 0; i++)
		r = forms_combine(e, sets[i], 2, &c, to);
	if (r == 0 && s->n_parameters == 3)
		r = forms_combine(e, sets[0], 3, &c, to);
	return r;
}

int hr__linear_add(struct hr__evidence *e, const struct hr_model_samples *s, enum hr_space space,
		   const double *x, struct hr__mixture *to)
{
	struct hr_term terms[HR_TERMS_MOST];
	struct linear l;
	size_t best = 0;
	int r = linear_init(e, &l);

	if (r == 0)
		r = form_add(e, &(struct hr_form){0}, log(HR_PRIOR_CONSTANT), &l);
	if (r == 0 && s->n_parameters == 1)
		r = forms_of_one(e, 0, terms, hr_space_terms(space, terms), &l);
	else if (r == 0)
		r = forms_of_several(e, s, space, &l);
	for (size_t i = 1; i < l.n; i++)
		if (l.list[i].between < l.list[best].between)
			best = i;
	if (r == 0 && l.n > 0)
		hr__evidence_check(e, l.list[best].between, l.list[best].form.n_products + 1);
	for (size_t i = 0; i < l.n && r == 0; i++)
		r = node_add(e, &l.list[i], x, to);
	linear_done(&l);
	return r;
}
