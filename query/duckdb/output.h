/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - answers as a table, a list or text for people, JSON, or CSV
 *
 * A sink (statement.h) that writes rows to a FILE when they arrive. Tables and lists show three
 * significant digits of a DOUBLE and milliseconds of timestamps; JSON and CSV show all digits.
 * The format text prints the first column of each row as a line. If the line is too long, its
 * continuation is indented to the text that follows the label. A second column, if it is a number,
 * is a share in percent that determines the colour of the line; NULL: no colour.
 */
#ifndef HEADRACE_QUERY_DUCKDB_OUTPUT_H
#define HEADRACE_QUERY_DUCKDB_OUTPUT_H

#include <stdio.h>

#include "query/duckdb/cells.h"
#include "query/duckdb/statement.h"

enum hr_output_format {
	HR_OUTPUT_TABLE,
	HR_OUTPUT_LIST,
	HR_OUTPUT_TEXT,
	HR_OUTPUT_JSON,
	HR_OUTPUT_CSV
};

/* Style of tables and texts; all zero: for SQL of the user. Its texts must outlive the output. */
struct hr_output_style {
	struct hr_cell_style cells;
	bool colour;
	/* the columns are chosen from those of a named query, which has `more` further ones */
	bool named;
	unsigned more;
	const char *foot; /* line after the rows; NULL: none */
	unsigned lines;	  /* maximum number of lines of text; 0: no limit */
};

struct hr_output;

/*
 * `width`: of the terminal, to which tables are cut; 0: no limit. `style` NULL: all zero. Returns 0
 * or -ENOMEM.
 */
int hr_output_new(enum hr_output_format format, FILE *to, unsigned width,
		  const struct hr_output_style *style, struct hr_output **ret);
void hr_output_free(struct hr_output *o);

/* Its errors: -ENOTSUP (a type that cannot be printed), -ENOMEM, and errors of writing. */
struct hr_query_sink hr_output_sink(struct hr_output *o);
uint64_t hr_output_rows(const struct hr_output *o);

#endif
