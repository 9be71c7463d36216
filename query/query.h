/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - SQL over an opened catalogue
 *
 * Shows the streams of a catalogue (store/store.h) as the tables of docs/sql.md. Runs one read-only
 * statement at a time, which can read no file, change no setting and load nothing. The caller's
 * catalogue and strings must outlive the query.
 *      SQL --parse--> prune (prune.h): which batches of events are needed
 *       |
 *       +--> DuckDB --> views --> hr_events() (events.c), hr_rollups()... (rows.h)
 *                                    |
 *                                    +--> hr_batch_load, hr_batch_decode: the columns that the
 *                                         plan needs, batch by batch, on all cores
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

/*
 * Makes a query. Returns 0, -ENOMEM, -EIO, or -ENOENT or -ELIBACC if there is no usable DuckDB.
 * Then *ret_error (malloc'ed) has advice.
 */
int hr_query_new(const struct hr_catalog *catalog, const struct hr_query_options *options,
		 struct hr_query **ret, char **ret_error);
/* Makes a query that runs no SQL, for hr_diagnosis_make (diagnosis/diagnosis.h). 0 or -ENOMEM. */
int hr_query_new_without_sql(const struct hr_catalog *catalog, struct hr_query **ret);
void hr_query_free(struct hr_query *q);

/*
 * Runs one statement. -EINVAL: `sql` is several statements, or one that writes; -EBADMSG: DuckDB
 * failed; -EINTR: interrupted. These errors set *ret_error (malloc'ed). Of the errors of the sink,
 * only those of `begin` may.
 */
int hr_query_run(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		 size_t n_args, const struct hr_query_sink *sink, char **ret_error);

/*
 * Runs a SELECT, and writes the answer to the file `parquet` of the options. `notes`: lines about
 * data that it lacks, which the file has as the metadata "headrace_notes".
 */
int hr_query_parquet(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		     size_t n_args, const char *notes, char **ret_error);

/*
 * Stores the answer of a SELECT in the temporary table `answer`, for further statements. The column
 * hr_row numbers its rows. The errors are those of hr_query_run.
 */
int hr_query_keep(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		  size_t n_args, char **ret_error);

/* Ends the running statement soon. Any thread may call it. */
void hr_query_interrupt(struct hr_query *q);

/* Returns the name of table `i`, from 0; NULL: there are fewer tables. */
const char *hr_query_table_name(unsigned i);

/* Returns the number of damaged frames so far. *ret_first describes the first one, or is NULL. */
uint64_t hr_query_damaged(struct hr_query *q, const char **ret_first);

/* Numbers of batches of events, of the last statement so far. Any thread may call hr_query_scan. */
struct hr_query_scan {
	uint64_t batches_read;
	uint64_t batches_pruned;
	uint64_t batches; /* in all scans that have begun */
};
void hr_query_scan(struct hr_query *q, struct hr_query_scan *ret);

#endif
