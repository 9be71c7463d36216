/* SPDX-License-Identifier: Apache-2.0 */
/* The first region of a log: the job, its command and its mounts. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "export/darshan/darshan_internal.h"

#define NS_PER_S INT64_C(1000000000)

/* Text of a fixed size. A piece that does not fit is left out. */
struct job_text {
	char *text;
	size_t n, room; /* the room includes the NUL */
};

__attribute__((format(printf, 2, 3))) static bool text_add(struct job_text *t, const char *format,
							   ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->text + t->n, t->room - t->n, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->room - t->n) {
		t->text[t->n] = '\0';
		return false;
	}
	t->n += (size_t)n;
	return true;
}

/* Returns the first number in the job's id; 0: none. */
static int64_t job_number(const char *id)
{
	while (*id != '\0' && !isdigit((unsigned char)*id))
		id++;
	return strtoll(id, NULL, 10);
}

/* ---- metadata ---- */

static void metadata_write(const struct hr__darshan *d, struct hr_darshan_job *job)
{
	struct job_text t = {job->metadata, 0, sizeof(job->metadata)};
	const struct hr_stream *s = d->x->walk->streams[0].s;
	unsigned long long left_out = d->left_out, without_offset = d->without_offset;
	char *name = hr_text_line(s->job);

	/* PyDarshan requires lib_ver. */
	text_add(&t, "lib_ver=headrace-" HEADRACE_VERSION "\n");
	if (name != NULL)
		text_add(&t, "headrace_job=%s\n", name);
	free(name);
	if (d->n_unranked > 0)
		text_add(&t, "headrace_processes_without_rank=%llu\n",
			 (unsigned long long)d->n_unranked);
	if (left_out > 0)
		text_add(&t, "headrace_segments_left_out=%llu\n", left_out);
	if (without_offset > 0)
		text_add(&t, "headrace_accesses_without_offset=%llu\n", without_offset);
	for (size_t i = 0; i < d->x->n_notes; i++) {
		char *line = hr_text_line(d->x->notes[i]);

		if (line != NULL)
			text_add(&t, "headrace_note_%zu=%s\n", i + 1, line);
		free(line);
	}
}

/* ---- command ---- */

/* Whether `p` describes the job better than `best`: lower rank, then earlier start. */
static bool is_better(const struct hr_process *p, const struct hr_process *best)
{
	bool replaced = strcmp(p->msg->exit, "exec") == 0;
	int64_t rank = p->rank >= 0 ? p->rank : INT64_MAX;

	if (p->worker >= 0 || replaced)
		return false;
	if (best == NULL)
		return true;
	if (rank != (best->rank >= 0 ? best->rank : INT64_MAX))
		return rank < best->rank || best->rank < 0;
	return p->msg->start_ns < best->msg->start_ns;
}

static const Headrace__Process *main_process(const struct hr_walk *w)
{
	const struct hr_process *best = NULL;

	for (size_t i = 0; i < w->n_streams; i++) {
		const struct hr_walk_stream *ws = &w->streams[i];

		for (uint32_t k = 0; k < ws->s->n_processes; k++)
			if (ws->processes[k].number != 0 && is_better(ws->processes[k].p, best))
				best = ws->processes[k].p;
	}
	return best != NULL ? best->msg : NULL;
}

/*
 * Writes the command as one line, and escapes it as in SQL if it is not UTF-8, which PyDarshan
 * requires. It may take half of the room; mounts need the rest.
 */
static void command_write(struct job_text *t, const Headrace__Process *p)
{
	const ProtobufCBinaryData *words = p->cmdline.len > 0 ? &p->cmdline : &p->exe;
	size_t n = words->len < t->room / 2 ? words->len : t->room / 2 - 1;
	char line[HR_DARSHAN_JOB_BYTES];

	for (size_t i = 0; i < n; i++) {
		line[i] = (char)words->data[i];
		if (line[i] == '\n' || line[i] == '\0')
			line[i] = ' ';
	}
	line[n] = '\0';
	if (hr_text_is_utf8(line, n))
		text_add(t, "%s", line);
	else
		hr_text_escape(t->text, t->room / 2, line, n);
	t->n = strlen(t->text);
}

/* ---- mounts ---- */

/* Readers end a mount point at a blank. */
static bool has_blank(const uint8_t *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isspace(text[i]) || text[i] == '\0')
			return true;
	return false;
}

static bool is_same(const Headrace__Mount *a, const Headrace__Mount *b)
{
	return a->path.len == b->path.len && memcmp(a->path.data, b->path.data, a->path.len) == 0 &&
	       strcmp(a->fs_type, b->fs_type) == 0;
}

/* Whether a stream before `index`, or the stream itself before mount `number`, has the mount. */
static bool is_known(const struct hr_walk *w, size_t index, uint32_t number)
{
	const Headrace__Mount *m = w->streams[index].s->mounts[number];

	for (size_t i = 0; i <= index; i++) {
		const struct hr_stream *s = w->streams[i].s;

		for (uint32_t k = 1; k < (i == index ? number : s->n_mounts); k++)
			if (s->mounts[k] != NULL && is_same(s->mounts[k], m))
				return true;
	}
	return false;
}

static void mounts_write(struct job_text *t, const struct hr_walk *w)
{
	for (size_t i = 0; i < w->n_streams; i++) {
		const struct hr_stream *s = w->streams[i].s;

		for (uint32_t k = 1; k < s->n_mounts; k++) {
			const Headrace__Mount *m = s->mounts[k];

			if (m == NULL || m->path.len == 0 || m->fs_type[0] == '\0' ||
			    has_blank(m->path.data, m->path.len) ||
			    has_blank((const uint8_t *)m->fs_type, strlen(m->fs_type)) ||
			    !hr_text_is_utf8(m->path.data, m->path.len) || is_known(w, i, k))
				continue;
			text_add(t, "\n%s\t%.*s", m->fs_type, (int)m->path.len,
				 (const char *)m->path.data);
		}
	}
}

/* ---- the region ---- */

int hr__darshan_job_write(struct hr__darshan *d)
{
	char text[HR_DARSHAN_JOB_BYTES - sizeof(struct hr_darshan_job)] = "";
	const Headrace__Process *p = main_process(d->x->walk);
	struct job_text t = {text, 0, sizeof(text)};
	int64_t end_ns = d->start_ns + d->end_ns;
	struct hr_darshan_job job = {
	    .uid = p != NULL ? p->uid : 0,
	    .start_s = d->start_ns / NS_PER_S,
	    .start_ns = d->start_ns % NS_PER_S,
	    .end_s = end_ns / NS_PER_S,
	    .end_ns = end_ns % NS_PER_S,
	    .n_ranks = d->n_ranks,
	    .number = job_number(d->x->walk->streams[0].s->job),
	};
	struct hr_darshan_region unused;
	int r;

	metadata_write(d, &job);
	if (p != NULL)
		command_write(&t, p);
	mounts_write(&t, d->x->walk);
	hr_darshan_region_start(&d->log);
	r = hr_darshan_put(&d->log, &job, sizeof(job));
	if (r == 0)
		r = hr_darshan_put(&d->log, text, t.n + 1);
	return r == 0 ? hr_darshan_region_end(&d->log, &unused) : r;
}
