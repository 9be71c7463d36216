/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h - a value as the cell of a table */
#ifndef HEADRACE_QUERY_DUCKDB_CELLS_H
#define HEADRACE_QUERY_DUCKDB_CELLS_H

#include "query/duckdb/units.h"

struct hr_cell_style {
	bool units;	    /* numbers have units, and an absent value is "-" */
	const char *folder; /* with units: paths below it are shown relative to it; NULL: none */
};

/*
 * Returns a cell as one line (malloc'ed), without control characters, because these could drive a
 * terminal. NULL: no memory.
 */
char *hr_cell_text(const struct hr_cell_style *style, const struct hr_shape *shape,
		   enum hr_unit unit, duckdb_vector v, idx_t row);

#endif
