/* SPDX-License-Identifier: Apache-2.0 */
/* voice.h - where lines for people go: standard error, or a client elsewhere */
#ifndef HEADRACE_QUERY_VOICE_H
#define HEADRACE_QUERY_VOICE_H

struct hr_voice {
	void (*say)(void *self, const char *text); /* one line, without its end */
	void *self;
};

/* Formats and says; without memory it says nothing. */
void hr_voice_say(const struct hr_voice *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
