/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_table.h - cells of text as aligned columns, or as a list of lines
 *
 * The first rows are buffered to find the widths. If a table is wider than the terminal, its texts
 * are cut. If this is not enough, its last columns are left out and named below the table. A table
 * of a few such rows becomes a list instead, with one uncut line per cell.
 */
#ifndef HEADRACE_QUERY_DUCKDB_TEXT_TABLE_H
#define HEADRACE_QUERY_DUCKDB_TEXT_TABLE_H

#include "query/duckdb/value.h"

struct hr_text_table;

/* `terminal`: width of the terminal in characters; 0: cut nothing. Returns 0 or -ENOMEM. */
int hr_text_table_new(unsigned n_columns, unsigned terminal, struct hr_text_table **ret);
void hr_text_table_free(struct hr_text_table *t);

/*
 * Names a column. Call it before the first cell. Numbers are aligned right and never cut. Returns 0
 * or -ENOMEM.
 */
int hr_text_table_column(struct hr_text_table *t, unsigned i, const char *name, bool number);

/*
 * Selects the layout of a list, whatever the width. Call it after the columns are named, and before
 * the first cell.
 */
void hr_text_table_list(struct hr_text_table *t);

/*
 * Call it if the columns are chosen from those of a named query, which has `more` other ones. Such
 * a table never becomes a list.
 */
void hr_text_table_named(struct hr_text_table *t, unsigned more);

/* Sets a line (with line end) to print after the rows. The text must outlive the table. */
void hr_text_table_foot(struct hr_text_table *t, const char *foot);

/*
 * Takes and frees the next cell, a malloc'ed line of text. Cells come row by row. Appends complete
 * lines to *out; if memory is short, sets out->failed.
 */
void hr_text_table_cell(struct hr_text_table *t, char *text, struct hr_buffer *out);

void hr_text_table_end(struct hr_text_table *t, struct hr_buffer *out);

#endif
