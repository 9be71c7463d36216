/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - rows of a batch, put in an order in which some columns stay the same for long
 *
 * Purpose   SQL has no order of rows, and DuckDB groups, compares and filters a constant vector once
 *           instead of row by row. So rows of equal op (task, mount, pattern...) are handed out
 *           together when a statement asks for such a column. A column that would cut the batch
 *           into pieces too small to be worth it does not take part.
 * Owner     One scanning thread. Memory is for HR_BATCH_EVENTS rows.
 * Lifetime  hr__groups_new .. (hr__groups_start .. hr__groups_refine* .. hr__groups_finish)* ..
 *           hr__groups_free.
 */
#ifndef HEADRACE_QUERY_TABLES_GROUPS_H
#define HEADRACE_QUERY_TABLES_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#define HR_GROUPS_MAX 128u
/* A vector of DuckDB's holds 2048 rows: pieces of a quarter of that cost little more. */
#define HR_GROUPS_MIN_ROWS 512u

struct hr_group {
	uint32_t first; /* place of its first row in `rows` */
	uint32_t n;
	uint32_t row; /* one of its rows: all that there is to know when every column is the same */
};

struct hr_groups {
	uint32_t *rows; /* after hr__groups_finish: group by group, ascending within each */
	uint32_t n_rows;
	struct hr_group groups[HR_GROUPS_MAX];
	uint32_t n_groups;
	/* in between */
	uint32_t *unordered;	  /* the rows, ascending */
	uint8_t *group, *refined; /* of each */
	uint32_t most;
	/* hr__groups_distinct: by value, the number of the last pass that met it */
	uint32_t *met;
	uint32_t n_met, pass;
};

struct hr_groups *hr__groups_new(void); /* NULL: out of memory */
void hr__groups_free(struct hr_groups *g);

/*
 * Begins with one group; the caller fills `unordered` with n_rows row numbers, ascending. There will be at
 * most `most` groups: 1 leaves the rows in their order.
 */
void hr__groups_start(struct hr_groups *g, uint32_t n_rows, uint32_t most);

/*
 * Splits the groups by `values` (of unordered[0..n_rows)). False, and nothing changed, when that would
 * make too many.
 */
bool hr__groups_refine(struct hr_groups *g, const uint32_t *values);

/* Fills `groups`, and `rows` when the rows themselves are wanted. */
void hr__groups_finish(struct hr_groups *g, bool want_rows);

/*
 * Afterwards: of the rows of a group that have equal values, only the first stays. `value_of` is
 * indexed by row; values from `n_values` count as 0. -ENOMEM.
 */
int hr__groups_distinct(struct hr_groups *g, const uint32_t *value_of, uint32_t n_values);

#endif
