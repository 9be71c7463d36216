/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a table whose columns are as wide as their cells
 *
 * The caller sets the cells of all rows, fits the columns into the terminal, and prints the rows,
 * of which row 0 has the titles. A column without any text is left out. One thread.
 */
#ifndef HEADRACE_CLI_TABLE_H
#define HEADRACE_CLI_TABLE_H

#include "cli/sheet.h"

struct hr_table_column {
	const char *title;
	bool number; /* aligned to the right */
	bool path;   /* a text that is too wide is shortened as a path; else it loses its middle */
	/* on a narrow terminal, columns shrink to this width, the last column first; 0: never */
	unsigned least;
	/* then columns are left out, the one with 1 first; 0: never */
	unsigned leaves;
};

#define HR_TABLE_COLUMNS 12u

struct hr_table_cell {
	char *text; /* malloc'ed; NULL or "": empty */
	enum hr_style style;
};

struct hr_table {
	const struct hr_table_column *columns;
	unsigned n_columns; /* at most HR_TABLE_COLUMNS */
	size_t n_rows;	    /* with the titles */
	struct hr_table_cell *cells;
	unsigned widths[HR_TABLE_COLUMNS]; /* 0: the column is left out */
};

/* Returns whether there is memory for the titles and `n_rows` rows. */
bool hr_table_init(struct hr_table *t, const struct hr_table_column *columns, unsigned n_columns,
		   size_t n_rows);
void hr_table_done(struct hr_table *t);

static inline struct hr_table_cell *hr_table_cell(const struct hr_table *t, size_t row,
						  unsigned column)
{
	return &t->cells[row * t->n_columns + column];
}

/* Set the text of an empty cell. A name is escaped, and shortened as hr_text_path_short does. */
__attribute__((format(printf, 4, 5))) void hr_table_set(struct hr_table *t, size_t row,
							unsigned column, const char *format, ...);
void hr_table_name(struct hr_table *t, size_t row, unsigned column, const char *name,
		   const char *from, size_t cells);

/* Finds the widths of the columns. `width`: that of the terminal; 0: no text is shortened. */
void hr_table_fit(struct hr_table *t, unsigned width);

/* Prints a row. `blank`: the text of empty cells, except in the last column. */
void hr_table_print(const struct hr_table *t, size_t row, const char *blank,
		    struct hr_sheet *sheet);

#endif
