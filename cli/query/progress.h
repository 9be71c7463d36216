/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the line on standard error that shows a query's progress
 *
 * Purpose   Appears when a query takes longer than a second. On a terminal it is rewritten in
 *           place, and erased before messages and before the answer. If standard error is no
 *           terminal it needs --progress, and is a line every 5 s.
 * Owner     The command.
 * Threads   Any: one lock around what is shown.
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
	bool shown;    /* a line is on the terminal now */
	bool answered; /* the answer is on the same terminal: progress is no longer shown */
	uint64_t started_ms, next_ms;
};

/* `always`: also if standard error is no terminal. */
void hr_progress_init(struct hr_progress *p, bool always);
void hr_progress_done(struct hr_progress *p); /* erases the line */

/* `text` instead of the counts when it is not NULL and not empty. `total` 0: not known. */
void hr_progress_show(struct hr_progress *p, uint64_t done, uint64_t total, const char *text);

/* Prints a line like hr_report, after erasing the progress line; `self`: struct hr_progress. */
void hr_progress_line(void *self, const char *text);
static inline struct hr_sink hr_progress_sink(struct hr_progress *p)
{
	return (struct hr_sink){hr_progress_line, p};
}

/* Call it before output: erases the line; if output is a terminal, it does not return. */
void hr_progress_answer(struct hr_progress *p);

/* Standard output; its first byte erases the line. NULL: no memory. The caller closes it. */
FILE *hr_progress_stdout(struct hr_progress *p);

#endif
