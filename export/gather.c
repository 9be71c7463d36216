/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/map64.h"
#include "common/ops.h"
#include "common/text.h"

/* ---- counters ---- */

static void gather_extend(struct hr_gather *g, uint64_t from_ns, uint64_t to_ns)
{
	g->from_ns = from_ns < g->from_ns ? from_ns : g->from_ns;
	g->to_ns = to_ns > g->to_ns ? to_ns : g->to_ns;
}

/* The time of the operations of a stream. */
static void event_times(const struct hr_stream *s, uint64_t *ret_from, uint64_t *ret_to)
{
	*ret_from = UINT64_MAX;
	*ret_to = 0;
	for (uint32_t i = 0; i < s->n_batches; i++) {
		*ret_from = s->batches[i].base_ns < *ret_from ? s->batches[i].base_ns : *ret_from;
		*ret_to = s->batches[i].last_ns > *ret_to ? s->batches[i].last_ns : *ret_to;
	}
}

/* Finds the selected time: that of the windows, limited to that of the recorded data. */
static void gather_times(struct hr_gather *g, const struct hr_walk_stream *ws)
{
	uint64_t data_from, data_to, from = UINT64_MAX, to = 0;
	const struct hr_stream *s = ws->s;

	event_times(s, &data_from, &data_to);
	for (size_t i = 0; i < ws->n_regions; i++) {
		const struct hr_walk_region *r = &ws->regions[i];

		data_from = r->start_ns < data_from ? r->start_ns : data_from;
		data_to = r->end_ns > data_to ? r->end_ns : data_to;
	}
	for (uint32_t i = 0; i < s->n_processes; i++) {
		const struct hr_walk_process *p = &ws->processes[i];

		if (p->number == 0)
			continue;
		from = p->from_ns < from ? p->from_ns : from;
		to = p->to_ns > to ? p->to_ns : to;
	}
	from = from > data_from ? from : data_from;
	to = to < data_to ? to : data_to;
	if (from <= to)
		gather_extend(g, hr_walk_real_ns(s, from), hr_walk_real_ns(s, to));
}

static int gather_rank(struct hr_gather *g, struct hr_map64 *by_rank,
		       const struct hr_walk_stream *ws, const struct hr_walk_process *p)
{
	uint64_t key = (uint64_t)(p->p->rank + INT64_C(1));
	uint32_t i = hr_map64_get(by_rank, key);

	if (i == HR_MAP64_NONE) {
		if (hr_map64_set(by_rank, key, (uint32_t)g->n_ranks) < 0)
			return -ENOMEM;
		i = (uint32_t)g->n_ranks++;
		g->ranks[i] = (struct hr_gather_rank){.rank = p->p->rank, .stream = ws, .first = p};
	}
	g->rank_of[p->number] = i;
	return 0;
}

int hr_gather_init(struct hr_gather *g, const struct hr_walk *w)
{
	struct hr_map64 by_rank = {0};
	int r = 0;

	*g = (struct hr_gather){.from_ns = UINT64_MAX};
	g->rank_of = calloc(w->n_processes + 1, sizeof(*g->rank_of));
	g->ranks = calloc(w->n_processes + 1, sizeof(*g->ranks));
	if (g->rank_of == NULL || g->ranks == NULL)
		r = -ENOMEM;
	for (size_t i = 0; i < w->n_streams && r == 0; i++) {
		const struct hr_walk_stream *ws = &w->streams[i];

		gather_times(g, ws);
		r = hr_gather_rollups(g, ws, NULL);
		for (uint32_t k = 0; k < ws->s->n_processes && r == 0; k++)
			if (ws->processes[k].number != 0)
				r = gather_rank(g, &by_rank, ws, &ws->processes[k]);
	}
	hr_map64_done(&by_rank);
	if (g->from_ns > g->to_ns)
		g->from_ns = g->to_ns = 0;
	if (r < 0)
		hr_gather_done(g);
	return r;
}

int hr_gather_bins(struct hr_gather *g, unsigned n_bins)
{
	g->n_bins = n_bins;
	g->bin_ns = (g->to_ns - g->from_ns) / n_bins + 1;
	for (size_t i = 0; i < g->n_ranks; i++) {
		g->ranks[i].bins = calloc(n_bins, sizeof(*g->ranks[i].bins));
		if (g->ranks[i].bins == NULL)
			return -ENOMEM;
	}
	return 0;
}

void hr_gather_done(struct hr_gather *g)
{
	for (size_t i = 0; g->ranks != NULL && i < g->n_ranks; i++)
		free(g->ranks[i].bins);
	free(g->ranks);
	free(g->rank_of);
	*g = (struct hr_gather){0};
}

static void bin_add(struct hr_gather_bin *b, enum hr_gather_kind kind, uint64_t ns, uint64_t bytes)
{
	if (kind == HR_GATHER_WAIT) {
		b->wait_ns += ns;
		return;
	}
	b->busy_ns += ns;
	if (kind == HR_GATHER_READ)
		b->read_bytes += bytes;
	else if (kind == HR_GATHER_WRITE)
		b->written_bytes += bytes;
}

void hr_gather_add(struct hr_gather *g, const struct hr_walk_process *p, enum hr_gather_kind kind,
		   uint64_t start_ns, uint64_t end_ns, uint64_t bytes)
{
	struct hr_gather_rank *rank = &g->ranks[g->rank_of[p->number]];
	uint64_t dur = end_ns - start_ns, left = bytes;
	uint64_t first, last;

	rank->waits |= kind == HR_GATHER_WAIT;
	start_ns = start_ns > g->from_ns ? start_ns : g->from_ns;
	end_ns = end_ns < g->to_ns ? end_ns : g->to_ns;
	if (end_ns < start_ns)
		return;
	first = (start_ns - g->from_ns) / g->bin_ns;
	last = (end_ns - g->from_ns) / g->bin_ns;
	if (last >= g->n_bins)
		return;
	/* Bytes are spread evenly over the duration; the last bin gets the rest. */
	for (uint64_t b = first; b < last; b++) {
		uint64_t end = g->from_ns + (b + 1) * g->bin_ns, ns = end - start_ns;
		uint64_t part = (uint64_t)((double)bytes * (double)ns / (double)dur);

		part = part < left ? part : left;
		bin_add(&rank->bins[b], kind, ns, part);
		left -= part;
		start_ns = end;
	}
	bin_add(&rank->bins[last], kind, end_ns - start_ns, left);
}

/* ---- roll-ups ---- */

/* Adds what a process did in a window. Before hr_gather_bins, it only extends the time. */
static void window_add(struct hr_gather *g, const struct hr_walk_stream *ws,
		       const struct hr_walk_process *p, const struct hr_gather_bin *sums,
		       uint64_t from_ns, uint64_t to_ns)
{
	uint64_t start = p->p->msg->start_ns, end = p->p->msg->end_ns, wall_from, wall_to;

	/* The process's life, and the selected part of it. */
	start = start > from_ns && start < to_ns ? start : from_ns;
	end = end > start && end < to_ns ? end : to_ns;
	from_ns = start > p->from_ns ? start : p->from_ns;
	to_ns = end < p->to_ns ? end : p->to_ns;
	if (from_ns >= to_ns)
		return;
	wall_from = hr_walk_real_ns(ws->s, from_ns);
	wall_to = hr_walk_real_ns(ws->s, to_ns);
	if (g->n_bins == 0) {
		g->counters = true;
		gather_extend(g, wall_from, wall_to);
		return;
	}
	for (uint64_t at = wall_from; at < wall_to;) {
		uint64_t k = (at - g->from_ns) / g->bin_ns, next = g->from_ns + (k + 1) * g->bin_ns;
		struct hr_gather_bin *b;
		double share;

		if (k >= g->n_bins)
			break;
		b = &g->ranks[g->rank_of[p->number]].bins[k];
		next = next < wall_to ? next : wall_to;
		share = (double)(next - at) / (double)(end - start);
		b->read_bytes += (uint64_t)((double)sums->read_bytes * share);
		b->written_bytes += (uint64_t)((double)sums->written_bytes * share);
		b->busy_ns += (uint64_t)((double)sums->busy_ns * share);
		at = next;
	}
}

/* A stream whose roll-ups are read, and the time of its operations. */
struct rollup_reader {
	struct hr_gather *g;
	const struct hr_walk_stream *ws;
	uint64_t events_from, events_to;
};

static int rollups_visit(void *context, Headrace__Frame *frame)
{
	const struct rollup_reader *reader = context;
	const struct hr_walk_stream *ws = reader->ws;
	const Headrace__RollupBatch *batch = frame->rollups;
	uint64_t from = batch->window_start_ns, to = from + batch->window_ns;

	if (!batch->alone || (from <= reader->events_to && to >= reader->events_from))
		return 0;
	for (size_t i = 0; i < batch->n_rows + batch->n_sides; i++) {
		bool side = i >= batch->n_rows;
		const Headrace__Rollup *row =
		    side ? batch->sides[i - batch->n_rows] : batch->rows[i];
		const struct hr_walk_process *p = hr_walk_process(ws, row->proc);
		unsigned class = side ? HR_CLASS_NONE : hr_op_info((uint16_t)row->op)->class;
		bool copies = !side && hr_op_copies((uint16_t)row->op); /* their bytes: sides */
		bool reads = side ? hr_side_reads(row->op) : class == HR_CLASS_READ;
		bool writes = side ? !reads : class == HR_CLASS_WRITE;
		struct hr_gather_bin sums = {.read_bytes = reads && !copies ? row->bytes : 0,
					     .written_bytes = writes && !copies ? row->bytes : 0,
					     .busy_ns = side ? 0 : row->dur_ns};

		if (p != NULL && p->number != 0 && hr_walk_has_scope(ws, row->scope))
			window_add(reader->g, ws, p, &sums, from, to);
	}
	return 0;
}

int hr_gather_rollups(struct hr_gather *g, const struct hr_walk_stream *ws, uint64_t *damaged)
{
	struct rollup_reader reader = {.g = g, .ws = ws};

	if (g->n_bins > 0 && !g->counters) /* hr_gather_init has found none */
		return 0;
	event_times(ws->s, &reader.events_from, &reader.events_to);
	return hr_stream_each_frame(ws->s, HR_FRAME_BIT(ROLLUPS), rollups_visit, &reader, damaged);
}

/* ---- limits ---- */

/* Each power of two of the duration has 16 bins. */
#define FINE_BITS 4u
#define FINE_BINS ((65u - FINE_BITS) << FINE_BITS)

static unsigned fine_bin(uint64_t ns)
{
	unsigned shift;

	if (ns < 1u << FINE_BITS)
		return (unsigned)ns;
	shift = 63 - FINE_BITS - (unsigned)__builtin_clzll(ns);
	return (shift << FINE_BITS) + (unsigned)(ns >> shift);
}

/* Returns the lowest duration of a bin. */
static uint64_t fine_ns(unsigned bin)
{
	unsigned shift;

	if (bin < 2u << FINE_BITS)
		return bin;
	shift = (bin >> FINE_BITS) - 1;
	return (uint64_t)(bin - (shift << FINE_BITS)) << shift;
}

/* Operations or regions by their duration. */
struct durations {
	uint64_t n[FINE_BINS], bytes[FINE_BINS];
};

static void duration_add(struct durations *d, uint64_t ns, uint64_t bytes)
{
	unsigned bin = fine_bin(ns);

	d->n[bin]++;
	d->bytes[bin] += bytes;
}

/* Returns the shortest duration of the longest ones that fit (0: all), and how many are shorter. */
static uint64_t shortest(const struct durations *d, uint64_t room, uint64_t *ret_shorter)
{
	uint64_t bytes = 0;
	unsigned i = FINE_BINS;

	while (i > 0 && bytes + d->bytes[i - 1] <= room)
		bytes += d->bytes[--i];
	*ret_shorter = 0;
	for (unsigned k = 0; k < i; k++)
		*ret_shorter += d->n[k];
	return i > 0 ? fine_ns(i) : 0;
}

static size_t path_bytes(const struct hr_stream *s, uint32_t file)
{
	uint32_t number = file != 0 ? hr_stream_file_number(s, file) : 0;
	struct hr_file_info info;

	return number != 0 && hr_stream_file_at(s, number, true, &info) == 0 ? info.path_bytes : 0;
}

struct event_counter {
	struct hr_export *x;
	const struct hr_gather_room *room;
	struct durations *d;
};

static int count_batch(void *self, const struct hr_walk_stream *ws, const struct hr_walk_batch *b)
{
	const struct event_counter *c = self;
	const struct hr_gather_room *room = c->room;

	for (uint32_t i = 0; i < b->n_rows; i++) {
		uint32_t row = b->rows[i];

		duration_add(c->d, b->c.dur_ns[row],
			     room->event_bytes +
				 (room->paths ? path_bytes(ws->s, b->c.file[row]) : 0));
	}
	return hr_export_advance(c->x, b->n_rows);
}

static int count_events(struct hr_export *x, const struct hr_walk_stream *ws,
			const struct hr_gather_room *room, struct durations *d)
{
	struct event_counter c = {x, room, d};
	uint32_t n_files;
	int r = room->paths ? hr_stream_files(ws->s, &n_files) : 0;

	return r < 0 ? r
		     : hr_walk_events(ws, room->paths ? HR_COL_BIT(HR_COL_FILE) : 0, count_batch,
				      &c, NULL);
}

int hr_gather_limits(struct hr_export *x, const struct hr_gather_room *room,
		     struct hr_gather_limits *ret)
{
	struct durations *events = calloc(1, sizeof(*events));
	struct durations *regions = calloc(1, sizeof(*regions));
	int r = events != NULL && regions != NULL ? 0 : -ENOMEM;

	*ret = (struct hr_gather_limits){0};
	x->total *= 2; /* the writer reads the operations again */
	for (size_t i = 0; i < x->walk->n_streams && r == 0; i++) {
		const struct hr_walk_stream *ws = &x->walk->streams[i];

		for (size_t k = 0; k < ws->n_regions; k++)
			duration_add(regions, ws->regions[k].end_ns - ws->regions[k].start_ns,
				     room->region_bytes);
		r = count_events(x, ws, room, events);
	}
	x->done = x->total / 2;
	if (r == 0) {
		ret->events_ns = shortest(events, room->events, &ret->events_left_out);
		ret->regions_ns = shortest(regions, room->regions, &ret->regions_left_out);
		x->operations_left_out = ret->events_left_out;
		x->regions_left_out = ret->regions_left_out;
	}
	free(events);
	free(regions);
	return r;
}

char *hr_gather_left_out(const struct hr_export *x, const struct hr_gather_limits *l,
			 const char *more)
{
	char regions[128] = "", *text;

	if (l->events_left_out + l->regions_left_out == 0)
		return NULL;
	if (l->regions_left_out > 0)
		snprintf(regions, sizeof(regions), " and %s regions shorter than %s",
			 hr_text_count(l->regions_left_out).s, hr_text_duration(l->regions_ns).s);
	if (asprintf(&text,
		     "left out because of the limit of size (--max-size): %s operations shorter "
		     "than %s%s%s",
		     hr_text_count(l->events_left_out).s, hr_text_duration(l->events_ns).s, regions,
		     more) < 0)
		return NULL;
	hr_sink_line(hr_asking_messages(x->asking), "note: %s", text);
	return text;
}
