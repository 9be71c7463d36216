/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

/* ---- units ---- */

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

/* ---- cells ---- */

#define SHORT_MIN 1e-9 /* smaller numbers are printed with an exponent */
#define SHORT_MAX 1e15
/* a number of this size has no decimals */
#define SHORT_DIGITS  100
#define SECOND_DIGITS 3

static void add_short(struct hr_buffer *b, double v)
{
	double size = fabs(v);
	char text[64];
	int decimals = 0, n;

	for (; size < SHORT_DIGITS; decimals++)
		size *= 10;
	n = snprintf(text, sizeof(text), "%.*f", decimals, v);
	while (decimals > 0 && (text[n - 1] == '0' || text[n - 1] == '.')) {
		if (text[--n] == '.')
			break;
	}
	hr_buffer_add(b, text, (size_t)n);
}

static void cut_fraction(struct hr_buffer *b, size_t digits)
{
	const char *point = memchr(b->data, '.', b->n);
	size_t n = point != NULL ? (size_t)(point - b->data) + (digits > 0 ? 1 + digits : 0) : 0;

	if (point != NULL && b->n > n)
		b->n = n;
}

static void add_raw(struct hr_buffer *raw, const struct hr_shape *shape, size_t second_digits,
		    duckdb_vector v, idx_t row)
{
	double number = 0;

	if (shape->type == DUCKDB_TYPE_DOUBLE)
		number = ((const double *)hr_duckdb.vector_get_data(v))[row];
	if (fabs(number) >= SHORT_MIN && fabs(number) < SHORT_MAX) {
		add_short(raw, number);
		return;
	}
	hr_value_text(raw, shape, v, row);
	if (shape->type == DUCKDB_TYPE_TIMESTAMP || shape->type == DUCKDB_TYPE_TIMESTAMP_NS)
		cut_fraction(raw, second_digits);
}

static void add_with_unit(struct hr_buffer *to, const struct hr_shape *shape, enum hr_unit unit,
			  duckdb_vector v, idx_t row)
{
	struct hr_buffer exact = {0};

	hr_value_text(&exact, shape, v, row);
	hr_buffer_add(&exact, "", 1);
	if (exact.failed)
		to->failed = true;
	else
		hr_unit_print(to, unit, exact.data);
	hr_buffer_done(&exact);
}

/* Removes `folder` from the beginning of a path. */
static void skip_folder(const char *folder, const char **text, size_t *n)
{
	size_t skip = folder != NULL ? strlen(folder) : 0;

	if (skip == 0 || *n <= skip + 1 || memcmp(*text, folder, skip) != 0 || (*text)[skip] != '/')
		return;
	*text += skip + 1;
	*n -= skip + 1;
}

char *hr_cell_text(const struct hr_cell_style *style, const struct hr_shape *shape,
		   enum hr_unit unit, duckdb_vector v, idx_t row)
{
	struct hr_buffer raw = {0}, cell = {0};
	const char *text;
	size_t n;

	if (hr_value_is_null(v, row))
		return strdup(style->units ? "-" : "NULL");
	if (hr_value_plain(shape, v, row, &text, &n)) {
		if (style->units && unit == HR_UNIT_PATH)
			skip_folder(style->folder, &text, &n);
	} else {
		if (style->units && unit != HR_UNIT_NONE)
			add_with_unit(&raw, shape, unit, v, row);
		else
			add_raw(&raw, shape, style->units ? 0 : SECOND_DIGITS, v, row);
		text = raw.data;
		n = raw.n;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < 0x20 || byte == 0x7f)
			hr_buffer_print(&cell, "\\x%02X", byte);
		else
			hr_buffer_add(&cell, text + i, 1);
	}
	hr_buffer_add(&cell, "", 1);
	hr_buffer_done(&raw);
	if (raw.failed || cell.failed) {
		hr_buffer_done(&cell);
		return NULL;
	}
	return cell.data;
}
