/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/near.h"
#include "common/text.h"
#include "model/extrap_internal.h"

#define NUMBER_BYTES 64u
#define POINTS_MOST  (1u << 20) /* of a file */

struct text_file {
	struct hr__extrap_input *in;
	unsigned parameters[HR_MODEL_PARAMETERS]; /* those of the file, as indexes in `in->to` */
	unsigned n_parameters;
	double (*points)[HR_MODEL_PARAMETERS];
	size_t n_points, room;
	size_t next; /* the point of the next DATA line */
	char *region, *metric;
};

/* ---- words ----------------------------------------------------------------------------------- */

/* Takes the next word of [*at, end). Parentheses are words of their own if `points` is true. */
static bool word_take(const char **at, const char *end, bool points, const char **ret,
		      size_t *ret_n)
{
	const char *p = *at;

	while (p < end && isspace((unsigned char)*p))
		p++;
	*ret = p;
	if (points && p < end && (*p == '(' || *p == ')'))
		p++;
	else
		while (p < end && !isspace((unsigned char)*p) &&
		       !(points && (*p == '(' || *p == ')')))
			p++;
	*at = p;
	*ret_n = (size_t)(p - *ret);
	return *ret_n > 0;
}

/* Reads a decimal number. False: it is none, or not finite. */
static bool number_read(const char *word, size_t n, double *ret)
{
	char text[NUMBER_BYTES], *end;

	if (n >= sizeof(text) || memchr(word, 'x', n) != NULL || memchr(word, 'X', n) != NULL)
		return false;
	memcpy(text, word, n);
	text[n] = '\0';
	*ret = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*ret);
}

/* Returns the words of a text with one blank between them (malloc'ed). NULL: no memory. */
static char *words_join(const char *at, const char *end)
{
	char *to = malloc((size_t)(end - at) + 1);
	const char *word;
	size_t n, length = 0;

	while (to != NULL && word_take(&at, end, false, &word, &n)) {
		if (length > 0)
			to[length++] = ' ';
		memcpy(to + length, word, n);
		length += n;
	}
	if (to != NULL)
		to[length] = '\0';
	return to;
}

static int number_fail(const struct text_file *f, const char *word, size_t n)
{
	return hr__extrap_fail_word(f->in, "no finite number:", word, n, "");
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int parameter_read(struct text_file *f, const char *at, const char *end)
{
	const char *word;
	size_t n;

	if (f->n_points > 0)
		return hr__extrap_fail(f->in, "PARAMETER after POINTS");
	while (word_take(&at, end, false, &word, &n)) {
		int i = hr__extrap_parameter(f->in, word, n);

		if (i < 0)
			return i;
		for (unsigned k = 0; k < f->n_parameters; k++)
			if (f->parameters[k] == (unsigned)i)
				return hr__extrap_fail(f->in, "a parameter is there twice");
		f->parameters[f->n_parameters++] = (unsigned)i;
	}
	return 0;
}

static int point_add(struct text_file *f, const double *values)
{
	if (f->n_points == POINTS_MOST)
		return hr__extrap_fail(f->in, "more than %u points", POINTS_MOST);
	if (!hr_array_reserve(f->points, f->n_points, f->room))
		return -ENOMEM;
	memset(f->points[f->n_points], 0, sizeof(f->points[0]));
	for (unsigned i = 0; i < f->n_parameters; i++)
		f->points[f->n_points][f->parameters[i]] = values[i];
	f->n_points++;
	return 0;
}

/* Reads "(2 4) (2 8)"; with one parameter also "2 4". */
static int points_read(struct text_file *f, const char *at, const char *end)
{
	double values[HR_MODEL_PARAMETERS];
	bool open = false;
	unsigned got = 0;
	const char *word;
	size_t n;
	int r = f->n_parameters == 0 ? hr__extrap_fail(f->in, "POINTS before PARAMETER")
				     : hr__extrap_check(f->in, f->n_parameters);

	while (r == 0 && word_take(&at, end, true, &word, &n)) {
		if (*word == '(' && !open) {
			open = true;
		} else if (*word == ')' && open && got == f->n_parameters) {
			open = false;
			got = 0;
			r = point_add(f, values);
		} else if (*word == '(' || *word == ')' || got == f->n_parameters ||
			   (!open && f->n_parameters > 1)) {
			return hr__extrap_fail(f->in, "POINTS needs (%u number%s) for each point",
					       f->n_parameters, f->n_parameters == 1 ? "" : "s");
		} else if (!number_read(word, n, &values[got])) {
			return number_fail(f, word, n);
		} else if (open) {
			got++;
		} else {
			r = point_add(f, values);
		}
	}
	return r == 0 && open ? hr__extrap_fail(f->in, "no ) at the end of POINTS") : r;
}

static int data_read(struct text_file *f, const char *at, const char *end)
{
	const char *word, *region = f->region != NULL ? f->region : "";
	const char *metric = f->metric != NULL ? f->metric : "";
	bool any = false;
	size_t n;

	if (f->next == f->n_points)
		return hr__extrap_fail(f->in, "DATA number %zu of a region, but POINTS has %zu",
				       f->next + 1, f->n_points);
	while (word_take(&at, end, false, &word, &n)) {
		double value;
		int r;

		if (!number_read(word, n, &value))
			return number_fail(f, word, n);
		r = hr__extrap_add(f->in, region, metric, f->points[f->next], value);
		if (r < 0)
			return r;
		any = true;
	}
	f->next++;
	return any ? 0 : hr__extrap_fail(f->in, "DATA without a value");
}

static int name_read(struct text_file *f, char **to, const char *at, const char *end)
{
	char *name = words_join(at, end);

	if (name == NULL)
		return -ENOMEM;
	free(*to);
	*to = name;
	f->next = 0;
	return 0;
}

static bool is_field(const char *word, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(word, name, n) == 0;
}

static int line_read(struct text_file *f, const char *text, size_t bytes)
{
	const char *at = text, *end = text + bytes, *field;
	size_t n;

	if (!word_take(&at, end, false, &field, &n) || *field == '#')
		return 0;
	if (is_field(field, n, "PARAMETER"))
		return parameter_read(f, at, end);
	if (is_field(field, n, "POINTS"))
		return points_read(f, at, end);
	if (is_field(field, n, "METRIC"))
		return name_read(f, &f->metric, at, end);
	if (is_field(field, n, "REGION"))
		return name_read(f, &f->region, at, end);
	if (is_field(field, n, "DATA"))
		return data_read(f, at, end);
	return hr__extrap_fail_word(f->in, "no field of Extra-P:", field, n, "");
}

int hr__text_read(struct hr__extrap_input *in)
{
	struct text_file f = {.in = in};
	const char *text;
	size_t n;
	int r = 0;

	while (r == 0 && hr__extrap_line(in, &text, &n))
		r = memchr(text, '\0', n) == NULL ? line_read(&f, text, n)
						  : hr__extrap_fail(in, "a NUL byte in the text");
	free(f.points);
	free(f.region);
	free(f.metric);
	return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int name_write(FILE *out, const char *field, const char *name)
{
	char *text = hr_text_escaped(name, strlen(name));

	if (text == NULL)
		return -ENOMEM;
	fprintf(out, "%s %s\n", field, text);
	free(text);
	return 0;
}

/* Writes a series at the points of the first one. Each series must have the same points. */
static int series_write(FILE *out, struct hr_series *s, const struct hr_series *first,
			char **ret_error)
{
	if (name_write(out, "METRIC", s->metric) < 0 || name_write(out, "REGION", s->region) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < first->n; i++) {
		const struct hr_point *p = hr_series_point(s, first->points[i].at);

		if (p == NULL || s->n != first->n)
			return hr_text_fail(-EINVAL, ret_error,
					    "the text format needs the same points for each region "
					    "and metric, and %s %s has others",
					    hr_near_quoted(s->region).s, s->metric);
		fprintf(out, "DATA");
		for (size_t k = 0; k < p->n; k++)
			fprintf(out, " %s", hr__number_text(p->values[k]).s);
		putc('\n', out);
	}
	return 0;
}

static int parameters_write(FILE *out, const struct hr_measurements *m, char **ret_error)
{
	for (unsigned i = 0; i < m->n_parameters; i++) {
		if (m->parameters[i][0] == '\0' || strpbrk(m->parameters[i], " \t\n\v\f\r") != NULL)
			return hr_text_fail(-EINVAL, ret_error,
					    "the text format cannot hold the parameter name %s",
					    hr_near_quoted(m->parameters[i]).s);
		if (name_write(out, "PARAMETER", m->parameters[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

int hr__text_write(FILE *out, const struct hr_measurements *m, char **ret_error)
{
	int r = parameters_write(out, m, ret_error);

	if (r < 0 || m->n == 0)
		return r;
	fprintf(out, "POINTS");
	for (size_t i = 0; i < m->series[0].n; i++) {
		const struct hr_point *p = &m->series[0].points[i];

		for (unsigned k = 0; k < m->n_parameters; k++)
			fprintf(out, "%s%s", k == 0 ? " (" : " ", hr__number_text(p->at[k]).s);
		putc(')', out);
	}
	putc('\n', out);
	for (size_t i = 0; i < m->n && r == 0; i++)
		r = series_write(out, &m->series[i], &m->series[0], ret_error);
	return r;
}
