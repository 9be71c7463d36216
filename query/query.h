/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - SQL over an opened catalogue
 *
 * Purpose   Binds the streams of a catalogue (store/store.h) to DuckDB as the tables of docs/sql.md
 *           and runs one read-only statement at a time. The statement sees only these tables: it
 *           can read no file, change no setting and load nothing.
 * Owner     The caller owns the catalogue, which must outlive the query, and every string handed
 *           in.
 * Threads   One thread drives a query; DuckDB's own threads scan in parallel. hr_query_interrupt()
 *           is for any other thread.
 * Lifetime  hr_query_new .. any number of hr_query_run .. hr_query_free.
 *
 *      SQL --parse--> prune (prune.h): which batches can matter
 *       |
 *       +--> DuckDB --> views --> hr_events() (events.c), hr_rollups()... (rows.h)
 *                                    |
 *                                    +--> hr_stream_read, hr_batch_decode: the columns that the
 *                                         plan needs, a batch per task, on all cores
 */
#ifndef HEADRACE_QUERY_QUERY_H
#define HEADRACE_QUERY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "query/duckdb/statement.h"
#include "store/store.h"

struct hr_query;

/* -ENOENT, -ELIBACC: no usable DuckDB; *ret_error (malloc'ed) has advice. -ENOMEM, -EIO. */
int hr_query_new(const struct hr_catalog *catalog, const struct hr_query_options *options,
		 struct hr_query **ret, char **ret_error);
void hr_query_free(struct hr_query *q);

/*
 * Runs one statement. Errors: -EINVAL not one statement, or not read-only; -EBADMSG DuckDB refused
 * it or it failed; -EINTR interrupted; the sink's own. *ret_error is malloc'ed; errors of the sink
 * leave it untouched.
 */
int hr_query_run(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		 size_t n_args, const struct hr_query_sink *sink, char **ret_error);

/* As hr_query_run, with the answer written to the options' parquet file. */
int hr_query_parquet(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		     size_t n_args, char **ret_error);

/* Ends the running statement soon, from any thread. */
void hr_query_interrupt(struct hr_query *q);

/*
 * Frames that could not be read while scanning (damaged on disk): how many so far, and a text about
 * the first, owned by the query; NULL when there was none.
 */
uint64_t hr_query_damaged(struct hr_query *q, const char **ret_first);

/* Batches that the last statement has read, and skipped by their headers, so far; any thread. */
struct hr_query_scan {
	uint64_t batches_read;
	uint64_t batches_pruned;
	uint64_t batches; /* of all of its scans that have begun */
};
void hr_query_scan(struct hr_query *q, struct hr_query_scan *ret);

#endif
