/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of DFTracer, of the DLIO profiler before it, and of `headrace export --to pfw`: one JSON
 * object per line, in four dialects (docs/import.md), which may be mixed in a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/pfw/pfw_state.h"

#define BUFFER_BYTES (512u << 10)
#define JOINS_MOST   8u /* line ends in the strings of one event */
#define PROBE_LINES  64u

/* ---- one line -------------------------------------------------------------------------------- */

static void line_bad(struct pfw *p)
{
	if (p->n_bad++ == 0)
		p->first_bad = p->n_lines;
}

/* Returns the line end after `from`. NULL: none. */
static const char *line_end(const struct hr_window *b, const char *from)
{
	return memchr(from, '\n', (size_t)(b->p + b->used - from));
}

/*
 * Reads a line whose strings contain line ends: tries longer lines, up to the next one that begins
 * like an event. *ret_end: the end of the line.
 */
static int line_join(struct pfw *p, const struct hr_window *b, const char *line,
		     const char **ret_end)
{
	const char *end = *ret_end;
	int r = -EAGAIN;

	for (unsigned i = 0; i < JOINS_MOST && r == -EAGAIN; i++) {
		if (end + 1 >= b->p + b->used || end[1] == '{' || end[1] == '[')
			return -EBADMSG;
		end = line_end(b, end + 1);
		if (!end)
			return -EBADMSG;
		r = hr__pfw_line(line, (size_t)(end - line), &p->line);
	}
	if (r == 0)
		*ret_end = end;
	return r;
}

/* Converts the line at `line`, whose end is *end. Errors are fatal. */
static int line_read(struct pfw *p, const struct hr_window *b, const char *line, const char **end)
{
	int r = hr__pfw_line(line, (size_t)(*end - line), &p->line);

	p->n_lines++;
	if (__builtin_expect(r == -EAGAIN, 0))
		r = line_join(p, b, line, end);
	if (!r)
		r = hr__pfw_event(p);
	else if (r > 0)
		return 0;
	if (__builtin_expect(r == -EBADMSG || r == -EAGAIN, 0)) {
		line_bad(p);
		return 0;
	}
	return r;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The bytes after the last line end are a line, or a part of one if the file is cut. */
static int last_line(struct pfw *p, struct hr_window *b)
{
	const char *line = b->p + b->at, *end = b->p + b->used;
	uint64_t bad = p->n_bad;
	int r;

	if (line == end)
		return 0;
	r = line_read(p, b, line, &end);
	if (p->n_bad > bad) {
		p->n_bad = bad;
		p->cut = true;
	}
	return r;
}

static int lines_read(struct pfw *p, struct hr_window *b)
{
	int r = 0;

	while (!r && !b->ended) {
		const char *line = b->p + b->at, *end;

		while (!r && (end = line_end(b, line)) != NULL) {
			r = line_read(p, b, line, &end);
			line = end + 1;
		}
		b->at = (size_t)(line - b->p);
		if (hr_import_stopped(p->f))
			return -ECANCELED;
		if (!r)
			r = hr_window_more(b);
		if (r == -E2BIG) { /* not a line: skips it */
			p->n_lines++;
			line_bad(p);
			b->at = b->used;
			r = 0;
		}
		r = r > 0 ? 0 : r;
	}
	return r ? r : last_line(p, b);
}

static void problems_report(struct pfw *p)
{
	struct hr_import_file *f = p->f;

	hr_import_bad(f, &(struct hr_import_bad){p->n_bad, p->n_lines, "lines", p->first_bad});
	hr_import_missing(f, HR_LOSS_IMPORT_CUT, p->cut && !hr_input_cut(f->input),
			  "the last line is cut or not valid: a process that is killed leaves such "
			  "a line");
	hr_import_missing(f, HR_LOSS_IMPORT_KINDS, p->n_kinds,
			  "%" PRIu64 " events of other kinds (counters, marks) were not imported",
			  p->n_kinds);
	hr_import_missing(f, HR_LOSS_IMPORT_EMPTY, !p->n_events && !hr_input_cut(f->input),
			  "no events");
}

/* Whether the pids of dialect A are ranks: it stores the process's id if the job does not use MPI. */
static bool pids_are_ranks(const struct hr_import_file *f)
{
	uint64_t largest = hr_import_largest_pid(f);

	if (hr_import_ranks(f))
		return largest < hr_import_ranks(f);
	return largest < 4 * (uint64_t)hr_import_files(f) + 16;
}

static int pfw_read(struct hr_import_file *f)
{
	struct pfw p = {.f = f, .unit_ns = 1000, .ranks = pids_are_ranks(f)};
	struct hr_window b;
	int r = hr_window_init(&b, f->input, BUFFER_BYTES);

	if (!r)
		r = lines_read(&p, &b);
	if (!r)
		problems_report(&p);
	hr__pfw_done(&p);
	free(b.p);
	return r;
}

/* ---- detection ------------------------------------------------------------------------------- */

/* Accepts a file with an event in its first lines, or with only its first bracket. */
static bool pfw_probe(const uint8_t *head, size_t bytes)
{
	const char *p = (const char *)head, *end = p + bytes, *next;
	struct hr_pfw_line line = {0};
	bool nothing = true;

	hr__pfw_line_init();
	for (unsigned i = 0; i < PROBE_LINES && p < end; i++, p = next + 1) {
		int r;

		next = memchr(p, '\n', (size_t)(end - p));
		if (!next)
			next = end;
		r = hr__pfw_line(p, (size_t)(next - p), &line);
		if (r == 0 && hr_pfw_has(&line, HR_PFW_NAME) &&
		    (hr_pfw_has(&line, HR_PFW_PH) || hr_pfw_has(&line, HR_PFW_DUR)))
			return true;
		nothing = nothing && r == 1;
	}
	return nothing;
}

const struct hr_reader hr_reader_pfw = {
    .name = "pfw",
    .what = "DFTracer trace",
    .probe = pfw_probe,
    .survey = hr__pfw_survey,
    .read = pfw_read,
};
