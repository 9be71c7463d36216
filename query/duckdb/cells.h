/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h - prints a value as a cell of a table; in named queries with units: times, sizes, rates,
 * shares, counts
 *
 * The name of a column determines its unit, as docs/queries.md describes. The formats are those of
 * common/text.h, and of the macros that sentences use (query/macros.sql).
 */
#ifndef HEADRACE_QUERY_DUCKDB_CELLS_H
#define HEADRACE_QUERY_DUCKDB_CELLS_H

#include "query/duckdb/value.h"

enum hr_unit {
	HR_UNIT_NONE, /* a text, a date, or a number without a unit, for example a rank */
	HR_UNIT_PATH, /* a text that may be a path */
	HR_UNIT_COUNT,
	HR_UNIT_SECONDS, /* a duration */
	HR_UNIT_MOMENT,	 /* seconds since the start of the job */
	HR_UNIT_BYTES,
	HR_UNIT_PER_S, /* bytes per second */
	HR_UNIT_RATE,  /* other things per second */
	HR_UNIT_PERCENT,
};

enum hr_unit hr_unit_of(const char *column, const struct hr_shape *shape);

/* Appends the name of a column without its unit: `wait_s` becomes `wait`. */
void hr_unit_title(struct hr_buffer *to, enum hr_unit unit, const char *column);

/* Appends a number with its unit. `exact`: the number as hr_value_text prints it. */
void hr_unit_print(struct hr_buffer *to, enum hr_unit unit, const char *exact);

struct hr_cell_style {
	bool units; /* print numbers with units, and NULL as "-" */
	/* with units: paths below this folder become relative to it; NULL: none */
	const char *folder;
};

/* Returns a line (malloc'ed) without control characters, or NULL (no memory). */
char *hr_cell_text(const struct hr_cell_style *style, const struct hr_shape *shape,
		   enum hr_unit unit, duckdb_vector v, idx_t row);

#endif
