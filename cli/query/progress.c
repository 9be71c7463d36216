/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/sheet.h"
#include "query/duckdb/text_table.h"
#include "common/now.h"
#include "common/text.h"

#define FIRST_MS UINT64_C(1000)
#define LINES_MS UINT64_C(5000) /* time between lines if they cannot be rewritten */
#define ERASE	 "\r\033[K"
#define PREFIX	 "headrace: "
#define NOTE	 "note: "
#define DIM	 "\033[2m"
#define DIM_END	 "\033[0m"

void hr_progress_init(struct hr_progress *p, bool always)
{
	*p = (struct hr_progress){.terminal = isatty(STDERR_FILENO),
				  .started_ms = hr_now_ms(CLOCK_MONOTONIC)};
	pthread_mutex_init(&p->lock, NULL);
	p->on = p->terminal || always;
	p->next_ms = p->started_ms + FIRST_MS;
}

/* Call it with the lock held. */
static void erase(struct hr_progress *p)
{
	if (p->shown)
		fputs(ERASE, stderr);
	p->shown = false;
}

void hr_progress_done(struct hr_progress *p)
{
	erase(p);
	pthread_mutex_destroy(&p->lock);
}

static void print(struct hr_progress *p, uint64_t done, uint64_t total, const char *text,
		  uint64_t elapsed_ms)
{
	double seconds = (double)elapsed_ms / 1e3;

	erase(p);
	fputs("headrace: ", stderr);
	if (text != NULL && text[0] != '\0')
		hr_text_print(stderr, "%s", text);
	else if (total > 0)
		fprintf(stderr, "%3.0f %% of %" PRIu64 " batches of events",
			100.0 * (double)(done < total ? done : total) / (double)total, total);
	else
		fputs("working", stderr);
	fprintf(stderr, ", %.0f s%s", seconds, p->terminal ? "" : "\n");
	fflush(stderr);
	p->shown = p->terminal;
}

void hr_progress_show(struct hr_progress *p, uint64_t done, uint64_t total, const char *text)
{
	uint64_t now = hr_now_ms(CLOCK_MONOTONIC);

	pthread_mutex_lock(&p->lock);
	if (p->on && !p->answered && now >= p->next_ms) {
		print(p, done, total, text, now - p->started_ms);
		if (!p->terminal)
			p->next_ms = now + LINES_MS;
	}
	pthread_mutex_unlock(&p->lock);
}

/* Prints each line of a text as a message, wrapped to the width of the terminal. */
static void report_lines(const char *text)
{
	bool colour = hr_terminal_colour(STDERR_FILENO);
	unsigned width = hr_terminal_width(STDERR_FILENO);
	char *copy = strdup(text), *rest = copy, *line;

	while ((line = strsep(&rest, "\n")) != NULL) {
		bool dim = colour && strncmp(line, NOTE, strlen(NOTE)) == 0;
		struct hr_buffer wrapped = {0};

		hr_wrap(&wrapped, line, strlen(PREFIX), strlen(PREFIX), width);
		hr_buffer_add(&wrapped, "", 1);
		if (dim)
			fputs(DIM, stderr);
		hr_report("%s", wrapped.failed ? line : wrapped.data);
		if (dim)
			fputs(DIM_END, stderr);
		hr_buffer_done(&wrapped);
	}
	free(copy);
}

void hr_progress_line(void *self, const char *text)
{
	struct hr_progress *p = self;

	pthread_mutex_lock(&p->lock);
	erase(p);
	report_lines(text);
	pthread_mutex_unlock(&p->lock);
}

bool hr_progress_is_note(const char *text)
{
	return strncmp(text, "note: ", strlen("note: ")) == 0;
}

void hr_progress_line_only(void *self, const char *text)
{
	if (!hr_progress_is_note(text))
		hr_progress_line(self, text);
}

void hr_progress_answer(struct hr_progress *p)
{
	pthread_mutex_lock(&p->lock);
	erase(p);
	p->answered |= isatty(STDOUT_FILENO) != 0;
	pthread_mutex_unlock(&p->lock);
}

static ssize_t write_out(void *cookie, const char *buf, size_t bytes)
{
	size_t done = 0;

	hr_progress_answer(cookie);
	while (done < bytes) {
		ssize_t n = write(STDOUT_FILENO, buf + done, bytes - done);

		if (n < 0 && errno != EINTR)
			return 0;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}

FILE *hr_progress_stdout(struct hr_progress *p)
{
	return fopencookie(p, "w", (cookie_io_functions_t){.write = write_out});
}
