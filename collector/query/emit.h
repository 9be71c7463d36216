/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - decoded events to DuckDB vectors, column by column
 *
 * Purpose   Every column of `events` is one function over an array of row numbers; the scan
 *           (events.c) decides which batch and which rows.
 * Threads   A struct hr_emit belongs to one scanning thread.
 */
#ifndef HEADRACE_QUERY_EMIT_H
#define HEADRACE_QUERY_EMIT_H

#include "collector/query/internal.h"
#include "common/batch.h"

/* What a task's process says, by row; HR_TASK_NULL where nothing is known. */
#define HR_TASK_NULL INT64_MIN
struct hr_task_values {
	uint64_t proc;
	int64_t tid, pid, rank, local_rank, worker, loader, loader_worker;
};

/* One decoded batch of one stream. */
struct hr_emit {
	struct hr_qstream *st;
	struct hr_columns c;
	struct hr_task_values *tasks; /* c.n_tasks entries */
	uint32_t tasks_size;
};

/* Adds what a column needs decoded (HR_COL_BIT()) and named (HR_NAMES_*). HR_EVENTS_END needs
 * nothing. */
void hr__emit_needs(unsigned column, uint32_t *want, unsigned *names);

/* Whether any of the columns is a real one. */
bool hr__emit_any(const uint16_t *columns, unsigned n);

/* Whether a batch holds an op whose bytes are items of `flags` bytes. An empty bitmap: it may. */
bool hr__emit_has_items(const uint8_t *ops, uint32_t bytes);

/* Looks up the processes of the batch's tasks. 0 or -ENOMEM. */
int hr__emit_tasks(struct hr_emit *e);
void hr__emit_done(struct hr_emit *e);

/* Writes one column of rows[0..n). */
void hr__emit_column(const struct hr_emit *e, unsigned column, const uint32_t *rows, uint32_t n,
		     struct hr_out *out);

#endif
