/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of a trace, how much was lost when, and what the trace lacks. */
#include <stdlib.h>
#include <string.h>

#include "common/loss.h"
#include "export/trace/trace.h"

/* ---- counters ---- */

enum { COUNT_READ, COUNT_WRITE, COUNT_BUSY, COUNT_WAIT, COUNTERS };

static double counter_value(const struct hr_gather_bin *b, unsigned counter, uint64_t bin_ns)
{
	double ns = (double)bin_ns;

	switch (counter) {
	case COUNT_READ:
		return (double)b->read_bytes * 1e9 / ns;
	case COUNT_WRITE:
		return (double)b->written_bytes * 1e9 / ns;
	case COUNT_BUSY:
		return (double)b->busy_ns / ns;
	default:
		return (double)b->wait_ns / ns;
	}
}

static uint64_t trace_ns(const struct hr_trace *t, uint64_t wall_ns)
{
	return (int64_t)wall_ns > t->clock_ns ? wall_ns - (uint64_t)t->clock_ns : 0;
}

/* Writes the values of a counter where they change. The last one is 0. */
static void write_counter(struct hr_trace *t, const struct hr_gather_rank *rank, unsigned counter)
{
	static const char *const names[] = {
	    [COUNT_READ] = "read bytes/s",
	    [COUNT_WRITE] = "written bytes/s",
	    [COUNT_BUSY] = "operations in flight",
	    [COUNT_WAIT] = "input wait (share of time)",
	};
	struct hr_track track = {.name = names[counter],
				 .values =
				     counter <= COUNT_WRITE ? HR_TRACK_BYTES : HR_TRACK_COUNTER};
	const struct hr_gather *g = &t->gather;
	double last = -1;

	hr_tracks_add_track(t->tracks, rank->stream, rank->first, &track);
	for (unsigned i = 0; i <= g->n_bins; i++) {
		double value =
		    i < g->n_bins ? counter_value(&rank->bins[i], counter, g->bin_ns) : 0;

		if (value != last)
			t->out->counter(t->out, trace_ns(t, g->from_ns + i * g->bin_ns), &track,
					value);
		last = value;
	}
}

void hr_trace_counters(struct hr_trace *t)
{
	for (size_t i = 0; i < t->gather.n_ranks; i++) {
		const struct hr_gather_rank *rank = &t->gather.ranks[i];

		for (unsigned k = 0; k < COUNTERS; k++)
			if (k != COUNT_WAIT || rank->waits)
				write_counter(t, rank, k);
	}
}

/* ---- losses ---- */

struct loss_writer {
	struct hr_trace *t;
	const struct hr_stream *s;
	struct hr_track track;
	uint64_t lost, ns; /* so far */
};

static int loss_visit(void *context, Headrace__Frame *frame)
{
	struct loss_writer *w = context;
	uint64_t before = w->lost;

	if (frame->clock != NULL)
		w->ns = hr_tracks_ns(w->t->tracks, w->s, frame->clock->boot_ns);
	for (size_t i = 0; i < frame->loss->n_rows; i++)
		if (hr_loss_is_operations(frame->loss->rows[i]->reason))
			w->lost += frame->loss->rows[i]->count;
	if (w->lost == before)
		return 0;
	if (w->track.id == 0)
		hr_tracks_add_track(w->t->tracks, NULL, NULL, &w->track);
	w->t->out->counter(w->t->out, w->ns, &w->track, (double)w->lost);
	return 0;
}

/* Writes how many operations were lost up to each time at which headraced stored a loss. */
static void write_losses(struct hr_trace *t, const struct hr_walk_stream *ws)
{
	char name[300];
	struct loss_writer w = {.t = t,
				.s = ws->s,
				.track = {.name = name, .values = HR_TRACK_COUNTER},
				.ns = trace_ns(t, t->gather.from_ns)};

	snprintf(name, sizeof(name), "lost operations on %.200s", ws->s->node);
	(void)hr_stream_each_frame(ws->s, HR_FRAME_BIT(LOSS), loss_visit, &w, NULL);
}

/* ---- notes ---- */

static void write_note(struct hr_trace *t, const char *text)
{
	struct hr_slice s = {
	    .type = HR_SLICE_INSTANT, .ns = trace_ns(t, t->gather.from_ns), .track = &t->notes};

	hr_trace_category(t, &s, 2 * HR_TRACE_CATEGORIES, "note");
	hr_trace_name(t, &s, text, strlen(text));
	t->out->slice(t->out, &s);
}

void hr_trace_notes(struct hr_trace *t)
{
	char *damage = hr_export_damage(t->x);
	char *left_out =
	    hr_gather_left_out(t->x, &t->limits, "; the counters include the operations");

	for (size_t i = 0; i < t->x->n_notes; i++)
		write_note(t, t->x->notes[i]);
	if (damage != NULL)
		write_note(t, damage);
	if (left_out != NULL)
		write_note(t, left_out);
	free(damage);
	free(left_out);
	for (size_t i = 0; i < t->x->walk->n_streams; i++)
		write_losses(t, &t->x->walk->streams[i]);
}
