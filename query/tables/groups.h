/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - orders the rows of a batch so that some columns are constant for many rows
 *
 * DuckDB handles a constant vector as one value. So if a statement needs a column with few values
 * (op, task, mount, pattern...), rows with equal values are returned together, unless the groups
 * become too small. One scanning thread owns a struct hr_groups.
 *
 * hr__groups_new, (hr__groups_start, hr__groups_refine*, hr__groups_finish)*, hr__groups_free
 */
#ifndef HEADRACE_QUERY_TABLES_GROUPS_H
#define HEADRACE_QUERY_TABLES_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#define HR_GROUPS_MAX 128u
/* A vector has up to 2048 rows. A vector with a quarter of them costs little more per row. */
#define HR_GROUPS_MIN_ROWS 512u

struct hr_group {
	uint32_t first; /* position of its first row in `rows` */
	uint32_t n;
	uint32_t row; /* any row, which represents the group if every column is constant */
};

struct hr_groups {
	uint32_t *rows; /* after hr__groups_finish: sorted by group, ascending in each group */
	uint32_t n_rows;
	struct hr_group groups[HR_GROUPS_MAX];
	uint32_t n_groups;
	/* used between hr__groups_start and hr__groups_finish */
	uint32_t *unordered;	  /* the rows, ascending */
	uint8_t *group, *refined; /* group of each row */
	uint32_t most;
	/* used by hr__groups_distinct: for each value, the last pass that found it */
	uint32_t *met;
	uint32_t n_met, pass;
};

struct hr_groups *hr__groups_new(void);
void hr__groups_free(struct hr_groups *g);

/*
 * Begins with one group; the caller puts n_rows ascending row numbers into `unordered`. `most`:
 * maximum number of groups; 1 keeps the order of rows.
 */
void hr__groups_start(struct hr_groups *g, uint32_t n_rows, uint32_t most);

/*
 * Splits the groups by the values of rows unordered[0..n_rows). False: nothing changed, because
 * there would be too many groups.
 */
bool hr__groups_refine(struct hr_groups *g, const uint32_t *values);

void hr__groups_finish(struct hr_groups *g, bool want_rows);

/*
 * Keeps the first row of each value in each group. `value_of`: the value of each row; a value of
 * n_values or more counts as 0. Returns 0 or -ENOMEM.
 */
int hr__groups_distinct(struct hr_groups *g, const uint32_t *value_of, uint32_t n_values);

#endif
