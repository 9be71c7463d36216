/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/model.h"
#include "cli/sheet.h"
#include "common/text.h"
#include "model/outliers.h"
#include "model/scaling.h"

#define FORMULA_BYTES 512u
#define FORMULA_CELLS 48 /* of a formula in the list of forms */
#define DIGITS	      3	 /* significant digits of formulas and values */
#define FORMS_SHOWN   5u
#define FORM_LEAST    0.005 /* probability of a form in the list */
#define TREND_LEAST   0.02  /* a smaller change counts as none */

struct number {
	char s[32];
};

/* Returns a number with DIGITS significant digits, without an exponent if it is not too long. */
static struct number number_text(double v)
{
	struct number text;
	double size = fabs(v);
	int digits = DIGITS - 1;

	snprintf(text.s, sizeof(text.s), "%.*e", DIGITS - 1,
		 v); /* rounds, so that 0.9999 is 1.00 */
	if (isfinite(v))
		digits -= (int)strtol(strchr(text.s, 'e') + 1, NULL, 10);

	if (size != 0 && (size < 1e-3 || size >= 1e7))
		snprintf(text.s, sizeof(text.s), "%.*g", DIGITS, v);
	else if (size == 0)
		snprintf(text.s, sizeof(text.s), "0");
	else
		snprintf(text.s, sizeof(text.s), "%.*f", digits > 0 ? digits : 0, v);
	return text;
}

/*
 * Writes a function. Leaves out a constant part that only rounding makes different from 0: less
 * than 1e-12 of the largest value.
 */
static void formula_text(const struct hr_model_answer *a, const struct hr_function *f,
			 char to[FORMULA_BYTES])
{
	struct hr_function shown = *f;
	double most = 0;

	for (size_t i = 0; i < a->samples.n; i++)
		most = fmax(most, fabs(a->samples.list[i].mean));
	if (fabs(shown.coefficients[0]) < 1e-12 * most)
		shown.coefficients[0] = 0;
	hr_function_text(&shown, a->names, DIGITS, to, FORMULA_BYTES);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* Writes "256 ranks", or "ranks=256, workers=8". */
static void point_text(const struct hr_model_answer *a, const double *x, char *to, size_t bytes)
{
	size_t at = 0;

	if (a->axes.n == 1) {
		snprintf(to, bytes, "%g %s", x[0], a->names[0]);
		return;
	}
	for (unsigned i = 0; i < a->axes.n && at < bytes; i++)
		at += (size_t)snprintf(to + at, bytes - at, "%s%s=%g", i > 0 ? ", " : "",
				       a->names[i], x[i]);
}

enum trend { TREND_CONSTANT, TREND_FLAT, TREND_GROWS, TREND_SHRINKS };

static const char *const trend_words[] = {"stays at", "hardly changes:", "grows as", "shrinks as"};

/* Returns what the most probable form does from the smallest point to the largest one. */
static enum trend trend_of(const struct hr_model_answer *a)
{
	const struct hr_function *f = &a->forecast.candidates[0].function;
	double first[HR_MODEL_PARAMETERS], last[HR_MODEL_PARAMETERS], from, to;

	if (f->form.n_products == 0)
		return TREND_CONSTANT;
	for (unsigned k = 0; k < a->axes.n; k++) {
		first[k] = last[k] = a->at[k];
		for (size_t i = 0; i < a->samples.n; i++) {
			first[k] = fmin(first[k], a->samples.list[i].x[k]);
			last[k] = fmax(last[k], a->samples.list[i].x[k]);
		}
	}
	from = hr_function_value(f, first);
	to = hr_function_value(f, last);
	if (fabs(to - from) <= TREND_LEAST * fabs(from))
		return TREND_FLAT;
	return to > from ? TREND_GROWS : TREND_SHRINKS;
}

char *hr_model_sentence(const struct hr_model_answer *a)
{
	const struct hr_forecast *f = &a->forecast;
	char formula[FORMULA_BYTES], point[FORMULA_BYTES], doubt[128] = "", *text;
	const char *trend, *unit = hr_model_unit(a->series);
	int n;

	if (f->n == 0)
		return NULL;
	trend = trend_words[trend_of(a)];
	formula_text(a, &f->candidates[0].function, formula);
	point_text(a, a->at, point, sizeof(point));
	if (f->n_equal == 2)
		snprintf(doubt, sizeof(doubt), ", or as another form that fits about as well");
	else if (f->n_equal > 2)
		snprintf(doubt, sizeof(doubt),
			 ", or as one of %zu other forms that fit about as well", f->n_equal - 1);
	n = asprintf(&text, "%s %s: %s %s%s; at %s %s%s (%s to %s)", a->series->region,
		     a->series->metric, trend, formula, doubt, point, number_text(f->value).s, unit,
		     number_text(f->low).s, number_text(f->high).s);
	return n < 0 ? NULL : text;
}

static void answer_say(struct hr_sheet *p, const struct hr_model_answer *a)
{
	char *text = hr_model_sentence(a);

	if (text != NULL)
		hr_sheet_say(p, HR_STYLE_BOLD, 2, "-", "%s", text);
	free(text);
}

/* ---- details --------------------------------------------------------------------------------- */

/* Prints a row of the forms. `value` NULL: the row has none. */
static void form_print(struct hr_sheet *p, double probability, int cells, const char *form,
		       const char *value)
{
	hr_sheet_line(p, HR_STYLE_PLAIN, "  %9.0f %%  %-*s%s%s", 100 * probability, cells, form,
		      value != NULL ? "  " : "", value != NULL ? value : "");
}

static void forms_print(struct hr_sheet *p, const struct hr_model_answer *a)
{
	const struct hr_forecast *f = &a->forecast;
	size_t n = 0;
	char formulas[FORMS_SHOWN][FORMULA_BYTES], point[FORMULA_BYTES];
	double rest = 1;
	int cells = 0;

	for (; n < f->n && n < FORMS_SHOWN && f->candidates[n].probability >= FORM_LEAST; n++) {
		formula_text(a, &f->candidates[n].function, formulas[n]);
		cells = (int)fmax(cells, (double)hr_text_cells(formulas[n]));
	}
	point_text(a, a->at, point, sizeof(point));
	hr_sheet_line(p, HR_STYLE_PLAIN, "  probability  %-*s  at %s", cells, "form", point);
	for (size_t i = 0; i < n; i++) {
		form_print(p, f->candidates[i].probability, cells, formulas[i],
			   number_text(f->candidates[i].predicted).s);
		rest -= f->candidates[i].probability;
	}
	if (rest >= FORM_LEAST)
		form_print(p, rest, 0, "all other forms", NULL);
}

static void outliers_print(struct hr_sheet *p, const struct hr_model_answer *a)
{
	double limit = hr_outliers_limit(&a->samples);

	for (size_t i = 0; i < a->samples.n; i++) {
		const struct hr_model_sample *s = &a->samples.list[i];
		double median = hr_model_sample_median(s);
		char point[FORMULA_BYTES];

		point_text(a, s->x, point, sizeof(point));
		for (size_t k = 0; k < s->n; k++)
			if (hr_outlier_is(s, median, s->values[k], limit))
				hr_sheet_say(p, HR_STYLE_WARN, 2, "",
					     "outlier at %s: %s, but the median of %zu repetitions "
					     "is %s; the prediction ignores it",
					     point, number_text(s->values[k]).s, s->n,
					     number_text(median).s);
	}
}

static int sample_compare(const void *a, const void *b)
{
	const struct hr_model_sample *x = a, *y = b;

	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		if (x->x[i] != y->x[i])
			return x->x[i] < y->x[i] ? -1 : 1;
	return 0;
}

static void point_print(struct hr_sheet *p, const struct hr_model_answers *all,
			const struct hr_model_answer *a, const struct hr_model_sample *s,
			const struct hr_model_sample *base)
{
	struct hr_scaling scaling =
	    hr_scaling_at(s->mean, s->x[0], base->mean, base->x[0], all->cores);

	for (unsigned i = 0; i < a->axes.n; i++) {
		size_t cells = hr_text_cells(a->names[i]);

		hr_sheet_put(p, HR_STYLE_PLAIN, "  %*g", cells > 8 ? (int)cells : 8, s->x[i]);
	}
	hr_sheet_put(p, HR_STYLE_PLAIN, "  %10s  %10s  %11zu", number_text(s->mean).s,
		     number_text(hr_function_value(&a->model.function, s->x)).s, s->n);
	if (hr_model_has_scaling(a))
		hr_sheet_put(p, HR_STYLE_PLAIN, "  %8s  %10s  %10s", number_text(scaling.speedup).s,
			     number_text(scaling.efficiency).s, number_text(scaling.cost).s);
	hr_sheet_end(p);
}

static void points_print(struct hr_sheet *p, const struct hr_model_answers *all,
			 const struct hr_model_answer *a)
{
	struct hr_model_sample *sorted = calloc(a->samples.n + 1, sizeof(*sorted));

	if (sorted == NULL)
		return;
	memcpy(sorted, a->samples.list, a->samples.n * sizeof(*sorted));
	qsort(sorted, a->samples.n, sizeof(*sorted), sample_compare);
	for (unsigned i = 0; i < a->axes.n; i++)
		hr_sheet_put(p, HR_STYLE_PLAIN, "  %8s", a->names[i]);
	hr_sheet_put(p, HR_STYLE_PLAIN, "  %10s  %10s  %11s", "measured", "formula", "repetitions");
	if (hr_model_has_scaling(a))
		hr_sheet_put(p, HR_STYLE_PLAIN, "  %8s  %10s  %10s", "saved %", "efficient %",
			     "cost");
	hr_sheet_end(p);
	for (size_t i = 0; i < a->samples.n; i++)
		point_print(p, all, a, &sorted[i], hr_scaling_baseline(&a->samples));
	free(sorted);
}

static void fit_print(struct hr_sheet *p, const struct hr_model_answers *all,
		      const struct hr_model_answer *a)
{
	char formula[FORMULA_BYTES];
	const char *note = "";

	formula_text(a, &a->model.function, formula);
	if (!hr_form_equal(&a->model.function.form, &a->forecast.candidates[0].function.form))
		note = "; with the noise of the repetitions, another form is more probable";
	hr_sheet_say(p, HR_STYLE_PLAIN, 2, "",
		     "Extra-P's formula: %s (adjusted R2 %.4f, SMAPE %.2g %%)%s", formula,
		     a->model.adjusted_r2, a->model.smape, note);
	if (!isnan(a->forecast.noise))
		hr_sheet_say(p, HR_STYLE_PLAIN, 2, "",
			     "the repetitions of a point differ by %.2g %% (standard deviation)",
			     100 * a->forecast.noise);
	if (a->forecast.misfit)
		hr_sheet_say(p, HR_STYLE_WARN, 2, "",
			     "no form fits the points as well as the repetitions fit each other: "
			     "the range comes from the differences to the forms");
	if (all->space != HR_SPACE_NEGATIVE && trend_of(a) == TREND_SHRINKS)
		hr_sheet_say(p, HR_STYLE_WARN, 2, "",
			     "the values shrink, but the terms grow: use --space negative");
	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		if (a->axes.fixed[i])
			hr_sheet_say(p, HR_STYLE_PLAIN, 2, "", "only points with %s=%g",
				     a->all_names[i], a->axes.values[i]);
}

static void details_print(struct hr_sheet *p, const struct hr_model_answers *all,
			  const struct hr_model_answer *a)
{
	if (a->forecast.n == 0)
		return;
	hr_sheet_end(p);
	hr_sheet_line(p, HR_STYLE_BOLD, "%s %s", a->series->region, a->series->metric);
	fit_print(p, all, a);
	outliers_print(p, a);
	forms_print(p, a);
	points_print(p, all, a);
}

void hr_model_print_text(const struct hr_model_answers *a, FILE *out)
{
	struct hr_sheet p;

	hr_sheet_init(&p, out);
	for (size_t i = 0; i < a->n; i++)
		answer_say(&p, &a->list[i]);
	for (size_t i = 0; i < a->n; i++)
		details_print(&p, a, &a->list[i]);
}
