/* SPDX-License-Identifier: Apache-2.0 */
/* search_internal.h - what searches with one parameter and with several share; pure functions */
#ifndef HEADRACE_MODEL_SEARCH_INTERNAL_H
#define HEADRACE_MODEL_SEARCH_INTERNAL_H

#include "model/search.h"

#define HR_SEARCH_LEAST 0.0005 /* share of the values that a product must have at a point */

/* Adds the error of a predicted value to rss, and to smape with the weight 1/n. */
void hr__model_add_error(struct hr_model *m, double predicted, double actual, size_t n);

/* Returns the model "mean of all samples". */
struct hr_model hr__model_constant(const struct hr_model_samples *s);

/*
 * Whether each product has a share of at least HR_SEARCH_LEAST of the value at some sample. A share
 * that is NaN counts, as in numpy.
 */
bool hr__model_is_whole(const struct hr_model *m, const struct hr_model_samples *s);

/*
 * Finds the model of samples with two or three parameters. `lines` are the models of each
 * parameter along its longest lines. Returns 0 or -ENOMEM.
 */
int hr__search_several(const struct hr_model_samples *s, const struct hr_model *lines,
		       struct hr_model *ret);

/* The forms that combine the terms of two or three parameters, in Extra-P's order. */
struct hr__combination {
	unsigned n_products;
	/* bit i: parameter i of those that have a term */
	uint8_t products[HR_PRODUCTS_MOST];
};
size_t hr__combinations(unsigned n_parameters, const struct hr__combination **ret);

/* Makes the form of a combination. `parameters`: the indexes of those that have a term. */
struct hr_form hr__form_make(const struct hr__combination *c, const unsigned *parameters,
			     const struct hr_term terms[HR_MODEL_PARAMETERS]);

#endif
