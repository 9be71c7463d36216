/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_table.h - text on a terminal: cells as aligned columns or as a list of lines, and long lines
 *
 * The first rows are buffered to find the widths. If a table is wider than the terminal, its texts
 * are cut. If it is still too wide, its last columns are left out, and named below the table. A
 * table with few rows becomes a list instead, with one uncut line for each cell.
 */
#ifndef HEADRACE_QUERY_DUCKDB_TEXT_TABLE_H
#define HEADRACE_QUERY_DUCKDB_TEXT_TABLE_H

#include "query/duckdb/value.h"

struct hr_text_table;

struct hr_text_table_style {
	unsigned terminal; /* its width in cells; 0: cut nothing */
	bool list;	   /* a list, even if a table would fit */
	/*
	 * The columns are chosen from those of a named query, which has `more` further ones. Then
	 * the table never becomes a list.
	 */
	bool named;
	unsigned more;
	const char *foot; /* a line after the rows, which outlives the table; NULL: none */
};

/* Returns 0 or -ENOMEM. */
int hr_text_table_new(unsigned n_columns, const struct hr_text_table_style *style,
		      struct hr_text_table **ret);
void hr_text_table_free(struct hr_text_table *t);

/* Sets the name of a column, before the first cell. Numbers are never cut. Returns 0 or -ENOMEM. */
int hr_text_table_column(struct hr_text_table *t, unsigned i, const char *name, bool number);

/*
 * Takes the next cell of the current row (malloc'ed), and frees it. Appends complete lines to *out.
 * If memory is short, sets out->failed.
 */
void hr_text_table_cell(struct hr_text_table *t, char *text, struct hr_buffer *out);

void hr_text_table_end(struct hr_text_table *t, struct hr_buffer *out);

/*
 * Appends a line without its line end. Breaks it at spaces, but not between a number and its unit,
 * into lines of at most `width` (0: no limit). Further lines begin with `indent` spaces. `have` is
 * the width of the text that is already on the first line.
 */
void hr_wrap(struct hr_buffer *to, const char *line, size_t have, size_t indent, size_t width);

#endif
