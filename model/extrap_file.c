/* SPDX-License-Identifier: Apache-2.0 */
#include "model/extrap_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/near.h"
#include "common/text.h"
#include "model/extrap_internal.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

bool hr__extrap_line(struct hr__extrap_input *in, const char **ret, size_t *ret_n)
{
	const char *from = in->at, *end;

	if (in->at == in->end)
		return false;
	end = memchr(from, '\n', (size_t)(in->end - from));
	in->at = end != NULL ? end + 1 : in->end;
	end = end != NULL ? end : in->end;
	in->line++;
	while (from < end && is_blank(*from))
		from++;
	while (end > from && is_blank(end[-1]))
		end--;
	*ret = from;
	*ret_n = (size_t)(end - from);
	return true;
}

int hr__extrap_fail(const struct hr__extrap_input *in, const char *format, ...)
{
	va_list args;
	char *text;
	int n, r;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	r = hr_text_fail(-EBADMSG, in->ret_error, "line %lu: %s", in->line, text);
	free(text);
	return r;
}

int hr__extrap_fail_word(const struct hr__extrap_input *in, const char *before, const char *word,
			 size_t n, const char *after)
{
	char *text = strndup(word, n);
	int r = text != NULL ? hr__extrap_fail(in, "%s %s%s", before, hr_near_quoted(text).s, after)
			     : -ENOMEM;

	free(text);
	return r;
}

int hr__extrap_add(const struct hr__extrap_input *in, const char *region, const char *metric,
		   const double *at, double value)
{
	int r = hr_measurements_add(in->to, region, metric, at, value);

	if (r == -ENOSPC)
		return hr__extrap_fail(in,
				       "the limits are %u regions and metrics, %u points of each, "
				       "and %u repetitions",
				       HR_MODEL_SERIES_MOST, HR_MODEL_POINTS_MOST,
				       HR_MODEL_VALUES_MOST);
	if (r == -EDOM)
		return hr__extrap_fail(in, "values of parameters must not be negative");
	return r;
}

int hr__extrap_parameter(const struct hr__extrap_input *in, const char *name, size_t n)
{
	int r = hr_measurements_parameter(in->to, name, n, in->first_file);

	if (r >= 0 || r == -ENOMEM)
		return r;
	if (r == -ENOSPC)
		return hr__extrap_fail(in, "headrace model reads up to %u parameters",
				       HR_MODEL_PARAMETERS);
	return hr__extrap_fail_word(in, "parameter", name, n, " is not in the first file");
}

int hr__extrap_check(const struct hr__extrap_input *in, unsigned n_named)
{
	if (n_named == in->to->n_parameters)
		return 0;
	return hr__extrap_fail(in, "%u parameters, but the first file or line has %u", n_named,
			       in->to->n_parameters);
}

struct hr__number hr__number_text(double value)
{
	struct hr__number text;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text.s, sizeof(text.s), "%.*g", digits, value);
		if (strtod(text.s, NULL) == value)
			break;
	}
	return text;
}

int hr_extrap_read(const char *data, size_t bytes, struct hr_measurements *to, char **ret_error)
{
	struct hr__extrap_input in = {.at = data,
				      .end = data + bytes,
				      .to = to,
				      .first_file = to->n == 0,
				      .ret_error = ret_error};
	size_t before = to->n, blanks = 0;
	int r;

	*ret_error = NULL;
	while (blanks < bytes && (is_blank(data[blanks]) || data[blanks] == '\n'))
		blanks++;
	if (blanks < bytes && data[blanks] == '{')
		r = hr__jsonl_read(&in);
	else
		r = hr__text_read(&in);
	if (r == 0 && in.first_file && to->n == before)
		return hr_text_fail(-EBADMSG, ret_error, "no measurements in the file");
	return r;
}

int hr_extrap_write(FILE *out, enum hr_extrap_format format, const struct hr_measurements *m,
		    char **ret_error)
{
	*ret_error = NULL;
	return format == HR_EXTRAP_TEXT ? hr__text_write(out, m, ret_error)
					: hr__jsonl_write(out, m);
}
