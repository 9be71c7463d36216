/* SPDX-License-Identifier: Apache-2.0 */
/* The answers for programs: JSON and CSV. Numbers read back as the same value. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/model/model.h"
#include "common/text.h"
#include "model/outliers.h"
#include "model/scaling.h"

#define FORMULA_BYTES 512u
#define DIGITS	      17

static void number_put(struct hr_json *j, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*g", DIGITS, value);
	if (isfinite(value))
		hr_json_raw(j, key, text);
	else
		hr_json_null(j, key);
}

/* Puts the parts of a function: its coefficients, and the terms of each product. */
static void function_put(struct hr_json *j, const struct hr_model_answer *a,
			 const struct hr_function *f)
{
	char formula[FORMULA_BYTES];

	hr_function_text(f, a->names, 6, formula, sizeof(formula));
	hr_json_string(j, "formula", formula);
	hr_json_array(j, "coefficients");
	for (unsigned i = 0; i <= f->form.n_products; i++)
		number_put(j, NULL, f->coefficients[i]);
	hr_json_end(j);
	hr_json_array(j, "products");
	for (unsigned i = 0; i < f->form.n_products; i++) {
		hr_json_array(j, NULL);
		for (unsigned k = 0; k < a->axes.n; k++) {
			const struct hr_term *t = &f->form.terms[k];

			if (!(f->form.products[i] >> k & 1))
				continue;
			hr_json_object(j, NULL);
			hr_json_string(j, "parameter", a->names[k]);
			hr_json_int(j, "numerator", t->numerator);
			hr_json_int(j, "denominator", t->denominator);
			hr_json_int(j, "log2", t->log);
			hr_json_end(j);
		}
		hr_json_end(j);
	}
	hr_json_end(j);
}

static void at_put(struct hr_json *j, const struct hr_model_answer *a, const double *x)
{
	hr_json_object(j, "at");
	for (unsigned k = 0; k < a->axes.n; k++)
		number_put(j, a->names[k], x[k]);
	hr_json_end(j);
}

static void forecast_put(struct hr_json *j, const struct hr_model_answer *a)
{
	const struct hr_forecast *f = &a->forecast;

	hr_json_object(j, "prediction");
	at_put(j, a, a->at);
	number_put(j, "value", f->value);
	number_put(j, "low", f->low);
	number_put(j, "high", f->high);
	hr_json_double(j, "probability", 0.9);
	hr_json_end(j);
	number_put(j, "noise", f->noise);
	hr_json_bool(j, "misfit", f->misfit);
	hr_json_uint(j, "forms_that_fit", f->n_equal);
	for (size_t i = 0; hr_json_row(j, "forms", i, f->n); i++) {
		function_put(j, a, &f->candidates[i].function);
		hr_json_double(j, "probability", f->candidates[i].probability);
		number_put(j, "predicted", f->candidates[i].predicted);
	}
}

static void point_put(struct hr_json *j, const struct hr_model_answers *all,
		      const struct hr_model_answer *a, const struct hr_model_sample *s,
		      double limit)
{
	const struct hr_model_sample *base = hr_scaling_baseline(&a->samples);
	struct hr_scaling scaling =
	    hr_scaling_at(s->mean, s->x[0], base->mean, base->x[0], all->cores);
	double median = hr_model_sample_median(s);

	at_put(j, a, s->x);
	number_put(j, "measured", s->mean);
	number_put(j, "formula", hr_function_value(&a->model.function, s->x));
	hr_json_uint(j, "repetitions", s->n);
	hr_json_array(j, "outliers");
	for (size_t k = 0; k < s->n; k++)
		if (hr_outlier_is(s, median, s->values[k], limit))
			number_put(j, NULL, s->values[k]);
	hr_json_end(j);
	if (hr_model_has_scaling(a)) {
		number_put(j, "speedup_percent", scaling.speedup);
		number_put(j, "efficiency_percent", scaling.efficiency);
		number_put(j, "cost", scaling.cost);
	}
}

static void answer_put(struct hr_json *j, const struct hr_model_answers *all,
		       const struct hr_model_answer *a)
{
	double limit = hr_outliers_limit(&a->samples);

	hr_json_path(j, "region", a->series->region, strlen(a->series->region));
	hr_json_path(j, "metric", a->series->metric, strlen(a->series->metric));
	function_put(j, a, &a->model.function);
	number_put(j, "adjusted_r2", a->model.adjusted_r2);
	number_put(j, "smape", a->model.smape);
	number_put(j, "rss", a->model.rss);
	forecast_put(j, a);
	for (size_t i = 0; hr_json_row(j, "points", i, a->samples.n); i++)
		point_put(j, all, a, &a->samples.list[i], limit);
}

void hr_model_print_json(const struct hr_model_answers *a, FILE *out)
{
	struct hr_json j;

	hr_json_init(&j, out);
	hr_json_document(&j, "headrace-model/1");
	for (size_t i = 0; hr_json_row(&j, "models", i, a->n); i++)
		answer_put(&j, a, &a->list[i]);
	hr_json_end(&j);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void field_put(FILE *out, const char *text)
{
	char *shown = hr_text_escaped(text, strlen(text));

	putc('"', out);
	for (const char *p = shown; p != NULL && *p != '\0'; p++) {
		if (*p == '"')
			putc('"', out);
		putc(*p, out);
	}
	fputs("\",", out);
	free(shown);
}

void hr_model_print_csv(const struct hr_model_answers *a, FILE *out)
{
	char text[FORMULA_BYTES];

	fputs("region,metric,formula,form,at,adjusted_r2,smape,value,low,high,forms_that_fit\n",
	      out);
	for (size_t i = 0; i < a->n; i++) {
		const struct hr_model_answer *answer = &a->list[i];
		const struct hr_forecast *f = &answer->forecast;
		size_t at = 0;

		field_put(out, answer->series->region);
		field_put(out, answer->series->metric);
		hr_function_text(&answer->model.function, answer->names, 6, text, sizeof(text));
		field_put(out, text);
		hr_form_text(&answer->model.function.form, answer->names, text, sizeof(text));
		field_put(out, text);
		for (unsigned k = 0; k < answer->axes.n && at < sizeof(text); k++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s=%g",
					       k > 0 ? " " : "", answer->names[k], answer->at[k]);
		field_put(out, text);
		fprintf(out, "%.*g,%.*g,%.*g,%.*g,%.*g,%zu\n", DIGITS, answer->model.adjusted_r2,
			DIGITS, answer->model.smape, DIGITS, f->value, DIGITS, f->low, DIGITS,
			f->high, f->n_equal);
	}
}
