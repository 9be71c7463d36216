/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - writes columns of decoded events to DuckDB vectors, for an array of row numbers
 *
 * events.c chooses the batch and the rows. A struct hr_emit belongs to one scanning thread.
 */
#ifndef HEADRACE_QUERY_TABLES_EMIT_H
#define HEADRACE_QUERY_TABLES_EMIT_H

#include "query/tables/internal.h"
#include "common/batch.h"

/* The values of a task (a thread of a process) in columns of processes. HR_TASK_NULL: unknown. */
#define HR_TASK_NULL INT64_MIN
struct hr_task_values {
	uint64_t proc;
	int64_t tid, pid, rank, local_rank, worker, loader, loader_worker;
};

struct hr_emit {
	struct hr_qstream *st;
	/* hr__emit_files replaces file ids by file numbers in file and file2. */
	struct hr_columns c;
	struct hr_task_values *tasks; /* c.n_tasks entries */
	uint32_t tasks_size;
	uint32_t *numbers[2]; /* room for file and file2 */
};

/*
 * Adds what a column needs: decoded columns (HR_COL_BIT()) to *want, and names (HR_NAMES_*) to
 * *names.
 */
void hr__emit_needs(unsigned column, uint32_t *want, unsigned *names);

/*
 * Rows with equal keys have equal values in the columns of the key. Rows are grouped by the keys in
 * this order, by keys with few values first.
 */
enum hr_emit_key {
	HR_KEY_STREAM, /* all rows of a batch have the same value */
	HR_KEY_MOUNT,
	HR_KEY_BITS,
	HR_KEY_OP,
	HR_KEY_PATTERN,
	HR_KEY_TASK,
	HR_KEY_FILE, /* rows are not grouped by it, because it has too many values */
	HR_KEY_NONE, /* each row has its own value */
};
enum hr_emit_key hr__emit_key(unsigned column);

/* Stores the keys of rows[0..n) in values[0..n). `key`: HR_KEY_MOUNT to HR_KEY_TASK. */
void hr__emit_keys(const struct hr_emit *e, enum hr_emit_key key, const uint32_t *rows, uint32_t n,
		   uint32_t *values);

/* Writes n rows of a column, all with the value of row `row`. */
void hr__emit_constant(const struct hr_emit *e, unsigned column, uint32_t row, uint32_t n,
		       duckdb_vector vector);

/*
 * Whether an operation in the bitmap may count items instead of bytes; `flags` has the item size.
 * Also true if the bitmap is empty.
 */
bool hr__emit_has_items(const uint8_t *ops, uint32_t bytes);

/* Replaces the batch's file ids by file numbers (0: none or unknown). Returns 0 or -ENOMEM. */
int hr__emit_files(struct hr_emit *e);

/* Looks up the processes of the batch's tasks. Returns 0 or -ENOMEM. */
int hr__emit_tasks(struct hr_emit *e);
void hr__emit_done(struct hr_emit *e);

void hr__emit_column(const struct hr_emit *e, unsigned column, const uint32_t *rows, uint32_t n,
		     struct hr_query_out *out);

#endif
