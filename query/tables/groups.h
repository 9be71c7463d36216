/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - orders the rows of a batch so that some columns stay constant for long
 *
 * Purpose   SQL has no order of rows, and DuckDB groups, compares and filters a constant vector
 *           once instead of row by row. So rows with the same op (task, mount, pattern...) are
 *           returned together if a statement needs such a column. A column that would divide the
 *           batch into too small pieces is not used.
 * Owner     One scanning thread. Memory is for HR_BATCH_EVENTS rows.
 * Lifetime  hr__groups_new .. (hr__groups_start .. hr__groups_refine* .. hr__groups_finish)* ..
 *           hr__groups_free.
 */
#ifndef HEADRACE_QUERY_TABLES_GROUPS_H
#define HEADRACE_QUERY_TABLES_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#define HR_GROUPS_MAX 128u
/* A vector of DuckDB holds 2048 rows: pieces of a quarter of that cost little more. */
#define HR_GROUPS_MIN_ROWS 512u

struct hr_group {
	uint32_t first; /* position of its first row in `rows` */
	uint32_t n;
	uint32_t row; /* one of its rows, which represents it when every column is constant */
};

struct hr_groups {
	uint32_t *rows; /* after hr__groups_finish: by group, ascending within each */
	uint32_t n_rows;
	struct hr_group groups[HR_GROUPS_MAX];
	uint32_t n_groups;
	/* while groups are refined */
	uint32_t *unordered;	  /* the rows, ascending */
	uint8_t *group, *refined; /* of each */
	uint32_t most;
	/* hr__groups_distinct: by value, the number of the last pass that saw it */
	uint32_t *met;
	uint32_t n_met, pass;
};

struct hr_groups *hr__groups_new(void); /* NULL: out of memory */
void hr__groups_free(struct hr_groups *g);

/*
 * Begins with one group; the caller fills `unordered` with n_rows row numbers, ascending. There
 * will be at most `most` groups: 1 leaves the rows in their order.
 */
void hr__groups_start(struct hr_groups *g, uint32_t n_rows, uint32_t most);

/* Splits the groups by `values` (of unordered[0..n_rows)). False: too many; unchanged. */
bool hr__groups_refine(struct hr_groups *g, const uint32_t *values);

/* Fills `groups`, and `rows` when the rows themselves are needed. */
void hr__groups_finish(struct hr_groups *g, bool want_rows);

/*
 * Of the rows of a group with equal values, keeps only the first. `value_of` is indexed by row;
 * values from `n_values` on count as 0. -ENOMEM.
 */
int hr__groups_distinct(struct hr_groups *g, const uint32_t *value_of, uint32_t n_values);

#endif
