/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the events of all streams, each stream in the order in which its operations ended. Some
 * counters depend on this order. Events of a thread are in this order in the store. Those of
 * other threads can be late, by the time in which headraced reads all rings once, so a window of
 * the last events is sorted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "export/darshan/darshan_internal.h"

#define WINDOW	   65536u	       /* events that stay in the window */
#define BYTES_MOST (UINT64_C(1) << 50) /* of one operation; headraced records no more */

struct window_event {
	struct hr_event e;
	const struct hr_walk_process *process;
};

struct window_key {
	uint64_t end_ns;
	uint32_t index; /* keeps the order of events with the same end */
};

struct event_window {
	struct hr__darshan *d;
	struct window_event *events, *rest;
	struct window_key *keys;
	size_t n, room, rest_room, keys_room;
};

static void window_done(struct event_window *w)
{
	free(w->events);
	free(w->rest);
	free(w->keys);
}

static int by_end(const void *a, const void *b)
{
	const struct window_key *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static int event_add(struct hr__darshan *d, const struct window_event *v)
{
	const struct hr_event *e = &v->e;
	struct hr__darshan_op o = {.e = e, .info = hr_op_info(e->op), .process = v->process};
	uint64_t bytes = hr_bytes_moved(o.info->bytes_rule, e->ret, e->asked, e->flags);

	o.bytes = bytes <= BYTES_MOST ? bytes : 0;
	o.start_ns = hr__darshan_ns(d, e->start_ns);
	o.end_ns = hr__darshan_ns(d, e->start_ns + e->dur_ns);
	if (o.end_ns < o.start_ns)
		o.end_ns = o.start_ns;
	if (o.end_ns > d->end_ns)
		d->end_ns = o.end_ns;
	return o.info->api == HR_API_STDIO ? hr__darshan_stdio_add(d, &o)
					   : hr__darshan_posix_add(d, &o);
}

/* Counts the earliest events, so that `keep` events remain. */
static int window_flush(struct event_window *w, size_t keep)
{
	struct hr__darshan *d = w->d;
	struct window_event *rest;
	size_t out = w->n - keep, room;
	int r = 0;

	if (w->n <= keep)
		return 0;
	if (!hr_array_fit(w->keys, w->n, w->keys_room) ||
	    !hr_array_fit(w->rest, w->n, w->rest_room))
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++)
		w->keys[i] = (struct window_key){w->events[i].e.start_ns + w->events[i].e.dur_ns,
						 (uint32_t)i};
	qsort(w->keys, w->n, sizeof(*w->keys), by_end);
	for (size_t i = 0; i < out && r == 0; i++)
		r = event_add(d, &w->events[w->keys[i].index]);
	if (r < 0)
		return r;
	hr__darshan_stream_pass(d, w->keys[out - 1].end_ns);
	for (size_t i = 0; i < keep; i++)
		w->rest[i] = w->events[w->keys[out + i].index];
	rest = w->rest;
	w->rest = w->events;
	w->events = rest;
	room = w->rest_room;
	w->rest_room = w->room;
	w->room = room;
	w->n = keep;
	return 0;
}

static int batch_visit(void *self, const struct hr_walk_stream *ws, const struct hr_walk_batch *b)
{
	const struct hr_columns *c = &b->c;
	struct event_window *w = self;
	int r = 0;

	(void)ws; /* it is d->stream */

	if (!hr_array_fit(w->events, w->n + b->n_rows, w->room))
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_rows; i++) {
		uint32_t row = b->rows[i];

		w->events[w->n++] = (struct window_event){
		    .e = {.start_ns = c->start_ns[row],
			  .dur_ns = c->dur_ns[row],
			  .offset = c->offset[row],
			  .ret = c->ret[row],
			  .asked = c->asked[row],
			  .file = c->file[row],
			  .file2 = c->file2[row],
			  .flags = c->flags[row],
			  .op = c->op[row]},
		    .process = b->process[c->task[row]],
		};
	}
	if (w->n > 2 * (size_t)WINDOW)
		r = window_flush(w, WINDOW);
	return r == 0 ? hr_export_advance(w->d->x, 1) : r;
}

static int stream_events(struct hr__darshan *d)
{
	const uint32_t want =
	    HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR) | HR_COL_BIT(HR_COL_OP) |
	    HR_COL_BIT(HR_COL_FILE) | HR_COL_BIT(HR_COL_OFFSET) | HR_COL_BIT(HR_COL_ASKED) |
	    HR_COL_BIT(HR_COL_RET) | HR_COL_BIT(HR_COL_FLAGS) | HR_COL_BIT(HR_COL_FILE2);
	uint64_t *damaged = d->pass == HR__DARSHAN_COUNT ? &d->x->damaged : NULL;
	struct event_window w = {.d = d};
	int r = hr_walk_events(d->stream, want, batch_visit, &w, damaged);

	if (r == 0)
		r = window_flush(&w, 0);
	window_done(&w);
	return r;
}

int hr__darshan_events(struct hr__darshan *d)
{
	int r = 0;

	for (uint32_t i = 0; i < d->x->walk->n_streams && r == 0; i++) {
		r = hr__darshan_stream_begin(d, i);
		if (r == 0)
			r = stream_events(d);
		hr__darshan_stream_end(d);
	}
	return r;
}
