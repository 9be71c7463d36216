/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - receives lines for people: standard error, or a client elsewhere */
#ifndef HEADRACE_QUERY_SINK_H
#define HEADRACE_QUERY_SINK_H

struct hr_sink {
	/* a message without its line end; further lines have hints */
	void (*line)(void *self, const char *text);
	void *self;
};

/* Formats and sends a line. Without memory it sends nothing. */
void hr_sink_line(const struct hr_sink *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
