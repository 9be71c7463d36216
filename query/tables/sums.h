/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - adds up messages with equal keys
 *
 * headraced writes partial sums (rollups, file records, losses). All messages with the same key
 * make one row. The messages are sorted by key, so those of a row follow each other. Only cells
 * that a statement reads are added up.
 *
 * Call hr_sums_new, hr_sums_add for each message, hr_sums_group, and at last hr_sums_done.
 */
#ifndef HEADRACE_QUERY_TABLES_SUMS_H
#define HEADRACE_QUERY_TABLES_SUMS_H

#include <stddef.h>

#include "query/tables/rows.h"

struct hr_sums_entry {
	uint64_t key[3];
	const void *msg;
};

struct hr_query_sums {
	struct hr_frames frames;
	struct hr_sums_entry *entries;
	size_t n, size;
	size_t *starts; /* index of each row's first message, and then the number of messages */
};

/* Reads the frames of one kind from the stream. Returns 0 or -ENOMEM. */
int hr_sums_new(struct hr_rows *rows, int body_case, struct hr_query_sums **ret);
void hr_sums_done(struct hr_rows *rows); /* call it after a failure, too */

int hr_sums_add(struct hr_query_sums *s, uint64_t a, uint64_t b, uint64_t c, const void *msg);

int hr_sums_group(struct hr_rows *rows);

const struct hr_sums_entry *hr_sums_run(const struct hr_rows *rows, size_t row, size_t *ret_n);

/* Return the first message of a row, and its process, which must be the first part of the key. */
const void *hr_sums_first(const struct hr_rows *rows, size_t row);
uint64_t hr_sums_proc(const struct hr_rows *rows, size_t row);

/* Makes a cell of a column with FROM SUM to HIST. */
void hr__sums_cell(const struct hr_rows *rows, size_t row, const struct hr_sql_column *column,
		   struct hr_cell *c);

#endif
