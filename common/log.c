/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fnv.h"
#include "common/text.h"

#define QUIET_S	   60
#define KEYS	   256u /* keys can share an entry: then more lines are written */
#define LINE_BYTES 1024

static struct {
	uint64_t key;
	time_t logged_s;
	unsigned left_out;
} keys[KEYS];
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;

/* Escapes the text: text of a peer must not forge lines or control a terminal. */
static void log_line(enum hr_log_level level, const char *raw, unsigned left_out)
{
	char more[64] = "", *line = hr_text_line(raw);
	const char *text = line ? line : "out of memory";

	if (left_out > 0)
		snprintf(more, sizeof(more), " (%u similar messages were suppressed)", left_out);
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s%s\n", (int)level, text, more);
	else
		fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, text, more);
	free(line);
}

void hr_log(enum hr_log_level level, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_line(level, line, 0);
}

/* Whether to write a line for this key. *ret_left_out: lines left out since the last one. */
static bool log_due(uint64_t hash, unsigned *ret_left_out)
{
	unsigned slot = (unsigned)((hash ^ hash >> 32) % KEYS);
	struct timespec now;
	bool same, quiet;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&keys_lock);
	same = keys[slot].key == hash && keys[slot].logged_s != 0;
	quiet = same && now.tv_sec - keys[slot].logged_s < QUIET_S;
	*ret_left_out = same ? keys[slot].left_out : 0;
	if (quiet) {
		keys[slot].left_out++;
	} else {
		keys[slot].key = hash;
		keys[slot].logged_s = now.tv_sec ? now.tv_sec : 1;
		keys[slot].left_out = 0;
	}
	pthread_mutex_unlock(&keys_lock);
	return !quiet;
}

void hr_log_about(enum hr_log_level level, const char *key, const char *format, ...)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, key, strlen(key));
	char line[LINE_BYTES];
	unsigned left_out;
	va_list args;

	if (!log_due(hash, &left_out))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_line(level, line, left_out);
}
