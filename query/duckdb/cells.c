/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
