/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `headrace model --page`, which page/pictures.ts of cli/report draws. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/model.h"
#include "cli/report/report_page.h"
#include "common/text.h"

#define CURVE_POINTS 32 /* of the predicted range */
#define PICTURES     40u

static void row_begin(struct hr_json *j, size_t picture, const char *kind, double x, double y)
{
	hr_json_object(j, NULL);
	hr_json_uint(j, "picture", picture);
	hr_json_string(j, "kind", kind);
	hr_json_double(j, "x", x);
	hr_json_double(j, "value", y);
}

static void put_measured(struct hr_json *j, size_t picture, const struct hr_model_answer *a)
{
	for (size_t i = 0; i < a->samples.n; i++) {
		const struct hr_model_sample *s = &a->samples.list[i];

		for (size_t k = 0; k < s->n; k++) {
			row_begin(j, picture, "measured", s->x[0], s->values[k]);
			hr_json_end(j);
		}
	}
}

/* The prediction and its range from the smallest point to the predicted one. 0 or -ENOMEM. */
static int put_predicted(struct hr_json *j, size_t picture, const struct hr_model_answer *a,
			 enum hr_space space)
{
	double from = a->at[0], to = a->at[0];

	for (size_t i = 0; i < a->samples.n; i++) {
		from = fmin(from, a->samples.list[i].x[0]);
		to = fmax(to, a->samples.list[i].x[0]);
	}
	for (int i = 0; i <= CURVE_POINTS; i++) {
		double part = (double)i / CURVE_POINTS;
		double x = from > 0 ? from * pow(to / from, part) : from + (to - from) * part;
		struct hr_forecast f;

		if (hr_forecast_init(&a->samples, space, &x, &f) < 0)
			return -ENOMEM;
		row_begin(j, picture, "predicted", x, f.value);
		hr_json_double(j, "low", f.low);
		hr_json_double(j, "high", f.high);
		hr_json_end(j);
		hr_forecast_done(&f);
	}
	return 0;
}

static void put_title(struct hr_json *j, size_t picture, const struct hr_model_answer *a)
{
	char *sentence = hr_model_sentence(a);

	hr_json_object(j, NULL);
	hr_json_uint(j, "picture", picture);
	hr_json_string(j, "title", sentence != NULL ? sentence : a->series->metric);
	hr_json_string(j, "parameter", a->names[0]);
	hr_json_string(j, "metric", a->series->metric);
	hr_json_double(j, "at", a->at[0]);
	hr_json_end(j);
	free(sentence);
}

/* Writes the data of the page. Returns the number of pictures, or -ENOMEM. */
static int put_data(const struct hr_model_answers *a, FILE *out)
{
	struct hr_json j;
	int r = 0, n = 0;

	hr_json_init(&j, out);
	hr_json_object(&j, NULL);
	hr_json_array(&j, "models");
	for (size_t i = 0; i < a->n && i < PICTURES && r == 0; i++) {
		if (a->list[i].axes.n != 1)
			continue;
		put_measured(&j, i, &a->list[i]);
		r = put_predicted(&j, i, &a->list[i], a->space);
		n++;
	}
	hr_json_end(&j);
	hr_json_array(&j, "model_titles");
	for (size_t i = 0; i < a->n && i < PICTURES; i++)
		if (a->list[i].axes.n == 1)
			put_title(&j, i, &a->list[i]);
	hr_json_end(&j);
	hr_json_end(&j);
	return r < 0 ? r : n;
}

int hr_model_page(const struct hr_model_answers *a, FILE *out)
{
	char *data = NULL, *head = NULL;
	const struct hr_model_answer *first = &a->list[0];
	size_t bytes;
	FILE *to = open_memstream(&data, &bytes);
	int n = to != NULL ? put_data(a, to) : -ENOMEM;
	int r = n < 0 ? n : n == 0 ? -EINVAL : 0;

	if (to != NULL && fclose(to) != 0)
		r = -ENOMEM;
	to = open_memstream(&head, &bytes);
	if (to == NULL)
		r = -ENOMEM;
	if (to != NULL) {
		fputs("<h1>How measurements grow with ", to);
		hr_report_page_html(to, first->names[0]);
		fprintf(to, ", and what they are at %g ", first->at[0]);
		hr_report_page_html(to, first->names[0]);
		fputs("</h1>", to);
		if (fclose(to) != 0)
			r = -ENOMEM;
	}
	if (r == 0)
		hr_report_page_write(&(struct hr_report_page){head, data}, "models", false, out);
	free(data);
	free(head);
	return r;
}
