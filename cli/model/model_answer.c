/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/model.h"
#include "common/array.h"
#include "common/near.h"
#include "common/text.h"

#define AT_MOST	     1e15 /* of a parameter: no term of it is infinite */
#define AT_TIMES     4.0  /* without --at: this times the largest value */
#define VALUES_SHOWN 10u

/* ---- options that name parameters ------------------------------------------------------------ */

/* The parameters of the model, and the point that --at names, by the index in the measurements. */
struct plan {
	struct hr_axes axes;
	bool at_given[HR_MODEL_PARAMETERS];
	double at[HR_MODEL_PARAMETERS];
};

/* Finds a parameter, and reports a wrong name. Returns its index or -1. */
static int parameter_find(const struct hr_measurements *m, const char *option, const char *name)
{
	struct hr_near near = hr_near(name);
	size_t label =
	    strncmp(name, HR_MODEL_LABEL, strlen(HR_MODEL_LABEL)) == 0 ? strlen(HR_MODEL_LABEL) : 0;

	for (unsigned i = 0; i < m->n_parameters; i++) {
		if (strcmp(m->parameters[i], name) == 0 ||
		    strcmp(m->parameters[i], name + label) == 0)
			return (int)i;
		hr_near_add(&near, m->parameters[i]);
	}
	hr_report("--%s: the measurements have no parameter %s", option, hr_near_text(&near).s);
	return -1;
}

static int over_take(const struct hr_measurements *m, char *name, struct plan *plan)
{
	int i = parameter_find(m, "over", name);

	if (i < 0)
		return -1;
	for (unsigned k = 0; k < plan->axes.n; k++)
		if (plan->axes.parameters[k] == (unsigned)i)
			return hr_option_wrong("over", "different parameters", name);
	plan->axes.parameters[plan->axes.n++] = (unsigned)i;
	return 0;
}

static int at_take(const struct hr_measurements *m, char *word, struct plan *plan)
{
	char *value = strchr(word, '='), *end;
	double number;
	int i;

	if (value == NULL)
		return hr_option_wrong("at", "NAME=VALUE", word);
	*value++ = '\0';
	i = parameter_find(m, "at", word);
	if (i < 0)
		return -1;
	number = strtod(value, &end);
	if (end == value || *end != '\0' || !(number >= 0 && number <= AT_MOST))
		return hr_option_wrong("at", "NAME=VALUE, with a number from 0 to 1e15", value);
	plan->at[i] = number;
	plan->at_given[i] = true;
	return 0;
}

/* Calls `take` for each word of a list with commas. Returns 0 or -1. */
static int list_take(const struct hr_measurements *m, const char *list, struct plan *plan,
		     int (*take)(const struct hr_measurements *, char *, struct plan *))
{
	char *text = strdup(list), *rest = text, *word;
	int r = text != NULL ? 0 : -1;

	while (r == 0 && (word = strsep(&rest, ",")) != NULL)
		r = take(m, word, plan);
	free(text);
	return r;
}

/* Whether a parameter has several values in some selected series. */
static bool parameter_varies(const struct hr_measurements *m, const struct hr_model_request *r,
			     unsigned parameter)
{
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 1; k < m->series[i].n && hr_model_selects(r, &m->series[i]); k++)
			if (m->series[i].points[k].at[parameter] !=
			    m->series[i].points[0].at[parameter])
				return true;
	return false;
}

/* Returns 0, or -1 after a report. */
static int plan_make(const struct hr_measurements *m, const struct hr_model_request *r,
		     struct plan *plan)
{
	if (r->over != NULL && list_take(m, r->over, plan, over_take) < 0)
		return -1;
	for (unsigned i = 0; i < m->n_parameters && r->over == NULL; i++)
		if (parameter_varies(m, r, i))
			plan->axes.parameters[plan->axes.n++] = i;
	if (plan->axes.n == 0 && m->n_parameters > 0) /* reported later: it has one value */
		plan->axes.parameters[plan->axes.n++] = 0;
	if (r->at != NULL && list_take(m, r->at, plan, at_take) < 0)
		return -1;
	for (unsigned i = 0; i < m->n_parameters; i++) {
		bool axis = false;

		for (unsigned k = 0; k < plan->axes.n; k++)
			axis = axis || plan->axes.parameters[k] == i;
		plan->axes.fixed[i] = plan->at_given[i] && !axis;
		plan->axes.values[i] = plan->at[i];
	}
	return 0;
}

/* ---- one series ------------------------------------------------------------------------------ */

bool hr_model_selects(const struct hr_model_request *r, const struct hr_series *s)
{
	return (r->region == NULL || fnmatch(r->region, s->region, 0) == 0) &&
	       (r->metric == NULL || fnmatch(r->metric, s->metric, 0) == 0);
}

const char *hr_model_unit(const struct hr_series *s)
{
	static const char *const units[][2] = {
	    {"_s", " s"}, {"_ms", " ms"}, {"_us", " us"}, {"_ns", " ns"}, {"_bytes", " B"}};
	size_t n = strlen(s->metric);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t k = strlen(units[i][0]);

		if (n > k && strcmp(s->metric + n - k, units[i][0]) == 0)
			return units[i][1];
	}
	return "";
}

bool hr_model_is_time(const struct hr_series *s)
{
	return strchr(hr_model_unit(s), 's') != NULL || strcmp(s->metric, "time") == 0 ||
	       strcmp(s->metric, "runtime") == 0;
}

bool hr_model_has_scaling(const struct hr_model_answer *a)
{
	static const char *const names[] = {"ranks", "nodes",	  "p",	  "P",
					    "procs", "processes", "gpus", "cores"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(a->names[0], names[i]) == 0)
			return hr_model_is_time(a->series);
	return false;
}

/* Returns why an axis has too few points (malloc'ed), or NULL: it has enough. */
static char *axis_short(const struct hr_model_answer *a, unsigned axis)
{
	double values[VALUES_SHOWN];
	size_t n = HR_MODEL_LEAST, found = hr_model_samples_count(&a->samples, axis, values, &n),
	       size;
	const char *others =
	    a->samples.n_parameters > 1 ? " at the same values of the other parameters" : "";
	char *text = NULL;
	FILE *out;

	if (found >= HR_MODEL_LEAST)
		return NULL;
	out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	fprintf(out, "%u values of %s%s are needed, and the measurements have %zu", HR_MODEL_LEAST,
		a->names[axis], others, found);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%g", i == 0 ? ": " : ", ", values[i]);
	fclose(out);
	return text;
}

/* Sets the point of the forecast. */
static void point_set(const struct plan *plan, struct hr_model_answer *a)
{
	for (unsigned k = 0; k < a->axes.n; k++) {
		unsigned parameter = a->axes.parameters[k];
		bool any = false;
		double most = 0;

		for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
			any = any || plan->at_given[i];
		for (size_t i = 0; i < a->samples.n; i++)
			most = fmax(most, a->samples.list[i].x[k]);
		a->at[k] = any ? most : AT_TIMES * most;
		if (plan->at_given[parameter])
			a->at[k] = plan->at[parameter];
	}
}

/* Models one series. Returns 0; 1: it has too few points; -ENOMEM. */
/* Of values that are never negative, neither is the prediction. */
static void range_limit(struct hr_model_answer *a)
{
	for (size_t i = 0; i < a->samples.n; i++)
		if (a->samples.list[i].mean < 0)
			return;
	a->forecast.low = fmax(a->forecast.low, 0);
	a->forecast.value = fmax(a->forecast.value, 0);
	a->forecast.high = fmax(a->forecast.high, 0);
}

static int answer_make(const struct hr_model_input *input, const struct hr_model_request *r,
		       const struct plan *plan, struct hr_model_answers *to,
		       struct hr_model_answer *a)
{
	int result;

	a->axes = plan->axes;
	for (unsigned k = 0; k < a->axes.n; k++)
		a->names[k] = to->names[a->axes.parameters[k]];
	for (unsigned k = 0; k < to->n_names; k++)
		a->all_names[k] = to->names[k];
	result = hr_model_samples_take(a->series, &input->measurements, &a->axes, &a->samples);
	if (input->of_runs && hr_model_is_time(a->series))
		a->samples.usual = HR_FORECAST_USUAL;
	for (unsigned k = 0; k < a->axes.n && result == 0; k++) {
		char *reason = axis_short(a, k);

		if (reason == NULL)
			continue;
		result = 1;
		if (to->short_series++ == 0)
			to->short_reason = reason;
		else
			free(reason);
	}
	if (result == 0)
		result = hr_search(&a->samples, r->space, &a->model);
	point_set(plan, a);
	if (result == 0)
		result = hr_forecast_init(&a->samples, r->space, a->at, &a->forecast);
	if (result == 0 && a->forecast.n == 0) {
		if (to->short_series++ == 0)
			to->short_reason =
			    strdup("its values are too large or too small, or have no parameter");
		return 1;
	}
	if (result == 0)
		range_limit(a);
	return result;
}

static void answer_done(struct hr_model_answer *a)
{
	hr_model_samples_done(&a->samples);
	hr_forecast_done(&a->forecast);
}

/* ---- all series ------------------------------------------------------------------------------ */

static int answer_compare(const void *left, const void *right)
{
	const struct hr_model_answer *a = left, *b = right;

	if (hr_model_is_time(a->series) != hr_model_is_time(b->series))
		return hr_model_is_time(a->series) ? -1 : 1;
	if (a->forecast.value != b->forecast.value)
		return a->forecast.value < b->forecast.value ? 1 : -1;
	return a->series < b->series ? -1 : a->series > b->series;
}

static int names_take(const struct hr_measurements *m, struct hr_model_answers *to)
{
	for (; to->n_names < m->n_parameters; to->n_names++) {
		const char *name = m->parameters[to->n_names];

		to->names[to->n_names] = hr_text_escaped(name, strlen(name));
		if (to->names[to->n_names] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int series_answer(const struct hr_model_input *input, const struct hr_model_request *r,
			 const struct plan *plan, struct hr_model_answers *to)
{
	const struct hr_measurements *m = &input->measurements;
	int result = 0;

	for (size_t i = 0; i < m->n && result >= 0; i++) {
		struct hr_model_answer a = {.series = &m->series[i]};

		if (!hr_model_selects(r, a.series))
			continue;
		result = hr_array_reserve(to->list, to->n, to->room)
			     ? answer_make(input, r, plan, to, &a)
			     : -ENOMEM;
		if (result == 0)
			to->list[to->n++] = a;
		else
			answer_done(&a);
	}
	return result < 0 ? result : 0;
}

int hr_model_answer(const struct hr_model_input *input, const struct hr_model_request *r,
		    struct hr_model_answers *ret)
{
	struct plan plan = {0};

	*ret = (struct hr_model_answers){.cores = r->cores, .space = r->space};
	if (plan_make(&input->measurements, r, &plan) < 0)
		return HR_EXIT_USAGE;
	if (names_take(&input->measurements, ret) < 0 || series_answer(input, r, &plan, ret) < 0) {
		hr_report("cannot model: %s", strerrordesc_np(ENOMEM));
		return EXIT_FAILURE;
	}
	if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(*ret->list), answer_compare);
	if (ret->n == 0 && ret->short_reason != NULL)
		hr_report("cannot model: %s" HR_HINT
			  "measure at more points; three repetitions of each show the noise",
			  ret->short_reason);
	else if (ret->n == 0)
		hr_report("cannot model: no region and metric that --region and --metric select");
	else if (ret->short_series > 0)
		hr_report("no model of %zu region%s or metric%s: %s", ret->short_series,
			  ret->short_series == 1 ? "" : "s", ret->short_series == 1 ? "" : "s",
			  ret->short_reason != NULL ? ret->short_reason : "too few points");
	return ret->n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void hr_model_answers_done(struct hr_model_answers *a)
{
	for (size_t i = 0; i < a->n; i++)
		answer_done(&a->list[i]);
	free(a->list);
	for (unsigned i = 0; i < a->n_names; i++)
		free(a->names[i]);
	free(a->short_reason);
}
