/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow.h - answers as a stream of Apache Arrow (arrow.apache.org/docs/format/Columnar.html, IPC)
 *
 * A sink (statement.h). It writes a schema, and then batches of at most some 100,000 rows. A value
 * of the stream has the type of SQL, except that DECIMAL and HUGEINT become decimal128. Other types
 * than numbers, texts, dates, times and lists of these are an error.
 */
#ifndef HEADRACE_QUERY_DUCKDB_ARROW_H
#define HEADRACE_QUERY_DUCKDB_ARROW_H

#include <stdio.h>

#include "query/duckdb/statement.h"

struct hr_arrow;

/* `notes`: lines about data that the answer lacks: metadata "headrace_notes". 0 or -ENOMEM. */
int hr_arrow_new(FILE *to, const char *notes, struct hr_arrow **ret);
void hr_arrow_free(struct hr_arrow *a); /* accepts NULL */

/* Its errors: -ENOTSUP (a type that Arrow lacks), -ENOMEM, and errors of writing. */
struct hr_query_sink hr_arrow_sink(struct hr_arrow *a);
uint64_t hr_arrow_rows(const struct hr_arrow *a);

#endif
