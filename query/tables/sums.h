/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - adds up messages with equal keys
 *
 * headraced writes partial sums (rollups, file records, losses). All messages with the same key
 * make one row. The messages are sorted by key, so a row is a run of messages with equal keys. Only
 * cells that a statement reads are added up. Nothing is copied.
 *
 * hr_sums_new, hr_sums_add, hr_sums_group, hr_sums_done: `data` of a struct hr_rows
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
	size_t *starts; /* start of each row's run, and the end of the last run */
};

/* Reads the stream's frames of one kind into rows->data. Returns 0 or -ENOMEM. */
int hr_sums_new(struct hr_rows *rows, int body_case, struct hr_query_sums **ret);
void hr_sums_done(struct hr_rows *rows); /* also after a failure of hr_sums_new */

int hr_sums_add(struct hr_query_sums *s, uint64_t a, uint64_t b, uint64_t c, const void *msg);

int hr_sums_group(struct hr_rows *rows);

const struct hr_sums_entry *hr_sums_run(const struct hr_rows *rows, size_t row, size_t *ret_n);

/* The process of a row, for a table whose first key is the process. */
uint64_t hr_sums_proc(const struct hr_rows *rows, size_t row);

/*
 * Return the sum, the maximum, or the smallest value other than 0, of the uint64_t at offset
 * `member` of each message.
 */
uint64_t hr_sums_total(const struct hr_sums_entry *e, size_t n, size_t member);
uint64_t hr_sums_max(const struct hr_sums_entry *e, size_t n, size_t member);
uint64_t hr_sums_min(const struct hr_sums_entry *e, size_t n, size_t member);

#endif
