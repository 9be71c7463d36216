/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - orders the rows of a batch of events so that some columns are constant for many rows
 *
 * DuckDB handles a constant vector as one value. So if a statement needs a column with few values
 * (op, task, mount, pattern...), rows with equal values are returned together, unless these groups
 * become too small. Each scanning thread has its own struct hr_groups.
 *
 * For each batch, call hr__groups_start, hr__groups_refine for each such column, hr__groups_finish.
 */
#ifndef HEADRACE_QUERY_TABLES_GROUPS_H
#define HEADRACE_QUERY_TABLES_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#define HR_GROUPS_MAX 128u
/* A vector has at most 2048 rows. With a quarter of this, a row costs little more time. */
#define HR_GROUPS_MIN_ROWS 512u

struct hr_group {
	uint32_t first; /* index of the group's first row in `rows` */
	uint32_t n;
	uint32_t row; /* one row of the group, for constant columns */
};

struct hr_groups {
	uint32_t *rows; /* after hr__groups_finish: row numbers by group, ascending in a group */
	uint32_t n_rows;
	struct hr_group groups[HR_GROUPS_MAX];
	uint32_t n_groups;
	/* Used between hr__groups_start and hr__groups_finish: */
	uint32_t *unordered;	  /* row numbers, ascending */
	uint8_t *group, *refined; /* the group of each row, before and after a refinement */
	uint32_t most;
	/* Used by hr__groups_distinct: the number of the last pass that found each value. */
	uint32_t *met;
	uint32_t n_met, pass;
};

struct hr_groups *hr__groups_new(void);
void hr__groups_free(struct hr_groups *g);

/*
 * Begins with one group. The caller has stored n_rows ascending row numbers in `unordered`. `most`
 * is the maximum number of groups; with 1, rows keep their order.
 */
void hr__groups_start(struct hr_groups *g, uint32_t n_rows, uint32_t most);

/*
 * Splits each group into rows with equal values: values[i] belongs to row unordered[i]. Returns
 * false, and changes nothing, if there would be too many groups.
 */
bool hr__groups_refine(struct hr_groups *g, const uint32_t *values);

void hr__groups_finish(struct hr_groups *g, bool want_rows);

/*
 * Keeps only the first row of each value in each group. `value_of` has the value of each row;
 * values of n_values or more count as 0. Returns 0 or -ENOMEM.
 */
int hr__groups_distinct(struct hr_groups *g, const uint32_t *value_of, uint32_t n_values);

#endif
