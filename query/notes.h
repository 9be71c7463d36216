/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.h - what an answer lacks
 *
 * Purpose   The notes of an answer list what it does not cover: damaged parts of the store,
 *           operations lost, spans with counters only, streams that have not ended, ranks not seen.
 * Threads   The one that drives the query, between statements.
 */
#ifndef HEADRACE_QUERY_NOTES_H
#define HEADRACE_QUERY_NOTES_H

#include "query/named.h"
#include "query/query.h"
#include "query/sink.h"

/* Removed jobs: one job or (NULL) all, as one line, malloc'ed. NULL: none, or no memory. */
char *hr_notes_retired(const struct hr_catalog *c, const char *job);

/* Prints what the `note` lines of a named query find (named.h). 0 or hr_query_run's error. */
int hr_named_notes(struct hr_query *q, const struct hr_named_args *a,
		   const struct hr_sink *messages);

/* Prints one line for each note, at most `max`, and how many more there are. */
int hr_query_notes(struct hr_query *q, unsigned max, const struct hr_sink *messages);

#endif
