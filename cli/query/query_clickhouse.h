/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_clickhouse.h - questions to clickhouse://HOST/DATABASE
 *
 * A question about all jobs is SQL of ClickHouse: the user's own, or that of clickhouse/fleet/. For
 * a question about one job (--job), the frames of the job become a temporary store, so that all
 * named queries and all tables give the same answers as on a store.
 *
 * The main thread only. All functions report failures.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_CLICKHOUSE_H
#define HEADRACE_CLI_QUERY_QUERY_CLICKHOUSE_H

#include <stdatomic.h>

#include "cli/query/query.h"
#include "clickhouse/client.h"

/* clickhouse/fleet/: sorted by name; ends with a NULL name. */
extern const struct hr_named hr_fleet_queries[];

/*
 * Makes a client for questions (hr_ch_client_new), and asks the server once for its release.
 * -ENOTSUP: it is older than HR_CH_ANSWERS_FROM.
 */
int hr__query_client(const struct hr_ch_target *target, const atomic_bool *stop,
		     struct hr_ch_client **ret, char **ret_error);

/* Answers a question about all jobs. Returns the exit status. */
int hr_query_fleet(const struct hr_query_request *r, const char *address);

/*
 * Copies the frames of a job into a temporary store. Returns an exit status; after 0, *ret is its
 * path (malloc'ed), which the caller removes.
 */
int hr_query_pull(const char *address, const char *job, char **ret);

/*
 * ---- an answer of ClickHouse as a table, a list or CSV, like answers of stores (query_tsv.c) ----
 *
 * The answer is in the format TabSeparatedWithNamesAndTypes: lines with the names of columns, with
 * their types, and then one for each row. The functions change it.
 */

/*
 * Prints a table, or a list if that is the format of the request. `query`: its header chooses the
 * columns, and numbers have units; NULL: SQL of the user. Returns 0, -ENOMEM or the error of
 * writing.
 */
int hr_tsv_table(char *text, const struct hr_query_request *r, const struct hr_named *query,
		 FILE *to);

int hr_tsv_csv(char *text, FILE *to);

#endif
