/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terms.h - terms x^(i/d) * log2(x)^j, the search spaces of Extra-P, and functions made of terms
 *
 * Pure functions.
 */
#ifndef HEADRACE_MODEL_TERMS_H
#define HEADRACE_MODEL_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/points.h"

#define HR_TERMS_MOST	 84u
#define HR_PRODUCTS_MOST HR_MODEL_PARAMETERS

struct hr_term {
	int8_t numerator, denominator; /* the exponent of x */
	int8_t log;		       /* the exponent of log2(x) */
};

enum hr_space {
	HR_SPACE_DEFAULT,  /* 42 terms that grow */
	HR_SPACE_NEGATIVE, /* also 42 that shrink, for strong scaling */
	HR_SPACE_NO_LOGS,  /* the 19 terms of HR_SPACE_DEFAULT without a logarithm */
};

/* Stores the terms in Extra-P's order: of two that fit equally well, it takes the first one. */
size_t hr_space_terms(enum hr_space space, struct hr_term ret[HR_TERMS_MOST]);

/* Whether a space may use logarithms at x: from 1 on; with negative exponents above 1. */
bool hr_space_log_allowed(enum hr_space space, double x);

double hr_term_value(struct hr_term term, double x);

/*
 * The form c0 + c1 * product1 + c2 * product2 ...: a product is a set of parameters (bit i:
 * parameter i), and multiplies their terms. Without products: a constant.
 */
struct hr_form {
	unsigned n_products;
	uint8_t products[HR_PRODUCTS_MOST];
	struct hr_term terms[HR_MODEL_PARAMETERS];
};

struct hr_function {
	struct hr_form form;
	double coefficients[HR_PRODUCTS_MOST + 1];
};

/* Returns the value of a product, without its coefficient. */
double hr_form_product(const struct hr_form *form, unsigned product, const double *x);

double hr_function_value(const struct hr_function *f, const double *x);

/* Returns the number of factors in all products, which is what Extra-P counts as their size. */
unsigned hr_form_factors(const struct hr_form *form);

bool hr_form_equal(const struct hr_form *a, const struct hr_form *b);

/*
 * Writes a function for people, such as "5.01 + 0.293 x ranks^(1/2)", at most `bytes` with the NUL.
 * `names` are the names of the parameters. Numbers have `digits` significant digits. A constant part
 * of 0 is left out.
 */
void hr_function_text(const struct hr_function *f, const char *const *names, int digits, char *to,
		      size_t bytes);

/* Writes the products without coefficients: "ranks^(1/2)"; "constant" if there are none. */
void hr_form_text(const struct hr_form *f, const char *const *names, char *to, size_t bytes);

#endif
