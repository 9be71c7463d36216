/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the processes and regions of a walk. walk_events.c reads its operations. */
#include "export/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/map64.h"

/* ---- processes ---- */

struct hr_walk_process *hr_walk_process(const struct hr_walk_stream *s, uint64_t proc)
{
	const struct hr_process *p = hr_stream_process(s->s, proc);

	return p != NULL ? &s->processes[p - s->s->processes] : NULL;
}

int hr_walk_process_name(const struct hr_process *p, const char *unknown, char *ret, size_t bytes)
{
	const char *exe = (const char *)p->msg->exe.data;
	size_t n = p->msg->exe.len;
	const char *slash = n > 0 ? memrchr(exe, '/', n) : NULL;
	int at;

	if (slash != NULL) {
		n -= (size_t)(slash + 1 - exe);
		exe = slash + 1;
	}
	if (p->rank >= 0)
		at = snprintf(ret, bytes, "rank %d", p->rank);
	else if (n > 0)
		at = snprintf(ret, bytes, "%.*s", n < 100 ? (int)n : 100, exe);
	else
		at = snprintf(ret, bytes, "%s", unknown);
	if (p->worker >= 0)
		at += snprintf(ret + at, bytes - (size_t)at, " worker %d", p->worker);
	return at;
}

/* Converts a wall-clock time to the boot clock of the stream, within its range. */
static uint64_t boot_ns(const struct hr_stream *s, int64_t real_ns)
{
	int64_t ns;

	if (__builtin_sub_overflow(real_ns, s->real_minus_boot_ns, &ns))
		return real_ns < 0 ? 0 : UINT64_MAX;
	return ns < 0 ? 0 : (uint64_t)ns;
}

/* Returns the process of the recorded stream that a process of an added stream is. NULL: none. */
static struct hr_walk_process *recorded_process(const struct hr_walk *w,
						const struct hr_walk_stream *ws,
						const struct hr_walk_process *p)
{
	for (size_t i = 0; p->p->msg->same_as != 0 && i < w->n_streams; i++)
		if (w->streams[i].s == ws->s->added_to)
			return hr_walk_process(&w->streams[i], p->p->msg->same_as);
	return NULL;
}

static int select_processes(struct hr_walk *w, struct hr_walk_stream *ws,
			    const struct hr_walk_options *o)
{
	const struct hr_stream *s = ws->s;
	uint64_t from = o->from_ns == INT64_MIN ? 0 : boot_ns(s, o->from_ns);
	uint64_t to = o->to_ns == INT64_MAX ? UINT64_MAX : boot_ns(s, o->to_ns);

	ws->processes = calloc(s->n_processes + 1, sizeof(*ws->processes));
	if (ws->processes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_processes; i++) {
		const struct hr_process *p = &s->processes[i];
		const struct hr_walk_process *recorded;

		ws->processes[i] = (struct hr_walk_process){.p = p, .from_ns = from, .to_ns = to};
		recorded = recorded_process(w, ws, &ws->processes[i]);
		if (recorded != NULL)
			ws->processes[i].number = recorded->number;
		else if (o->rank < 0 || p->rank == o->rank)
			ws->processes[i].number = ++w->n_processes;
	}
	return 0;
}

/* ---- regions ---- */

static bool region_overlaps(const struct hr_walk_stream *ws, const struct hr_walk_region *r)
{
	const struct hr_walk_process *p = hr_walk_process(ws, r->proc);

	if (p == NULL || p->number == 0 || r->start_ns > p->to_ns || r->end_ns < p->from_ns)
		return false;
	/* The step before the selected ones ends when they begin. */
	return r->start_ns == r->end_ns || p->from_ns == p->to_ns ||
	       (r->start_ns != p->to_ns && r->end_ns != p->from_ns);
}

/* Drops the regions that are no longer selected. */
static void drop_regions(struct hr_walk_stream *ws)
{
	size_t n = 0;

	for (size_t i = 0; i < ws->n_regions; i++)
		if (region_overlaps(ws, &ws->regions[i]))
			ws->regions[n++] = ws->regions[i];
	ws->n_regions = n;
}

static int add_regions(struct hr_walk_stream *ws, const Headrace__Regions *frame, size_t *room)
{
	if (!hr_array_fit(ws->regions, ws->n_regions + frame->n_key, *room))
		return -ENOMEM;
	for (size_t i = 0; i < frame->n_key; i++) {
		struct hr_walk_region r = {.row = (uint32_t)i, .frame = frame};
		struct hr_region region;

		hr_regions_get(frame, i, &region);
		r.proc = region.proc;
		r.tid = region.tid;
		r.start_ns = region.start_ns;
		r.end_ns = region.start_ns + region.dur_ns;
		r.order = (uint32_t)ws->n_regions;
		if (r.end_ns >= r.start_ns && region_overlaps(ws, &r))
			ws->regions[ws->n_regions++] = r;
	}
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct hr_walk_region *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	/* The outer one of two regions with the same times ended later, so it is stored later. */
	return x->order < y->order ? 1 : -1;
}

static int read_regions(struct hr_walk *w, struct hr_walk_stream *ws)
{
	const struct hr_stream *s = ws->s;
	size_t room = 0;
	int r = 0;

	for (uint32_t i = 0; i < s->n_frames && r == 0; i++) {
		Headrace__Frame *msg;

		if (s->frames[i].kind != HEADRACE__FRAME__BODY_REGIONS)
			continue;
		r = hr_stream_read_into(s, i, &ws->memory, &msg);
		if (r == 0)
			r = hr_regions_restore(msg->regions);
		if (r == 0)
			r = add_regions(ws, msg->regions, &room);
		if (r < 0 && r != -ENOMEM) {
			w->damaged++;
			r = 0;
		}
	}
	return r;
}

const struct hr_walk_region *hr_walk_regions(const struct hr_walk_stream *s, uint64_t proc,
					     uint32_t tid, size_t *ret_n)
{
	const struct hr_walk_region *r = s->regions;
	size_t first = hr_array_search(i, s->n_regions,
				       r[i].proc < proc || (r[i].proc == proc && r[i].tid < tid));
	size_t end = first;

	while (end < s->n_regions && r[end].proc == proc && r[end].tid == tid)
		end++;
	*ret_n = end - first;
	return r + first;
}

const ProtobufCBinaryData *hr_walk_text(const Headrace__Regions *frame, uint32_t number)
{
	return number > 0 && number <= frame->n_texts ? &frame->texts[number - 1] : NULL;
}

/* ---- steps ---- */

struct step_window {
	uint64_t from_ns, to_ns;
};

struct step_windows {
	struct step_window *list;
	size_t n, room;
	struct hr_map64 by_rank; /* key: rank + 1 */
};

static uint64_t rank_key(const struct hr_walk_process *p)
{
	return (uint64_t)(p->p->rank + INT64_C(1));
}

/* Returns the window of the rank of `p`. NULL: the rank has none. */
static struct step_window *rank_window(const struct step_windows *t,
				       const struct hr_walk_process *p)
{
	uint32_t i = hr_map64_get(&t->by_rank, rank_key(p));

	return i < t->n ? &t->list[i] : NULL;
}

/* Extends the window of the rank of `p` by a step. */
static int add_step(struct step_windows *t, const struct hr_walk_process *p,
		    const struct hr_walk_region *r)
{
	struct step_window *v = rank_window(t, p);

	if (v == NULL) {
		if (!hr_array_fit(t->list, t->n + 1, t->room) ||
		    hr_map64_set(&t->by_rank, rank_key(p), (uint32_t)t->n) < 0)
			return -ENOMEM;
		t->list[t->n++] = (struct step_window){r->start_ns, r->end_ns};
		return 0;
	}
	v->from_ns = r->start_ns < v->from_ns ? r->start_ns : v->from_ns;
	v->to_ns = r->end_ns > v->to_ns ? r->end_ns : v->to_ns;
	return 0;
}

static int find_windows(const struct hr_walk_stream *ws, const struct hr_walk_options *o,
			struct step_windows *t)
{
	int r = 0;

	for (size_t i = 0; i < ws->n_regions && r == 0; i++) {
		struct hr_region region;

		hr_regions_get(ws->regions[i].frame, ws->regions[i].row, &region);
		if (region.kind == HR_REGION_STEP && region.step != HR_REGION_UNKNOWN &&
		    region.step >= (uint64_t)o->first_step && region.step <= (uint64_t)o->last_step)
			r = add_step(t, hr_walk_process(ws, region.proc), &ws->regions[i]);
	}
	return r;
}

/* Limits each process to the time of the selected steps of its rank. */
static int select_steps(struct hr_walk_stream *ws, const struct hr_walk_options *o)
{
	struct step_windows t = {0};
	int r = find_windows(ws, o, &t);

	for (uint32_t i = 0; i < ws->s->n_processes && r == 0; i++) {
		struct hr_walk_process *p = &ws->processes[i];
		const struct step_window *v = rank_window(&t, p);

		if (v == NULL) {
			p->number = 0;
			continue;
		}
		p->from_ns = v->from_ns > p->from_ns ? v->from_ns : p->from_ns;
		p->to_ns = v->to_ns < p->to_ns ? v->to_ns : p->to_ns;
	}
	drop_regions(ws);
	hr_map64_done(&t.by_rank);
	free(t.list);
	return r;
}

/* The steps of an added stream are those of the recorded processes. */
static void select_recorded_steps(const struct hr_walk *w, struct hr_walk_stream *ws)
{
	for (uint32_t i = 0; i < ws->s->n_processes; i++) {
		struct hr_walk_process *p = &ws->processes[i];
		const struct hr_walk_process *recorded = recorded_process(w, ws, p);

		p->number = recorded != NULL ? recorded->number : 0;
		if (p->number == 0)
			continue;
		p->from_ns = boot_ns(ws->s, hr_stream_real_ns(ws->s->added_to, recorded->from_ns));
		p->to_ns = boot_ns(ws->s, hr_stream_real_ns(ws->s->added_to, recorded->to_ns));
	}
	drop_regions(ws);
}

/* ---- the walk ---- */

static int add_stream(struct hr_walk *w, const struct hr_stream *s, const struct hr_walk_options *o)
{
	struct hr_walk_stream *ws = &w->streams[w->n_streams];
	int r;

	if (o->node != NULL && strcmp(o->node, s->node) != 0)
		return 0;
	ws->s = s;
	ws->scope = o->scope;
	w->n_streams++;
	r = select_processes(w, ws, o);
	if (r == 0)
		r = read_regions(w, ws);
	if (r == 0 && o->first_step >= 0 && s->added_to != NULL)
		select_recorded_steps(w, ws);
	else if (r == 0 && o->first_step >= 0)
		r = select_steps(ws, o);
	if (r == 0 && ws->n_regions > 1)
		qsort(ws->regions, ws->n_regions, sizeof(*ws->regions), by_thread);
	return r;
}

static bool is_empty(const struct hr_walk *w)
{
	for (size_t i = 0; i < w->n_streams; i++)
		for (uint32_t k = 0; k < w->streams[i].s->n_processes; k++)
			if (w->streams[i].processes[k].number != 0)
				return false;
	return true;
}

int hr_walk_new(const struct hr_catalog *c, const struct hr_walk_options *options,
		struct hr_walk **ret)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(c, &streams);
	struct hr_walk *w = calloc(1, sizeof(*w));
	int r = 0;

	if (w == NULL)
		return -ENOMEM;
	w->streams = calloc(n + 1, sizeof(*w->streams));
	if (w->streams == NULL)
		r = -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		if (streams[i].added_to == NULL)
			r = add_stream(w, &streams[i], options);
	for (size_t i = 0; i < n && r == 0; i++)
		if (streams[i].added_to != NULL)
			r = add_stream(w, &streams[i], options);
	if (r == 0 && is_empty(w))
		r = -ENOENT;
	if (r == 0)
		*ret = w;
	else
		hr_walk_free(w);
	return r;
}

void hr_walk_free(struct hr_walk *w)
{
	if (w == NULL)
		return;
	for (size_t i = 0; i < w->n_streams; i++) {
		free(w->streams[i].processes);
		free(w->streams[i].regions);
		hr_arena_free(&w->streams[i].memory);
	}
	free(w->streams);
	free(w);
}
