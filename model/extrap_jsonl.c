/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_part.h"
#include "common/text.h"
#include "model/extrap_internal.h"

/* The names that Extra-P gives if a line has none. */
#define REGION_DEFAULT "<root>"
#define METRIC_DEFAULT "<default>"

/* One line: slices of it. */
struct line {
	struct hr_json_part params, region, metric, value;
};

/* Copies a name (malloc'ed); `absent` if the line has none. */
static int name_copy(const struct hr__extrap_input *in, const struct hr_json_part *p,
		     const char *absent, char **ret)
{
	size_t n = strlen(absent);
	char *text;

	if (p->type != HR_JSON_NONE && p->type != HR_JSON_STRING)
		return hr__extrap_fail(in, "\"callpath\" and \"metric\" must be names");
	text = p->type == HR_JSON_STRING ? malloc(p->n + 1) : strdup(absent);
	if (text == NULL)
		return -ENOMEM;
	if (p->type == HR_JSON_STRING)
		n = hr_json_part_text(p, text);
	text[n] = '\0';
	if (strlen(text) < n) {
		free(text);
		return hr__extrap_fail(in, "a name has a NUL");
	}
	*ret = text;
	return 0;
}

/* Reads the members of a line. */
static int line_read(const struct hr__extrap_input *in, const char *at, const char *end,
		     struct line *ret)
{
	struct hr_json_part object, key, value;
	const char *member = at + 1; /* after the '{' */

	if (hr_json_part_read(&at, end, &object) < 0 || object.type != HR_JSON_OBJECT || at != end)
		return hr__extrap_fail(in, "no JSON object");
	while (hr_json_part_member(&member, end, &key, &value) == 1) {
		if (hr_json_part_is(&key, "params"))
			ret->params = value;
		else if (hr_json_part_is(&key, "callpath"))
			ret->region = value;
		else if (hr_json_part_is(&key, "metric"))
			ret->metric = value;
		else if (hr_json_part_is(&key, "value"))
			ret->value = value;
	}
	if (ret->params.type != HR_JSON_OBJECT)
		return hr__extrap_fail(in, "no object \"params\"");
	return 0;
}

/* Reads the parameters of a line. */
static int params_read(const struct hr__extrap_input *in, const struct hr_json_part *params,
		       double at[HR_MODEL_PARAMETERS])
{
	const char *member = params->p + 1, *end = params->p + params->n;
	struct hr_json_part key, value;
	unsigned named = 0;

	while (hr_json_part_member(&member, end, &key, &value) == 1) {
		char *name = NULL;
		int i = name_copy(in, &key, "", &name);

		if (name == NULL)
			return i;
		i = hr__extrap_parameter(in, name, strlen(name));
		free(name);
		if (i < 0)
			return i;
		if (named >> i & 1)
			return hr__extrap_fail(in, "a parameter is there twice");
		if (!hr_json_part_double(&value, &at[i]))
			return hr__extrap_fail(in, "the value of a parameter is no finite number");
		named |= 1u << i;
	}
	return hr__extrap_check(in, (unsigned)__builtin_popcount(named));
}

static int line_add(const struct hr__extrap_input *in, const struct line *l)
{
	double at[HR_MODEL_PARAMETERS] = {0}, value;
	char *region = NULL, *metric = NULL;
	int r = params_read(in, &l->params, at);

	if (r < 0)
		return r;
	if (!hr_json_part_double(&l->value, &value))
		return hr__extrap_fail(in, "\"value\" is no finite number");
	r = name_copy(in, &l->region, REGION_DEFAULT, &region);
	if (r == 0)
		r = name_copy(in, &l->metric, METRIC_DEFAULT, &metric);
	if (r == 0)
		r = hr__extrap_add(in, region, metric, at, value);
	free(region);
	free(metric);
	return r;
}

int hr__jsonl_read(struct hr__extrap_input *in)
{
	const char *text;
	size_t n;
	int r = 0;

	while (r == 0 && hr__extrap_line(in, &text, &n)) {
		struct line l = {0};

		if (n == 0)
			continue;
		r = line_read(in, text, text + n, &l);
		if (r == 0)
			r = line_add(in, &l);
		if (in->first_file && in->to->n > 0)
			in->first_file = false; /* all lines have the parameters of the first one */
	}
	return r;
}

static void point_write(FILE *out, const struct hr_measurements *m, const char *const *names,
			const char *region, const char *metric, const struct hr_point *p)
{
	for (size_t v = 0; v < p->n; v++) {
		struct hr_json j;

		hr_json_init(&j, out);
		j.line = true;
		hr_json_object(&j, NULL);
		hr_json_object(&j, "params");
		for (unsigned i = 0; i < m->n_parameters; i++)
			hr_json_raw(&j, names[i], hr__number_text(p->at[i]).s);
		hr_json_end(&j);
		hr_json_string(&j, "callpath", region);
		hr_json_string(&j, "metric", metric);
		hr_json_raw(&j, "value", hr__number_text(p->values[v]).s);
		hr_json_end(&j);
	}
}

/* Writes a series. Names are UTF-8: other bytes are escaped. */
static int series_write(FILE *out, const struct hr_measurements *m, const char *const *names,
			const struct hr_series *s)
{
	char *region = hr_text_escaped(s->region, strlen(s->region));
	char *metric = hr_text_escaped(s->metric, strlen(s->metric));
	int r = region != NULL && metric != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->n && r == 0; i++)
		point_write(out, m, names, region, metric, &s->points[i]);
	free(region);
	free(metric);
	return r;
}

int hr__jsonl_write(FILE *out, const struct hr_measurements *m)
{
	char *names[HR_MODEL_PARAMETERS] = {0};
	int r = 0;

	for (unsigned i = 0; i < m->n_parameters; i++) {
		names[i] = hr_text_escaped(m->parameters[i], strlen(m->parameters[i]));
		r = names[i] != NULL ? r : -ENOMEM;
	}
	for (size_t i = 0; i < m->n && r == 0; i++)
		r = series_write(out, m, (const char *const *)names, &m->series[i]);
	for (unsigned i = 0; i < m->n_parameters; i++)
		free(names[i]);
	return r;
}
