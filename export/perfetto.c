/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format "perfetto": one packet after another, in one pass over the operations. If they exceed
 * the limit of size, a first pass finds which ones are long enough to be drawn.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/gather.h"
#include "export/perfetto_tracks.h"
#include "common/fnv.h"
#include "common/loss.h"
#include "common/map64.h"
#include "common/ops.h"
#include "common/text.h"

#define DEFAULT_MAX_BYTES (UINT64_C(200) * 1000 * 1000)
#define REGION_BYTES	  200u /* typical bytes of a region's slice, with its texts */
#define PATH_BYTES	  150u /* typical bytes of an interned path */
#define ARGS_MOST	  8u
#define OP_NAMES	  4096u /* ids of names: operations below, then regions */
#define KIND_CATEGORIES	  64u	/* ids of categories: classes below, then kinds of regions */

struct arguments {
	struct hr_argument list[ARGS_MOST];
	size_t n;
};

struct perfetto {
	struct hr_export *x;
	struct hr_packets packets;
	struct hr_tracks *tracks;
	struct hr_gather gather;
	struct hr_gather_limits limits;
	uint64_t total, done; /* operations, for the progress */
	int64_t clock_ns;     /* wall clock minus the clock of the trace */
	uint64_t notes;	      /* track of the notes */
	uint64_t events_left_out, regions_left_out;
	/* names that are interned so far */
	bool op_named[HR_OP_MAX];
	bool class_named[KIND_CATEGORIES], kind_named[KIND_CATEGORIES];
	struct hr_map64 region_names; /* from a hash of the text to its id */
	uint64_t *path_named;	      /* bitmap by file number, for the current stream */
	uint64_t path_base;	      /* ids of the current stream's paths begin after it */
	/* Of the current operation, before which regions may be written. */
	struct arguments event_args, region_args;
};

/* ---- names and arguments ---- */

static void add_arg(struct arguments *a, enum hr_arg name, int type, int64_t value)
{
	a->list[a->n++] = (struct hr_argument){.name = name, .type = type, .value = value};
}

static void add_text_arg(struct arguments *a, enum hr_arg name, const ProtobufCBinaryData *text)
{
	if (text != NULL)
		a->list[a->n++] = (struct hr_argument){.name = name,
						       .type = HR_ARG_TEXT,
						       .text = (const char *)text->data,
						       .bytes = text->len};
}

static uint64_t intern_path(struct perfetto *p, uint32_t number, const struct hr_file_info *f)
{
	uint64_t bit = UINT64_C(1) << (number % 64), id = p->path_base + number;
	char *text;

	if (p->path_named[number / 64] & bit)
		return id;
	p->path_named[number / 64] |= bit;
	text = malloc(4 * (size_t)f->path_bytes + 1);
	if (text != NULL) {
		hr_text_escape(text, 4 * (size_t)f->path_bytes + 1, f->path, f->path_bytes);
		hr_packet_intern(&p->packets, HR_INTERNED_STRING, id, text, strlen(text));
	}
	free(text);
	return id;
}

static void add_path_arg(struct perfetto *p, const struct hr_stream *s, enum hr_arg name,
			 uint32_t file)
{
	uint32_t number = file != 0 ? hr_stream_file_number(s, file) : 0;
	struct hr_file_info info;

	if (number != 0 && hr_stream_file_at(s, number, true, &info) == 0)
		add_arg(&p->event_args, name, HR_ARG_INTERNED,
			(int64_t)intern_path(p, number, &info));
}

static uint64_t intern_op(struct perfetto *p, uint16_t op, const struct hr_op_info *info)
{
	const char *name = info->name != NULL ? info->name : "unknown";

	if (!p->op_named[op % HR_OP_MAX])
		hr_packet_intern(&p->packets, HR_INTERNED_NAME, op % HR_OP_MAX + 1u, name,
				 strlen(name));
	p->op_named[op % HR_OP_MAX] = true;
	return op % HR_OP_MAX + 1u;
}

static uint64_t intern_category(struct perfetto *p, bool *named, uint64_t id, const char *text)
{
	if (text == NULL)
		text = "unknown";
	if (!*named)
		hr_packet_intern(&p->packets, HR_INTERNED_CATEGORY, id, text, strlen(text));
	*named = true;
	return id;
}

static uint64_t intern_region_name(struct perfetto *p, const void *text, size_t bytes)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, text, bytes);
	uint32_t i = hr_map64_get(&p->region_names, hash);

	if (i == HR_MAP64_NONE) {
		i = p->region_names.used;
		if (hr_map64_set(&p->region_names, hash, i) < 0)
			return OP_NAMES;
		hr_packet_intern(&p->packets, HR_INTERNED_NAME, OP_NAMES + 1 + (uint64_t)i, text,
				 bytes);
	}
	return OP_NAMES + 1 + (uint64_t)i;
}

/* ---- regions ---- */

static void set_region_args(struct arguments *a, const Headrace__Regions *frame,
			    const struct hr_region *r)
{
	a->n = 0;
	if (r->step != HR_REGION_UNKNOWN)
		add_arg(a, HR_ARG_STEP, HR_ARG_INT, (int64_t)r->step);
	if (r->epoch != HR_REGION_UNKNOWN)
		add_arg(a, HR_ARG_EPOCH, HR_ARG_INT, (int64_t)r->epoch);
	add_text_arg(a, HR_ARG_DOMAIN, hr_walk_text(frame, r->domain));
	add_text_arg(a, HR_ARG_CATEGORY, hr_walk_text(frame, r->category));
	add_text_arg(a, HR_ARG_ARGS, hr_walk_text(frame, r->args));
	if (r->count > 1) {
		add_arg(a, HR_ARG_COUNT, HR_ARG_INT, (int64_t)r->count);
		add_arg(a, HR_ARG_SUM_NS, HR_ARG_INT, (int64_t)r->dur_ns);
	}
	if (r->open)
		add_arg(a, HR_ARG_OPEN, HR_ARG_BOOL, 1);
}

static void describe_region(void *self, const struct hr_walk_stream *ws,
			    const struct hr_walk_region *row, struct hr_slice *ret)
{
	struct perfetto *p = self;
	const ProtobufCBinaryData *name;
	const char *kind;
	struct hr_region r;

	(void)ws;
	if (row->end_ns - row->start_ns < p->limits.regions_ns) {
		p->regions_left_out++;
		return;
	}
	hr_regions_get(row->frame, row->row, &r);
	kind = hr_region_kind_name(r.kind);
	kind = kind != NULL ? kind : "region";
	name = hr_walk_text(row->frame, r.name);
	set_region_args(&p->region_args, row->frame, &r);
	/* Of short regions that were added up, only the begin of the first one is known. */
	ret->type = r.count > 1 || r.kind == HR_REGION_MARK ? HR_SLICE_INSTANT : HR_SLICE_BEGIN;
	ret->category = intern_category(p, &p->kind_named[r.kind % KIND_CATEGORIES],
					KIND_CATEGORIES + r.kind % KIND_CATEGORIES, kind);
	ret->name = name != NULL ? intern_region_name(p, name->data, name->len)
				 : intern_region_name(p, kind, strlen(kind));
	ret->args = p->region_args.list;
	ret->n_args = p->region_args.n;
}

/* Adds the input waits to the counters, also those that are too short to be drawn. */
static void count_waits(struct perfetto *p, const struct hr_walk_stream *ws)
{
	for (size_t i = 0; i < ws->n_regions; i++) {
		const struct hr_walk_region *row = &ws->regions[i];
		struct hr_region r;

		hr_regions_get(row->frame, row->row, &r);
		if (r.kind == HR_REGION_INPUT_WAIT && r.count <= 1)
			hr_gather_add(&p->gather, hr_walk_process(ws, row->proc), HR_GATHER_WAIT,
				      (uint64_t)hr_stream_real_ns(ws->s, row->start_ns),
				      (uint64_t)hr_stream_real_ns(ws->s, row->end_ns), 0);
	}
}

/* ---- operations ---- */

/* Sets the arguments of an operation. Their values are those of the table `events`. */
static void set_event_args(struct perfetto *p, const struct hr_stream *s,
			   const struct hr_columns *c, uint32_t i, const struct hr_op_info *info)
{
	struct arguments *a = &p->event_args;

	a->n = 0;
	add_path_arg(p, s, HR_ARG_PATH, c->file[i]);
	add_path_arg(p, s, HR_ARG_PATH2, c->file2[i]);
	if (c->offset[i] != HR_OFFSET_NONE)
		add_arg(a, HR_ARG_OFFSET, HR_ARG_INT, c->offset[i]);
	if (c->ret[i] == HR_RET_NONE) {
		add_arg(a, HR_ARG_CUT, HR_ARG_BOOL, 1);
		return;
	}
	if (info->bytes_rule != HR_BYTES_NONE)
		add_arg(
		    a, HR_ARG_BYTES, HR_ARG_INT,
		    (int64_t)hr_bytes_moved(info->bytes_rule, c->ret[i], c->asked[i], c->flags[i]));
	if (c->ret[i] < 0)
		add_arg(a, HR_ARG_ERRNO, HR_ARG_INT, -c->ret[i]);
}

static void count_event(struct perfetto *p, const struct hr_tracks_event *e,
			const struct hr_op_info *info, const struct hr_columns *c, uint32_t i)
{
	enum hr_gather_kind kind = info->class == HR_CLASS_READ	   ? HR_GATHER_READ
				   : info->class == HR_CLASS_WRITE ? HR_GATHER_WRITE
								   : HR_GATHER_OTHER;
	uint64_t bytes = c->ret[i] == HR_RET_NONE ? 0
						  : hr_bytes_moved(info->bytes_rule, c->ret[i],
								   c->asked[i], c->flags[i]);

	hr_gather_add(&p->gather, e->p, kind, (uint64_t)hr_stream_real_ns(e->ws->s, e->start_ns),
		      (uint64_t)hr_stream_real_ns(e->ws->s, e->end_ns),
		      bytes == UINT64_MAX ? 0 : bytes);
}

static int perfetto_event(struct perfetto *p, const struct hr_walk_stream *ws,
			  const struct hr_walk_batch *b, uint32_t i)
{
	const struct hr_columns *c = &b->c;
	const struct hr_op_info *info = hr_op_info(c->op[i]);
	struct hr_tracks_event e = {.ws = ws,
				    .p = b->process[c->task[i]],
				    .tid = c->tasks[c->task[i]].tid,
				    .start_ns = c->start_ns[i],
				    .end_ns = c->start_ns[i] + c->dur_ns[i],
				    .async = info->api == HR_API_AIO || info->api == HR_API_URING};
	struct hr_slice slice = {.type = HR_SLICE_BEGIN};

	count_event(p, &e, info, c, i);
	if (c->dur_ns[i] < p->limits.events_ns) {
		p->events_left_out++;
		return 0;
	}
	set_event_args(p, ws->s, c, i, info);
	slice.category =
	    intern_category(p, &p->class_named[info->class % KIND_CATEGORIES],
			    info->class % KIND_CATEGORIES + 1u, hr_class_name(info->class));
	slice.name = intern_op(p, c->op[i], info);
	slice.args = p->event_args.list;
	slice.n_args = p->event_args.n;
	return hr_tracks_add(p->tracks, &e, &slice);
}

static int perfetto_stream(struct perfetto *p, const struct hr_walk_stream *ws)
{
	struct hr_walk_events *events = NULL;
	struct hr_walk_batch b;
	uint32_t n_files = 0;
	int r = hr_stream_files(ws->s, &n_files);

	if (r == 0) {
		p->path_named = calloc(n_files / 64 + 1, sizeof(*p->path_named));
		r = p->path_named != NULL ? 0 : -ENOMEM;
	}
	count_waits(p, ws);
	if (r == 0)
		r = hr_walk_events_new(ws, HR_COL_ALL, &events);
	while (r == 0 && (r = hr_walk_events_next(events, &b)) > 0) {
		r = 0;
		for (uint32_t k = 0; k < b.n_rows && r == 0; k++)
			r = perfetto_event(p, ws, &b, b.rows[k]);
		p->done += b.n_rows;
		if (r == 0)
			r = hr_export_advance(p->x, p->done, p->total);
	}
	if (r == 0)
		r = hr_tracks_end_stream(p->tracks, ws);
	p->x->damaged += events != NULL ? hr_walk_events_damaged(events) : 0;
	hr_walk_events_free(events);
	free(p->path_named);
	p->path_named = NULL;
	p->path_base += (uint64_t)n_files + 1;
	return r;
}

/* ---- counters ---- */

static uint64_t counter_track(struct perfetto *p, uint64_t parent, const char *name, bool bytes)
{
	struct hr_track t = {.uuid = hr_tracks_uuid(p->tracks),
			     .parent = parent,
			     .name = name,
			     .values = bytes ? HR_TRACK_BYTES : HR_TRACK_COUNTER};

	hr_packet_track(&p->packets, &t);
	return t.uuid;
}

/* The counters of a rank, and the factor by which a bin's sum becomes the value of the counter. */
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

static void write_counter(struct perfetto *p, const struct hr_gather_rank *rank, uint64_t parent,
			  unsigned counter)
{
	static const char *const names[] = {
	    [COUNT_READ] = "read bytes/s",
	    [COUNT_WRITE] = "written bytes/s",
	    [COUNT_BUSY] = "operations in flight",
	    [COUNT_WAIT] = "input wait (share of time)",
	};
	const struct hr_gather *g = &p->gather;
	uint64_t track = counter_track(p, parent, names[counter], counter <= COUNT_WRITE);
	double last = -1;

	for (unsigned i = 0; i <= HR_GATHER_BINS; i++) {
		uint64_t ns = g->from_ns + i * g->bin_ns;
		double value =
		    i < HR_GATHER_BINS ? counter_value(&rank->bins[i], counter, g->bin_ns) : 0;

		if (value != last && (int64_t)ns >= p->clock_ns && ns <= g->to_ns + g->bin_ns)
			hr_packet_counter(&p->packets, ns - (uint64_t)p->clock_ns, track, value);
		last = value;
	}
}

static const struct hr_walk_stream *stream_of(const struct hr_walk *w,
					      const struct hr_walk_process *p)
{
	for (size_t i = 0; i < w->n_streams; i++)
		if (p >= w->streams[i].processes &&
		    p < w->streams[i].processes + w->streams[i].s->n_processes)
			return &w->streams[i];
	return NULL;
}

static void write_counters(struct perfetto *p)
{
	for (size_t i = 0; i < p->gather.n_ranks; i++) {
		const struct hr_gather_rank *rank = p->gather.ranks[i];
		uint64_t parent =
		    hr_tracks_process(p->tracks, stream_of(p->x->walk, rank->first), rank->first);

		for (unsigned k = 0; k < COUNTERS; k++)
			if (k != COUNT_WAIT || rank->waits)
				write_counter(p, rank, parent, k);
	}
}

/* ---- losses and notes ---- */

static uint64_t lost_operations(const Headrace__Loss *loss)
{
	uint64_t n = 0;

	for (size_t i = 0; i < loss->n_rows; i++)
		if (hr_loss_is_operations(loss->rows[i]->reason))
			n += loss->rows[i]->count;
	return n;
}

/* Writes how many operations were lost up to each time at which headraced stored a loss. */
static void write_losses(struct perfetto *p, const struct hr_walk_stream *ws)
{
	const struct hr_stream *s = ws->s;
	uint64_t track = 0, lost = 0, ns = 0;
	char name[300];

	for (uint32_t i = 0; i < s->n_frames; i++) {
		Headrace__Frame *msg;

		if (s->frames[i].kind != HEADRACE__FRAME__BODY_LOSS ||
		    hr_stream_read(s, i, &msg) < 0)
			continue;
		if (msg->clock != NULL)
			ns = hr_tracks_ns(p->tracks, s, msg->clock->boot_ns);
		if (msg->body_case == HEADRACE__FRAME__BODY_LOSS &&
		    lost_operations(msg->loss) > 0) {
			lost += lost_operations(msg->loss);
			snprintf(name, sizeof(name), "lost operations on %.200s", s->node);
			if (track == 0)
				track = counter_track(p, p->notes, name, false);
			hr_packet_counter(&p->packets, ns, track, (double)lost);
		}
		headrace__frame__free_unpacked(msg, NULL);
	}
}

static void write_note(struct perfetto *p, const char *text)
{
	bool named = false;
	struct hr_slice s = {.type = HR_SLICE_INSTANT, .track = p->notes};

	s.ns = p->gather.from_ns > (uint64_t)p->clock_ns ? p->gather.from_ns - (uint64_t)p->clock_ns
							 : 0;
	s.category = intern_category(p, &named, 2 * KIND_CATEGORIES, "note");
	s.name = intern_region_name(p, text, strlen(text));
	hr_packet_slice(&p->packets, &s);
}

static void write_left_out(struct perfetto *p)
{
	uint64_t n = p->events_left_out + p->regions_left_out;
	char *text;

	p->x->left_out = n;
	if (n == 0 ||
	    asprintf(&text,
		     "left out because of the limit of size (--max-size): %s operations shorter "
		     "than %s and %s regions shorter than %s; the counters include the operations",
		     hr_text_count(p->events_left_out).s, hr_text_duration(p->limits.events_ns).s,
		     hr_text_count(p->regions_left_out).s,
		     hr_text_duration(p->limits.regions_ns).s) < 0)
		return;
	write_note(p, text);
	hr_sink_line(hr_asking_messages(p->x->asking), "note: %s", text);
	free(text);
}

static void write_notes(struct perfetto *p)
{
	for (size_t i = 0; i < p->x->n_notes; i++)
		write_note(p, p->x->notes[i]);
	write_left_out(p);
	for (size_t i = 0; i < p->x->walk->n_streams; i++)
		write_losses(p, &p->x->walk->streams[i]);
}

/* ---- the trace ---- */

static int advance_limits(void *self, uint64_t done)
{
	const struct perfetto *p = self;

	return hr_export_advance(p->x, done, p->total);
}

static int find_limits(struct perfetto *p)
{
	const struct hr_walk *w = p->x->walk;
	uint64_t max = p->x->options->max_bytes, regions = 0, paths = 0, room;
	int r;

	max = max == UINT64_MAX ? DEFAULT_MAX_BYTES : max;
	for (size_t i = 0; i < w->n_streams; i++) {
		uint32_t n = 0;

		for (uint32_t b = 0; b < w->streams[i].s->n_batches; b++)
			p->total += w->streams[i].s->batches[b].count;
		regions += w->streams[i].n_regions;
		if (hr_stream_files(w->streams[i].s, &n) == 0)
			paths += n;
	}
	if (max == 0 || p->total * (HR_SLICE_BYTES + PATH_BYTES) + regions * REGION_BYTES <= max)
		return 0;
	/* Half is for regions, if they need it. A path is written with the first slice that has it. */
	room = regions * REGION_BYTES < max / 2 ? max - regions * REGION_BYTES : max / 2;
	paths = paths * PATH_BYTES < room / 2 ? paths * PATH_BYTES : room / 2;
	p->total *= 2; /* two passes */
	r = hr_gather_limits(w, (room - paths) / HR_SLICE_BYTES, max / 2 / REGION_BYTES, &p->limits,
			     advance_limits, p);
	p->done = p->total / 2;
	return r;
}

/* The trace's clock is the boot clock of the first node; times of other nodes are converted to it. */
static int perfetto_begin(struct perfetto *p)
{
	const struct hr_walk *w = p->x->walk;
	struct hr_track notes = {.name = "headrace: what this trace lacks"};
	uint64_t from = p->gather.from_ns;
	int r;

	p->clock_ns = w->streams[0].s->real_minus_boot_ns;
	if ((int64_t)from < p->clock_ns)
		p->clock_ns = 0;
	hr_packets_begin(&p->packets, from - (uint64_t)p->clock_ns, from);
	r = hr_tracks_new(&p->packets, w, p->clock_ns, describe_region, p, &p->tracks);
	if (r < 0)
		return r;
	notes.uuid = p->notes = hr_tracks_uuid(p->tracks);
	hr_packet_track(&p->packets, &notes);
	return 0;
}

int hr_perfetto_write(struct hr_export *x, FILE *to)
{
	struct perfetto p = {.x = x, .packets.to = to};
	int r = hr_gather_init(&p.gather, x->walk);

	if (r == 0)
		r = find_limits(&p);
	if (r == 0)
		r = perfetto_begin(&p);
	for (size_t i = 0; i < x->walk->n_streams && r == 0; i++)
		r = perfetto_stream(&p, &x->walk->streams[i]);
	if (r == 0) {
		write_counters(&p);
		write_notes(&p);
	}
	hr_tracks_free(p.tracks);
	hr_gather_done(&p.gather);
	hr_map64_done(&p.region_names);
	return r;
}
