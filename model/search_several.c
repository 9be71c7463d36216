/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "model/search_internal.h"
#include "model/solve.h"

#define A   1u
#define B   2u
#define C   4u
#define AB  3u
#define BC  6u
#define AC  5u
#define ABC 7u

/* clang-format off: one line for each kind */
static const struct hr__combination of_two[] = {
    {1, {AB}},
    {2, {A, B}},
    {2, {A, AB}},
    {2, {B, AB}},
};
static const struct hr__combination of_three[] = {
    {1, {ABC}},	       {3, {A, B, C}},	 {2, {ABC, A}},	   {2, {ABC, B}},     {2, {ABC, C}},
    {2, {ABC, AB}},    {2, {ABC, BC}},	 {2, {ABC, AC}},   {3, {ABC, AB, C}}, {3, {ABC, BC, A}},
    {3, {ABC, AC, B}}, {3, {ABC, A, B}}, {3, {ABC, A, C}}, {3, {ABC, B, C}},  {2, {AB, C}},
    {3, {AB, C, B}},   {3, {AB, C, A}},	 {2, {AC, B}},	   {3, {AC, B, A}},   {3, {AC, B, C}},
    {2, {BC, A}},      {3, {BC, A, B}},	 {3, {BC, A, C}},
};
/* clang-format on */

size_t hr__combinations(unsigned n_parameters, const struct hr__combination **ret)
{
	*ret = n_parameters == 2 ? of_two : of_three;
	return n_parameters == 2 ? sizeof(of_two) / sizeof(of_two[0])
				 : sizeof(of_three) / sizeof(of_three[0]);
}

struct hr_form hr__form_make(const struct hr__combination *c, const unsigned *parameters,
			     const struct hr_term terms[HR_MODEL_PARAMETERS])
{
	struct hr_form form = {.n_products = c->n_products};

	for (unsigned i = 0; i < c->n_products; i++)
		for (unsigned k = 0; k < HR_MODEL_PARAMETERS; k++)
			if (c->products[i] >> k & 1)
				form.products[i] |= (uint8_t)(1u << parameters[k]);
	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		form.terms[i] = terms[i];
	return form;
}

/* Computes the errors of a function at all samples. */
static void model_measure(struct hr_model *m, const struct hr_model_samples *s, double spread)
{
	double n = (double)s->n;

	m->rss = m->smape = 0;
	for (size_t i = 0; i < s->n; i++)
		hr__model_add_error(m, hr_function_value(&m->function, s->list[i].x),
				    s->list[i].mean, s->n);
	m->adjusted_r2 =
	    1 - m->rss / spread * (n - 1) / (n - 1 - hr_form_factors(&m->function.form));
}

/* Fits a form to all samples. `room` is for 5 * s->n numbers. Returns false: it cannot be fitted. */
static bool model_fit(struct hr_model *m, const struct hr_model_samples *s, double *room)
{
	struct hr_function *f = &m->function;
	struct hr_solution solution;
	double *right = room + HR_SOLVE_COLUMNS * s->n;

	for (size_t i = 0; i < s->n; i++) {
		room[i] = 1;
		for (unsigned k = 0; k < f->form.n_products; k++)
			room[(k + 1) * s->n + i] = hr_form_product(&f->form, k, s->list[i].x);
		right[i] = s->list[i].mean;
	}
	if (!hr_solve(room, right, s->n, f->form.n_products + 1, DBL_EPSILON, &solution))
		return false;
	for (unsigned k = 0; k <= f->form.n_products; k++)
		f->coefficients[k] = solution.x[k];
	return true;
}

bool hr__model_is_whole(const struct hr_model *m, const struct hr_model_samples *s)
{
	const struct hr_function *f = &m->function;

	for (unsigned k = 0; k < f->form.n_products; k++) {
		double most = 0;

		for (size_t i = 0; i < s->n && !isnan(most); i++) {
			double share =
			    fabs(f->coefficients[k + 1] *
				 hr_form_product(&f->form, k, s->list[i].x) / s->list[i].mean);

			most = isnan(share) ? share : fmax(most, share);
		}
		if (f->coefficients[k + 1] == 0 || most < HR_SEARCH_LEAST)
			return false;
	}
	return true;
}

/* Only one parameter matters: keeps its function, unless one that is fitted to all is better. */
static void several_with_one(const struct hr_model_samples *s, const struct hr_model *line,
			     unsigned parameter, double spread, double *room, struct hr_model *ret)
{
	struct hr_model kept = {0}, fitted;

	kept.function = line->function;
	kept.function.form.products[0] = (uint8_t)(1u << parameter);
	kept.function.form.terms[parameter] = line->function.form.terms[0];
	fitted = kept;
	model_measure(&kept, s, spread);
	*ret = kept;
	if (!model_fit(&fitted, s, room))
		return;
	model_measure(&fitted, s, spread);
	if (fitted.smape < kept.smape)
		*ret = fitted;
}

static void several_with_more(const struct hr_model_samples *s, const unsigned *parameters,
			      unsigned n, const struct hr_term *terms, double spread, double *room,
			      struct hr_model *ret)
{
	const struct hr__combination *list;
	size_t n_list = hr__combinations(n, &list);

	for (size_t i = 0; i < n_list; i++) {
		struct hr_model m = {.function.form = hr__form_make(&list[i], parameters, terms)};

		if (!model_fit(&m, s, room))
			continue;
		model_measure(&m, s, spread);
		if (i == 0 || (hr__model_is_whole(&m, s) && m.smape < ret->smape))
			*ret = m;
	}
}

int hr__search_several(const struct hr_model_samples *s, const struct hr_model *lines,
		       struct hr_model *ret)
{
	double *room = calloc((HR_SOLVE_COLUMNS + 1) * s->n + 1, sizeof(*room));
	struct hr_model constant = hr__model_constant(s);
	double spread = constant.rss; /* the squared differences to the mean */
	struct hr_term terms[HR_MODEL_PARAMETERS] = {{0, 1, 0}, {0, 1, 0}, {0, 1, 0}};
	unsigned parameters[HR_MODEL_PARAMETERS] = {0}, n = 0;

	if (room == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < s->n_parameters; i++) {
		if (lines[i].function.form.n_products == 0)
			continue;
		terms[i] = lines[i].function.form.terms[0];
		parameters[n++] = i;
	}
	*ret = constant;
	if (n == 1)
		several_with_one(s, &lines[parameters[0]], parameters[0], spread, room, ret);
	else if (n > 1)
		several_with_more(s, parameters, n, terms, spread, room, ret);
	free(room);
	return 0;
}
