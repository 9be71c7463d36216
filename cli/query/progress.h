/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the line on standard error that says how far a query has come
 *
 * Purpose   Appears when a query takes longer than a second; on a terminal it is rewritten in place and gone when anything else is
 *           said or the answer begins there. Where standard error is no terminal it needs --progress, and is a line every 5 s.
 * Owner     The command that asks.
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
	bool answered; /* the answer is on the same terminal: nothing more is shown */
	uint64_t started_ms, next_ms;
};

/* `always`: also where standard error is no terminal. */
void hr_progress_init(struct hr_progress *p, bool always);
void hr_progress_done(struct hr_progress *p); /* takes the line away */

/* `text` instead of the counts when it is not NULL and not empty. `total` 0: not known. */
void hr_progress_show(struct hr_progress *p, uint64_t done, uint64_t total, const char *text);

/* Says a line as hr_report does, the progress line taken away first; `self` is the struct hr_progress. */
void hr_progress_line(void *self, const char *text);
static inline struct hr_sink hr_progress_sink(struct hr_progress *p)
{
	return (struct hr_sink){hr_progress_line, p};
}

/* A piece of the answer goes to standard output now: the line is taken away, and when that is a terminal, too, for good. */
void hr_progress_answer(struct hr_progress *p);

/* Standard output, before whose first byte the line is taken away. NULL: no memory. The caller closes it. */
FILE *hr_progress_stdout(struct hr_progress *p);

#endif
