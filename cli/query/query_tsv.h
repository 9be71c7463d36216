/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_tsv.h - an answer of ClickHouse as a table, a list or CSV, like answers of stores
 *
 * The answer is in the format TabSeparatedWithNamesAndTypes: lines with the names of columns, with
 * their types, and then one for each row. The functions change it. One thread.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_TSV_H
#define HEADRACE_CLI_QUERY_QUERY_TSV_H

#include <stdio.h>

#include "cli/query/query_request.h"

/*
 * Prints a table, or a list if that is the format of the request. `query`: its header chooses the
 * columns, and numbers have units; NULL: SQL of the user. Returns 0, -ENOMEM or the error of
 * writing.
 */
int hr_tsv_table(char *text, const struct hr_query_request *r, const struct hr_named *query,
		 FILE *to);

int hr_tsv_csv(char *text, FILE *to);

#endif
