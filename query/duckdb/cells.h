/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h - prints a value as a cell of a table */
#ifndef HEADRACE_QUERY_DUCKDB_CELLS_H
#define HEADRACE_QUERY_DUCKDB_CELLS_H

#include "query/duckdb/units.h"

struct hr_cell_style {
	bool units; /* print numbers with units, and NULL as "-" */
	/* with units: paths below this folder become relative to it; NULL: none */
	const char *folder;
};

/* Returns a line (malloc'ed) without control characters, or NULL (no memory). */
char *hr_cell_text(const struct hr_cell_style *style, const struct hr_shape *shape,
		   enum hr_unit unit, duckdb_vector v, idx_t row);

#endif
