/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.h - what an answer lacks: damaged frames, losses, missing events, ends and ranks
 *
 * Call these functions between statements, from the thread that drives the query.
 */
#ifndef HEADRACE_QUERY_NOTES_H
#define HEADRACE_QUERY_NOTES_H

#include "query/named.h"
#include "query/query.h"
#include "query/sink.h"

/*
 * Returns a line about the removed streams of `job`, or of all jobs (NULL), malloc'ed. NULL: none
 * was removed, or no memory.
 */
char *hr_notes_retired(const struct hr_catalog *c, const char *job);

/* Runs the `note` lines of a named query (named.h). Returns 0 or the error of hr_query_run. */
int hr_named_notes(struct hr_query *q, const struct hr_named_args *a,
		   const struct hr_sink *messages);

/* Prints at most `max` notes, and the number of further notes. Returns 0 or -errno. */
int hr_query_notes(struct hr_query *q, unsigned max, const struct hr_sink *messages);

#endif
