/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - receives lines of text for people and passes them on, to standard error or to a client
 */
#ifndef HEADRACE_QUERY_SINK_H
#define HEADRACE_QUERY_SINK_H

struct hr_sink {
	/* `text`: a message without a line end at its end; lines after the first one are hints */
	void (*line)(void *self, const char *text);
	void *self;
};

/* Sends a formatted line. Sends nothing if memory is short. */
void hr_sink_line(const struct hr_sink *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
