/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - SQL over an opened catalogue
 *
 * Purpose   Binds the streams of a catalogue (store/store.h) to DuckDB as the tables of
 *           docs/sql.md and runs one read-only statement at a time. What the statement may see
 *           is what is bound; it can reach no file, change no setting and load nothing.
 * Owner     The caller owns the catalogue, which must outlive the query, and every string handed
 *           in.
 * Threads   One thread drives a query; DuckDB's own threads scan in parallel.
 *           hr_query_interrupt() is for any other thread.
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

#include "query/duckdb/duckdb_api.h"
#include "store/store.h"

#define HR_SILENT_NS UINT64_C(60000000000)

struct hr_query_options {
	uint64_t memory_bytes; /* DuckDB's limit; 0: half of the machine's */
	unsigned threads;      /* 0: as many as this process may run on */
	const char *spill;     /* folder for what does not fit, made when needed; NULL: none, such a
				  query fails */
	const char *parquet;   /* the one file that hr_query_parquet may write; NULL: none */
	uint64_t spill_bytes;  /* most that it may hold; 0: what the disk holds */
	uint64_t now_ns;       /* wall clock by which streams are silent; 0: the current one */
	uint64_t silent_ns;    /* not heard from for longer; 0: HR_SILENT_NS */
	bool no_prune;	       /* read every batch: for tests */
};

struct hr_query;

/* -ENOENT, -ELIBACC: no usable DuckDB; *ret_error (malloc'ed) says what to do. -ENOMEM, -EIO. */
int hr_query_new(const struct hr_catalog *catalog, const struct hr_query_options *options,
		 struct hr_query **ret, char **ret_error);
void hr_query_free(struct hr_query *q);

/* A named parameter, `$name` in the SQL. `text` NULL: SQL NULL. */
struct hr_query_arg {
	const char *name;
	const char *text;
	enum { HR_ARG_VARCHAR, HR_ARG_BIGINT, HR_ARG_DOUBLE } type;
};

/* Takes the answer, chunk by chunk as it is computed. A negative return ends the query with that
 * error. */
struct hr_query_sink {
	int (*begin)(void *self, duckdb_result *result); /* column names and types are known */
	int (*chunk)(void *self, duckdb_data_chunk chunk);
	int (*end)(void *self);
	void *self;
};

/*
 * Runs one statement. Errors: -EINVAL not one statement, or not read-only; -EBADMSG DuckDB
 * refused it or it failed; -EINTR interrupted; the sink's own. *ret_error is malloc'ed, set on
 * all but the sink's.
 */
int hr_query_run(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		 size_t n_args, const struct hr_query_sink *sink, char **ret_error);

/* As hr_query_run, with the answer written to the options' parquet file. */
int hr_query_parquet(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		     size_t n_args, char **ret_error);

/* Ends the running statement soon, from any thread. */
void hr_query_interrupt(struct hr_query *q);

/*
 * Frames that could not be read while scanning (damaged on disk): how many so far, and the first,
 * as text that belongs to the query. NULL when there was none.
 */
uint64_t hr_query_damaged(struct hr_query *q, const char **ret_first);

/* Batches of events that the last statement read, and skipped by their headers, so far; any thread. */
struct hr_query_scan {
	uint64_t batches_read;
	uint64_t batches_pruned;
	uint64_t batches; /* of all its scans that have begun */
};
void hr_query_scan(struct hr_query *q, struct hr_query_scan *ret);

#endif
