/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.h - what is missing behind an answer
 *
 * Purpose   Every answer says what it does not know: damaged parts of the store, operations
 *           lost, spans with counters only, streams that have not ended, ranks not seen.
 * Threads   The one that drives the query, between statements.
 */
#ifndef HEADRACE_QUERY_NOTES_H
#define HEADRACE_QUERY_NOTES_H

#include "query/named.h"
#include "query/query.h"
#include "query/sink.h"

/*
 * What was removed from the stores and is in no answer, of one job or (NULL) of all, as one line, malloc'ed. NULL: nothing, or no
 * memory.
 */
char *hr_notes_retired(const struct hr_catalog *c, const char *job);

/* Says what the `note` lines of a named query find (named.h). 0 or hr_query_run's error. */
int hr_named_notes(struct hr_query *q, const struct hr_named_args *a,
		   const struct hr_sink *messages);

/* Says one line for each note, at most `max`, and how many more there are. */
int hr_query_notes(struct hr_query *q, unsigned max, const struct hr_sink *messages);

#endif
