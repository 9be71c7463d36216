/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define GAP  2u /* blanks between columns */
#define DOTS "..."

bool hr_table_init(struct hr_table *t, const struct hr_table_column *columns, unsigned n_columns,
		   size_t n_rows)
{
	*t = (struct hr_table){.columns = columns, .n_columns = n_columns, .n_rows = n_rows + 1};
	t->cells = calloc(t->n_rows * n_columns, sizeof(*t->cells));
	for (unsigned c = 0; t->cells != NULL && c < n_columns; c++) {
		hr_table_set(t, 0, c, "%s", columns[c].title);
		hr_table_cell(t, 0, c)->style = HR_STYLE_BOLD;
	}
	return t->cells != NULL;
}

void hr_table_done(struct hr_table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
		free(t->cells[i].text);
	free(t->cells);
}

void hr_table_set(struct hr_table *t, size_t row, unsigned column, const char *format, ...)
{
	struct hr_table_cell *cell = hr_table_cell(t, row, column);
	va_list args;

	va_start(args, format);
	if (vasprintf(&cell->text, format, args) < 0)
		cell->text = NULL;
	va_end(args);
}

/* Returns the text (malloc'ed) in at most `cells`, without the folder `from`. NULL: no memory. */
static char *shorten(const char *text, bool path, const char *from, size_t cells)
{
	size_t bytes = strlen(text) + sizeof(DOTS) + 1, half = (cells - strlen(DOTS)) / 2;
	char *to = malloc(bytes);

	if (to != NULL && path)
		hr_text_path_short(to, bytes, text, from, cells);
	else if (to != NULL)
		snprintf(to, bytes, "%.*s" DOTS "%s", (int)hr_text_start(text, half), text,
			 hr_text_end(text, cells - strlen(DOTS) - half));
	return to;
}

void hr_table_name(struct hr_table *t, size_t row, unsigned column, const char *name,
		   const char *from, size_t cells)
{
	char *escaped = name != NULL ? hr_text_escaped(name, strlen(name)) : NULL;

	if (escaped != NULL)
		hr_table_cell(t, row, column)->text = shorten(escaped, true, from, cells);
	free(escaped);
}

static unsigned widest(const struct hr_table *t, unsigned column)
{
	unsigned most = 0, title = (unsigned)strlen(t->columns[column].title);

	for (size_t row = 1; row < t->n_rows; row++) {
		const char *text = hr_table_cell(t, row, column)->text;
		unsigned cells = text != NULL ? (unsigned)hr_text_cells(text) : 0;

		most = cells > most ? cells : most;
	}
	return most > 0 && most < title ? title : most;
}

void hr_table_fit(struct hr_table *t, unsigned width)
{
	unsigned used = 0, room = width > 0 ? width + GAP : UINT_MAX;

	for (unsigned c = 0; c < t->n_columns; c++) {
		t->widths[c] = widest(t, c);
		used += t->widths[c] > 0 ? t->widths[c] + GAP : 0;
	}
	for (unsigned c = t->n_columns; c-- > 0 && used > room;) {
		unsigned least = t->columns[c].least, excess = used - room;

		if (least == 0 || t->widths[c] <= least)
			continue;
		if (excess > t->widths[c] - least)
			excess = t->widths[c] - least;
		t->widths[c] -= excess;
		used -= excess;
	}
	for (unsigned i = 1; i <= t->n_columns && used > room; i++)
		for (unsigned c = 0; c < t->n_columns; c++)
			if (t->columns[c].leaves == i && t->widths[c] > 0) {
				used -= t->widths[c] + GAP;
				t->widths[c] = 0;
			}
}

void hr_table_print(const struct hr_table *t, size_t row, const char *blank, struct hr_sheet *sheet)
{
	unsigned before = 0; /* blanks before the next text; a line ends without them */

	for (unsigned c = 0; c < t->n_columns; c++) {
		const struct hr_table_cell *cell = hr_table_cell(t, row, c);
		const char *text = hr_text_given(cell->text) ? cell->text
				   : c + 1 < t->n_columns    ? blank
							     : "";
		unsigned width = t->widths[c], cells = (unsigned)hr_text_cells(text);
		char *shorter = NULL;

		if (width == 0)
			continue;
		if (cells > width) {
			shorter = shorten(text, t->columns[c].path, NULL, width);
			text = shorter != NULL ? shorter : "";
			cells = (unsigned)hr_text_cells(text);
		}
		if (cells > 0) {
			before += t->columns[c].number ? width - cells : 0;
			hr_sheet_put(sheet, HR_STYLE_PLAIN, "%*s", (int)before, "");
			hr_sheet_put(sheet, cell->style, "%s", text);
			before = 0;
		}
		before += GAP + (t->columns[c].number && cells > 0 ? 0 : width - cells);
		free(shorter);
	}
	hr_sheet_end(sheet);
}
