/* SPDX-License-Identifier: Apache-2.0 */
#include "import/strace/strace_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "import/stream.h"

#define FIRST_BYTES 16384u
#define DAY_NS	    UINT64_C(86400000000000)

struct strace_lines {
	struct hr_window w;
	struct hr_input *count;
	uint64_t head_bytes;
	bool begun; /* the merge has returned a line */
	int32_t tid;
	uint64_t time_ns; /* of `line`, or of an earlier one */
	uint64_t raw_ns;  /* the same, as strace wrote it */
	uint64_t base_ns; /* to add to what strace wrote: days, or the steps so far */
	bool counts;	  /* the table of counts has begun */
	struct hr_strace_line line;
	bool bad, torn;
};

struct strace_lines *hr__strace_lines_new(struct hr_input *in, int32_t tid, struct hr_input *count)
{
	struct strace_lines *l = calloc(1, sizeof(*l));

	if (!l || hr_window_init(&l->w, in, FIRST_BYTES)) {
		free(l);
		hr_input_close(in);
		return NULL;
	}
	l->tid = tid;
	l->count = count;
	l->head_bytes = hr_input_bytes(in);
	return l;
}

void hr__strace_lines_free(struct strace_lines *l)
{
	if (!l)
		return;
	if (l->count)
		hr_input_count(l->count, hr_input_bytes(l->w.in) - l->head_bytes);
	hr_input_close(l->w.in);
	free(l->w.p);
	free(l);
}

/*
 * Makes the time of a line one that does not begin again. Without a date, 0 is the first moment, or
 * midnight before it.
 */
static void time_make(struct strace_lines *l)
{
	struct hr_strace_line *line = &l->line;
	uint64_t raw_ns = line->time_ns;

	if (line->clock == HR_STRACE_NO_CLOCK)
		return;
	if (line->clock == HR_STRACE_STEP)
		l->base_ns += raw_ns;
	else if (line->clock == HR_STRACE_DAY && raw_ns + DAY_NS / 2 < l->raw_ns)
		l->base_ns += DAY_NS;
	l->raw_ns = raw_ns;
	line->time_ns = line->clock == HR_STRACE_STEP ? l->base_ns : l->base_ns + raw_ns;
	if (line->clock != HR_STRACE_UNIX)
		line->time_ns += HR_IMPORT_CLOCK_NS;
	if (line->clock == HR_STRACE_DAY && line->time_ns <= l->time_ns &&
	    line->time_ns + 1000000000 > l->time_ns)
		line->time_ns = l->time_ns + 1; /* -t has no fractions: keeps the order */
	l->time_ns = line->time_ns;
}

/*
 * Finds the next line. A line that is too long is divided, so both parts are bad lines. 1; 0: no
 * more; -errno.
 */
static int lines_next(struct strace_lines *l)
{
	struct hr_window *w = &l->w;
	size_t seen = 0;

	for (;;) {
		char *from = w->p + w->at, *end = NULL;
		size_t left = w->used - w->at;
		int r;

		if (left > seen)
			end = memchr(from + seen, '\n', left - seen);
		if (end || ((w->ended || left >= HR_WINDOW_MOST) && left)) {
			size_t n = end ? (size_t)(end - from) : left;

			w->at += n + (end != NULL);
			l->torn = !end && w->ended;
			l->bad = hr__strace_line(from, n, &l->line) != 0;
			if (l->line.kind == HR_STRACE_COUNTS)
				l->counts = true;
			if (l->counts) {
				l->bad = l->torn = false;
				l->line.kind = HR_STRACE_NOTHING;
			}
			if (!l->line.tid)
				l->line.tid = l->tid;
			time_make(l);
			return 1;
		}
		if (w->ended)
			return 0;
		seen = left;
		r = hr_window_more(w);
		if (r < 0)
			return r;
	}
}

/* ---- heap ------------------------------------------------------------------------------------ */

static void heap_sink(struct strace_merge *m, size_t i)
{
	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->n; child++)
			if (m->v[child]->time_ns < m->v[least]->time_ns)
				least = child;
		if (least == i)
			return;
		struct strace_lines *l = m->v[i];

		m->v[i] = m->v[least];
		m->v[least] = l;
		i = least;
	}
}

int hr__strace_merge_add(struct strace_merge *m, struct strace_lines *l)
{
	int r = lines_next(l);

	if (r <= 0 || !hr_array_reserve(m->v, m->n, m->room)) {
		hr__strace_lines_free(l);
		return r > 0 ? -ENOMEM : r;
	}
	m->v[m->n++] = l;
	for (size_t i = m->n - 1; i > 0 && m->v[(i - 1) / 2]->time_ns > m->v[i]->time_ns;
	     i = (i - 1) / 2) {
		struct strace_lines *up = m->v[(i - 1) / 2];

		m->v[(i - 1) / 2] = m->v[i];
		m->v[i] = up;
	}
	return 0;
}

int hr__strace_merge_next(struct strace_merge *m, struct hr_strace_line *ret, bool *ret_bad,
			  bool *ret_torn)
{
	struct strace_lines *l;

	/* The first line of the heap was returned by the last call. */
	if (m->n && m->v[0]->begun) {
		int r = lines_next(m->v[0]);

		if (r < 0)
			return r;
		m->v[0]->begun = false;
		if (r == 0) {
			hr__strace_lines_free(m->v[0]);
			m->v[0] = m->v[--m->n];
		}
		heap_sink(m, 0);
	}
	if (!m->n)
		return 0;
	l = m->v[0];
	l->begun = true;
	*ret = l->line;
	*ret_bad = l->bad;
	*ret_torn = l->torn;
	return 1;
}

void hr__strace_merge_done(struct strace_merge *m)
{
	for (size_t i = 0; i < m->n; i++)
		hr__strace_lines_free(m->v[i]);
	free(m->v);
	*m = (struct strace_merge){0};
}
