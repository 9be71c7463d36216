/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_table.h - cells of text as aligned columns, or as a list of lines
 *
 * Purpose   Lays out a table for people. The first rows are buffered to find the widths. On a
 *           terminal the table is made to fit: first texts are cut (a path in its middle, others at
 *           their end), then the last columns are left out and named below the table. A few rows
 *           that are too wide become a list instead: one line per cell, and nothing is cut.
 * Owner     The caller owns the table and the buffer that lines are appended to.
 * Threads   One.
 */
#ifndef HEADRACE_QUERY_DUCKDB_TEXT_TABLE_H
#define HEADRACE_QUERY_DUCKDB_TEXT_TABLE_H

#include "query/duckdb/value.h"

struct hr_text_table;

/* `terminal`: its width in characters; 0: no terminal, everything is shown. 0 or -ENOMEM. */
int hr_text_table_new(unsigned n_columns, unsigned terminal, struct hr_text_table **ret);
void hr_text_table_free(struct hr_text_table *t);

/* Names a column, before the first cell; numbers stand on the right and are never cut. -ENOMEM. */
int hr_text_table_column(struct hr_text_table *t, unsigned i, const char *name, bool number);

/* Shows a list, whatever the width. Call it after naming the columns, before the first cell. */
void hr_text_table_list(struct hr_text_table *t);

/*
 * Takes the next cell, row by row: a malloc'ed line of text, which the table then owns. Appends
 * what can be printed to *out, whose `failed` is set when memory runs out.
 */
void hr_text_table_cell(struct hr_text_table *t, char *text, struct hr_buffer *out);

/* Appends the rest. */
void hr_text_table_end(struct hr_text_table *t, struct hr_buffer *out);

#endif
