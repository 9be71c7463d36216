/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - receives lines of text for people and passes them on, to standard error or to a client
 */
#ifndef HEADRACE_QUERY_SINK_H
#define HEADRACE_QUERY_SINK_H

struct hr_sink {
	/* `text`: a message without the last line end; its further lines are hints */
	void (*line)(void *self, const char *text);
	void *self;
};

/* Formats and sends a line. If memory is short, sends nothing. */
void hr_sink_line(const struct hr_sink *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
