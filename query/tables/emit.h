/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - writes columns of decoded events to DuckDB vectors, for an array of row numbers
 *
 * events.c chooses the rows. Each scanning thread has its own struct hr_emit.
 */
#ifndef HEADRACE_QUERY_TABLES_EMIT_H
#define HEADRACE_QUERY_TABLES_EMIT_H

#include "query/tables/internal.h"
#include "common/batch.h"

/* The values of a task (a thread of a process) in the columns `proc` to `tid`. */
struct hr_task_values {
	int64_t values[HR_EVENTS_tid + 1 - HR_STREAM_END];
};

struct hr_emit {
	struct hr_qstream *st;
	/* The decoded columns. hr__emit_files changes file ids in them to file numbers. */
	struct hr_columns c;
	struct hr_task_values *tasks; /* c.n_tasks elements */
	uint32_t tasks_size;
	uint32_t *numbers[2]; /* memory for the file numbers of `file` and `file2` */
};

/*
 * What determines the value of a column. Rows with the same mount, for example, have the same
 * values in all columns with HR_KEY_MOUNT. Rows are grouped by the keys in this order: keys with
 * few values come first.
 */
enum hr_emit_key {
	HR_KEY_STREAM, /* all rows of a batch have the same value */
	HR_KEY_MOUNT,
	HR_KEY_BITS,
	HR_KEY_OP,
	HR_KEY_PATTERN,
	HR_KEY_TASK,
	HR_KEY_FILE, /* too many values: rows are not grouped by file */
	HR_KEY_NONE, /* each row has its own value */
};

struct hr_event_column {
	/* Fills `out` with the values of these n rows. */
	void (*emit)(const struct hr_emit *e, const uint32_t *rows, uint32_t n,
		     struct hr_query_out *out);
	uint32_t want;	/* the decoded columns that it needs: HR_COL_BIT() */
	unsigned names; /* HR_NAMES_* */
	enum hr_emit_key key;
};
extern const struct hr_event_column hr__event_columns[HR_EVENTS_END];

/* Stores the key of each of the n rows in `values`. `key` is HR_KEY_MOUNT to HR_KEY_TASK. */
void hr__emit_keys(const struct hr_emit *e, enum hr_emit_key key, const uint32_t *rows, uint32_t n,
		   uint32_t *values);

/* Fills n rows of a column with its value in row `row`. */
void hr__emit_constant(const struct hr_emit *e, unsigned column, uint32_t row, uint32_t n,
		       duckdb_vector vector);

/* Changes file ids of the batch to file numbers (0: none or unknown). Returns 0 or -ENOMEM. */
int hr__emit_files(struct hr_emit *e);

/* Looks up the process of each task of the decoded batch. Returns 0 or -ENOMEM. */
int hr__emit_tasks(struct hr_emit *e);
void hr__emit_done(struct hr_emit *e);

#endif
