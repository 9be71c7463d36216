/* SPDX-License-Identifier: Apache-2.0 */
#include "model/terms.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off: one line for each exponent */
static const struct hr_term space_grows[] = {
    {0, 1, 1}, {0, 1, 2}, {1, 4, 0}, {1, 3, 0}, {1, 4, 1},  {1, 3, 1}, {1, 4, 2},
    {1, 3, 2}, {1, 2, 0}, {1, 2, 1}, {1, 2, 2}, {2, 3, 0},  {3, 4, 0}, {2, 3, 1},
    {3, 4, 1}, {4, 5, 0}, {2, 3, 2}, {3, 4, 2}, {1, 1, 0},  {1, 1, 1}, {1, 1, 2},
    {5, 4, 0}, {5, 4, 1}, {4, 3, 0}, {4, 3, 1}, {3, 2, 0},  {3, 2, 1}, {3, 2, 2},
    {5, 3, 0}, {7, 4, 0}, {2, 1, 0}, {2, 1, 1}, {2, 1, 2},  {9, 4, 0}, {7, 3, 0},
    {5, 2, 0}, {5, 2, 1}, {5, 2, 2}, {8, 3, 0}, {11, 4, 0}, {3, 1, 0}, {3, 1, 1},
};
/* clang-format on */

#define GROWS (sizeof(space_grows) / sizeof(space_grows[0]))

/* Adds the terms with a logarithm, or those without, as their reciprocals if `negative`. */
static size_t terms_add(struct hr_term *to, size_t n, bool logs, bool plain, bool negative)
{
	for (size_t i = 0; i < GROWS; i++) {
		struct hr_term t = space_grows[i];

		if (t.log != 0 ? !logs : !plain)
			continue;
		if (negative) {
			t.numerator = (int8_t)-t.numerator;
			t.log = (int8_t)-t.log;
		}
		to[n++] = t;
	}
	return n;
}

size_t hr_space_terms(enum hr_space space, struct hr_term ret[HR_TERMS_MOST])
{
	size_t n = terms_add(ret, 0, space != HR_SPACE_NO_LOGS, true, false);

	if (space == HR_SPACE_NEGATIVE) {
		n = terms_add(ret, n, true, false, true);
		n = terms_add(ret, n, false, true, true);
	}
	return n;
}

bool hr_space_log_allowed(enum hr_space space, double x)
{
	return space == HR_SPACE_NEGATIVE ? x > 1 : x >= 1;
}

double hr_term_value(struct hr_term term, double x)
{
	double value = 1;

	if (term.numerator != 0)
		value *= pow(x, (double)term.numerator / term.denominator);
	if (term.log != 0)
		value *= pow(log2(x), term.log);
	return value;
}

double hr_form_product(const struct hr_form *form, unsigned product, const double *x)
{
	double value = 1;

	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		if (form->products[product] >> i & 1)
			value *= hr_term_value(form->terms[i], x[i]);
	return value;
}

double hr_function_value(const struct hr_function *f, const double *x)
{
	double value = f->coefficients[0];

	for (unsigned i = 0; i < f->form.n_products; i++)
		value += f->coefficients[i + 1] * hr_form_product(&f->form, i, x);
	return value;
}

unsigned hr_form_factors(const struct hr_form *form)
{
	unsigned n = 0;

	for (unsigned i = 0; i < form->n_products; i++)
		n += (unsigned)__builtin_popcount(form->products[i]);
	return n;
}

static uint8_t form_parameters(const struct hr_form *form)
{
	uint8_t all = 0;

	for (unsigned i = 0; i < form->n_products; i++)
		all |= form->products[i];
	return all;
}

bool hr_form_equal(const struct hr_form *a, const struct hr_form *b)
{
	uint8_t used = form_parameters(a);

	if (a->n_products != b->n_products || memcmp(a->products, b->products, a->n_products) != 0)
		return false;
	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		if ((used >> i & 1) && memcmp(&a->terms[i], &b->terms[i], sizeof(a->terms[i])) != 0)
			return false;
	return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

struct text {
	char *to;
	size_t bytes, n;
};

__attribute__((format(printf, 2, 3))) static void text_add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	if (t->n >= t->bytes)
		return;
	va_start(args, format);
	n = vsnprintf(t->to + t->n, t->bytes - t->n, format, args);
	va_end(args);
	t->n += n > 0 ? (size_t)n : 0;
}

/* Adds "^2" or "^(1/2)"; nothing for 1. */
static void exponent_add(struct text *t, int numerator, int denominator)
{
	if (denominator != 1)
		text_add(t, "^(%d/%d)", numerator, denominator);
	else if (numerator < 0)
		text_add(t, "^(%d)", numerator);
	else if (numerator != 1)
		text_add(t, "^%d", numerator);
}

static void term_add(struct text *t, struct hr_term term, const char *name)
{
	if (term.numerator != 0) {
		text_add(t, "%s", name);
		exponent_add(t, term.numerator, term.denominator);
	}
	if (term.log != 0) {
		text_add(t, "%slog2(%s)", term.numerator != 0 ? " x " : "", name);
		exponent_add(t, term.log, 1);
	}
}

static void product_add(struct text *t, const struct hr_form *f, unsigned product,
			const char *const *names)
{
	const char *between = "";

	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++) {
		if (!(f->products[product] >> i & 1))
			continue;
		text_add(t, "%s", between);
		term_add(t, f->terms[i], names[i]);
		between = " x ";
	}
}

void hr_function_text(const struct hr_function *f, const char *const *names, int digits, char *to,
		      size_t bytes)
{
	struct text t = {.to = to, .bytes = bytes};
	bool first = f->coefficients[0] == 0 && f->form.n_products > 0;

	text_add(&t, "%s", "");
	if (!first)
		text_add(&t, "%.*g", digits, f->coefficients[0]);
	for (unsigned i = 0; i < f->form.n_products; i++) {
		double c = f->coefficients[i + 1];

		if (first)
			text_add(&t, "%.*g x ", digits, c);
		else
			text_add(&t, " %c %.*g x ", c < 0 ? '-' : '+', digits, fabs(c));
		product_add(&t, &f->form, i, names);
		first = false;
	}
}

void hr_form_text(const struct hr_form *f, const char *const *names, char *to, size_t bytes)
{
	struct text t = {.to = to, .bytes = bytes};

	text_add(&t, "%s", f->n_products == 0 ? "constant" : "");
	for (unsigned i = 0; i < f->n_products; i++) {
		text_add(&t, "%s", i > 0 ? " + " : "");
		product_add(&t, f, i, names);
	}
}
