/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define MOMENT_HIDDEN 3 /* decimals that are not shown, because milliseconds are enough */

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(name, *names) != 0)
		names++;
	return *names != NULL;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), end_n = strlen(end);

	return n >= end_n && strcmp(name + n - end_n, end) == 0;
}

/* Whether a name, whose words are separated by underscores, contains this word. */
static bool has_word(const char *name, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = name; (at = strstr(at, word)) != NULL; at += n)
		if ((at == name || at[-1] == '_') && (at[n] == '_' || at[n] == '\0'))
			return true;
	return false;
}

enum hr_unit hr_unit_of(const char *column, const struct hr_shape *shape)
{
	static const char *const paths[] = {"path", "what", "object", "mount", NULL};
	static const char *const ids[] = {"rank",	"worker", "loader", "loader_worker",
					  "pid",	"tid",	  "errno",  "attempt",
					  "checkpoint", "epoch",  "step",   NULL};
	bool real = shape->type == DUCKDB_TYPE_DOUBLE || shape->type == DUCKDB_TYPE_DECIMAL;

	if (!hr_shape_is_number(shape))
		return is_one_of(column, paths) ? HR_UNIT_PATH : HR_UNIT_NONE;
	if (is_one_of(column, ids))
		return HR_UNIT_NONE;
	if (has_word(column, "percent"))
		return HR_UNIT_PERCENT;
	if (ends_with(column, "_per_s"))
		return has_word(column, "bytes") ? HR_UNIT_PER_S : HR_UNIT_RATE;
	if (has_word(column, "bytes"))
		return HR_UNIT_BYTES;
	if (ends_with(column, "_s") || strcmp(column, "seconds") == 0)
		return shape->type == DUCKDB_TYPE_DECIMAL ? HR_UNIT_MOMENT : HR_UNIT_SECONDS;
	return real ? HR_UNIT_NONE : HR_UNIT_COUNT;
}

void hr_unit_title(struct hr_buffer *to, enum hr_unit unit, const char *column)
{
	size_t n = strlen(column);

	switch (unit) {
	case HR_UNIT_SECONDS:
	case HR_UNIT_MOMENT:
		hr_buffer_add(to, column, ends_with(column, "_s") ? n - strlen("_s") : n);
		break;
	case HR_UNIT_PER_S:
	case HR_UNIT_RATE:
		hr_buffer_add(to, column, n - strlen("_per_s"));
		hr_buffer_add(to, "/s", 2);
		break;
	case HR_UNIT_PERCENT:
		if (ends_with(column, "_percent")) {
			hr_buffer_add(to, column, n - strlen("_percent"));
			hr_buffer_add(to, " %", 2);
			break;
		}
		/* fall through */
	default:
		hr_buffer_add(to, column, n);
	}
}

/* Never rounds a share to 0 % or to 100 %. */
static void add_percent(struct hr_buffer *to, double percent)
{
	if (percent > 0 && percent < 0.05)
		hr_buffer_print(to, "<0.1 %%");
	else if (percent < 100 && percent >= 99.95)
		hr_buffer_print(to, ">99.9 %%");
	else
		hr_buffer_print(to, "%.1f %%", percent);
}

static void add_moment(struct hr_buffer *to, const char *exact)
{
	const char *point = strchr(exact, '.');
	size_t n = strlen(exact);

	if (point != NULL && n - (size_t)(point - exact) > MOMENT_HIDDEN + 1)
		n -= MOMENT_HIDDEN;
	hr_buffer_add(to, exact, n);
	hr_buffer_add(to, " s", 2);
}

/* `v` must not be negative. */
static void add_number(struct hr_buffer *to, enum hr_unit unit, double v)
{
	switch (unit) {
	case HR_UNIT_SECONDS:
		hr_buffer_print(to, "%s", hr_text_duration((uint64_t)llround(v * 1e9)).s);
		break;
	case HR_UNIT_BYTES:
		hr_buffer_print(to, "%s", hr_text_size((uint64_t)v).s);
		break;
	case HR_UNIT_PER_S:
		hr_buffer_print(to, "%s/s", hr_text_size((uint64_t)v).s);
		break;
	case HR_UNIT_RATE:
		hr_buffer_print(to, "%s", hr_text_decimal(v).s);
		break;
	default:
		add_percent(to, v);
	}
}

#define SECONDS_END 9e9 /* nanoseconds below this fit into 64 bits */
#define NUMBER_END  0x1p63

void hr_unit_print(struct hr_buffer *to, enum hr_unit unit, const char *exact)
{
	char *end;
	double v = strtod(exact, &end), size = fabs(v);

	if (unit <= HR_UNIT_PATH || *end != '\0' || !isfinite(v) ||
	    size >= (unit == HR_UNIT_SECONDS ? SECONDS_END : NUMBER_END)) {
		hr_buffer_add(to, exact, strlen(exact));
		return;
	}
	if (unit == HR_UNIT_MOMENT) {
		add_moment(to, exact);
		return;
	}
	if (v < 0)
		hr_buffer_add(to, "-", 1);
	/* Reads the text as an integer, because a double may lack the last digits. */
	if (unit == HR_UNIT_COUNT)
		hr_buffer_print(to, "%s", hr_text_count(strtoull(exact + (v < 0), NULL, 10)).s);
	else
		add_number(to, unit, size);
}
