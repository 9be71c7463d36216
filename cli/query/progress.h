/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the line on standard error that shows a query's progress
 *
 * It appears when a query takes longer than a second. On a terminal it is rewritten in place, and
 * erased before messages and the answer. Without a terminal it needs --progress, and a line is
 * printed every 5 s. Any thread may call these functions.
 */
#ifndef HEADRACE_CLI_QUERY_PROGRESS_H
#define HEADRACE_CLI_QUERY_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "query/sink.h"

struct hr_progress {
	pthread_mutex_t lock;
	bool on, terminal;
	bool shown;
	bool answered; /* the answer has begun on a terminal, so progress is not shown */
	uint64_t started_ms, next_ms;
};

/* `always`: show progress also if standard error is no terminal. */
void hr_progress_init(struct hr_progress *p, bool always);
void hr_progress_done(struct hr_progress *p); /* erases the line */

/* Shows `text`, or the counts if `text` is NULL or empty. `total` 0: unknown. */
void hr_progress_show(struct hr_progress *p, uint64_t done, uint64_t total, const char *text);

/* Prints a line like hr_report, after erasing the progress. `self`: struct hr_progress. */
void hr_progress_line(void *self, const char *text);

/* Whether a line states which data an answer lacks. hr_progress_line_only prints other lines. */
bool hr_progress_is_note(const char *text);
void hr_progress_line_only(void *self, const char *text);

static inline struct hr_sink hr_progress_sink(struct hr_progress *p, bool without_notes)
{
	return (struct hr_sink){without_notes ? hr_progress_line_only : hr_progress_line, p};
}

/* Call it before the answer: erases the line, and stops progress if the answer is on a terminal. */
void hr_progress_answer(struct hr_progress *p);

/* Returns standard output as a FILE that first erases the line. Close it. NULL: no memory. */
FILE *hr_progress_stdout(struct hr_progress *p);

#endif
