/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats "perfetto" and "chrome": slices for regions and operations, and counters. One pass
 * over the operations writes everything. If they exceed the limit of size, a pass before it finds
 * which ones are long enough to be drawn.
 */
#include "export/trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_BYTES (UINT64_C(200) * 1000 * 1000)
#define PATH_BYTES	  150u /* typical bytes of a path */
#define PROCESS_BYTES	  200u /* of the tracks of a process and its threads */
#define COUNTERS	  4u   /* of a rank */
#define BINS_MOST	  2000u
#define BINS_LEAST	  50u

/* ---- arguments ---- */

static void add_arg(struct hr_arguments *a, enum hr_arg name, int type, int64_t value)
{
	a->list[a->n++] = (struct hr_argument){.name = name, .type = type, .value = value};
}

static void add_text_arg(struct hr_arguments *a, enum hr_arg name, const ProtobufCBinaryData *text)
{
	if (text != NULL)
		a->list[a->n++] = (struct hr_argument){
		    .name = name, .type = HR_ARG_TEXT, .text = {text->data, text->len}};
}

/* Adds a path, which is interned with its first use. */
static void add_path_arg(struct hr_trace *t, const struct hr_stream *s, enum hr_arg name,
			 uint32_t file)
{
	uint32_t number = file != 0 ? hr_stream_file_number(s, file) : 0;
	uint64_t bit = UINT64_C(1) << (number % 64);
	struct hr_argument *a = &t->event.list[t->event.n];
	struct hr_file_info info;
	bool done;

	if (number == 0 || hr_stream_file_at(s, number, true, &info) < 0)
		return;
	*a = (struct hr_argument){.name = name,
				  .type = HR_ARG_INTERNED,
				  .value = (int64_t)(t->path_base + number),
				  .text = {info.path, info.path_bytes}};
	t->event.n++;
	done = t->path_named[number / 64] & bit;
	hr_trace_intern(t, &done, HR_INTERNED_STRING, (uint64_t)a->value, &a->text);
	t->path_named[number / 64] |= bit;
}

/* ---- regions ---- */

static void set_region_args(struct hr_arguments *a, const Headrace__Regions *frame,
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
	if (r->depth > 0)
		add_arg(a, HR_ARG_DEPTH, HR_ARG_INT, r->depth);
}

/* Describes a region for hr_tracks_new. A slice without a name is left out. */
static void describe_region(void *self, const struct hr_walk_region *row, struct hr_slice *ret)
{
	struct hr_trace *t = self;
	const ProtobufCBinaryData *name;
	const char *kind;
	struct hr_region r;

	if (row->end_ns - row->start_ns < t->limits.regions_ns)
		return;
	hr_regions_get(row->frame, row->row, &r);
	kind = hr_region_kind_name(r.kind);
	kind = kind != NULL ? kind : "region";
	name = hr_walk_text(row->frame, r.name);
	set_region_args(&t->region, row->frame, &r);
	/* Of short regions that were added up, only the begin of the first one is known. */
	ret->type = r.count > 1 || r.kind == HR_REGION_MARK ? HR_SLICE_INSTANT : HR_SLICE_BEGIN;
	hr_trace_category(t, ret, HR_TRACE_CATEGORIES + r.kind % HR_TRACE_CATEGORIES, kind);
	hr_trace_name(t, ret, name != NULL ? (const void *)name->data : kind,
		      name != NULL ? name->len : strlen(kind));
	ret->args = t->region.list;
	ret->n_args = t->region.n;
}

/*
 * Adds the input waits to the counters, also those that are too short to be drawn. Of waits that
 * were added up, only the begin of the first one is known.
 */
static void count_waits(struct hr_trace *t, const struct hr_walk_stream *ws)
{
	for (size_t i = 0; i < ws->n_regions; i++) {
		const struct hr_walk_region *row = &ws->regions[i];
		struct hr_region r;

		hr_regions_get(row->frame, row->row, &r);
		if (r.kind == HR_REGION_INPUT_WAIT)
			hr_gather_add(&t->gather, hr_walk_process(ws, row->proc), HR_GATHER_WAIT,
				      (uint64_t)hr_stream_real_ns(ws->s, row->start_ns),
				      (uint64_t)hr_stream_real_ns(ws->s, row->end_ns), 0);
	}
}

/* ---- operations ---- */

/* Sets the arguments of an operation. Their values are those of the table `events`. */
static void set_event_args(struct hr_trace *t, const struct hr_stream *s,
			   const struct hr_columns *c, uint32_t i, uint64_t bytes)
{
	struct hr_arguments *a = &t->event;

	a->n = 0;
	add_path_arg(t, s, HR_ARG_PATH, c->file[i]);
	add_path_arg(t, s, HR_ARG_PATH2, c->file2[i]);
	if (c->offset[i] != HR_OFFSET_NONE)
		add_arg(a, HR_ARG_OFFSET, HR_ARG_INT, c->offset[i]);
	if (c->ret[i] == HR_RET_NONE)
		add_arg(a, HR_ARG_CUT, HR_ARG_BOOL, 1);
	else if (c->ret[i] < 0)
		add_arg(a, HR_ARG_ERRNO, HR_ARG_INT, -c->ret[i]);
	if (bytes != UINT64_MAX)
		add_arg(a, HR_ARG_BYTES, HR_ARG_INT, (int64_t)bytes);
	if (c->bits[i] & HR_EV_SCOPE_RUNTIME)
		a->list[a->n++] = (struct hr_argument){.name = HR_ARG_SCOPE,
						       .type = HR_ARG_TEXT,
						       .text = {"runtime", strlen("runtime")}};
}

static void count_event(struct hr_trace *t, const struct hr_tracks_event *e, unsigned class,
			uint64_t bytes)
{
	enum hr_gather_kind kind = class == HR_CLASS_READ    ? HR_GATHER_READ
				   : class == HR_CLASS_WRITE ? HR_GATHER_WRITE
							     : HR_GATHER_OTHER;

	hr_gather_add(&t->gather, e->p, kind, (uint64_t)hr_stream_real_ns(e->ws->s, e->start_ns),
		      (uint64_t)hr_stream_real_ns(e->ws->s, e->end_ns),
		      bytes == UINT64_MAX ? 0 : bytes);
}

/* Whether an operation outlives its call. io_submit and its like are calls of their thread. */
static bool is_asynchronous(const struct hr_op_info *info)
{
	return info->api == HR_API_URING ||
	       (info->api == HR_API_AIO && info->class != HR_CLASS_META);
}

static int trace_event(struct hr_trace *t, const struct hr_walk_stream *ws,
		       const struct hr_walk_batch *b, uint32_t i)
{
	const struct hr_columns *c = &b->c;
	const struct hr_op_info *info = hr_op_info(c->op[i]);
	struct hr_tracks_event e = {.ws = ws,
				    .p = b->process[c->task[i]],
				    .tid = c->tasks[c->task[i]].tid,
				    .start_ns = c->start_ns[i],
				    .end_ns = c->start_ns[i] + c->dur_ns[i],
				    .async = is_asynchronous(info)};
	struct hr_slice slice = {.type = HR_SLICE_BEGIN};
	uint64_t bytes = c->ret[i] == HR_RET_NONE ? UINT64_MAX
						  : hr_bytes_moved(info->bytes_rule, c->ret[i],
								   c->asked[i], c->flags[i]);

	count_event(t, &e, info->class, bytes);
	if (c->dur_ns[i] < t->limits.events_ns)
		return 0;
	set_event_args(t, ws->s, c, i, bytes);
	hr_trace_category(t, &slice, info->class % HR_TRACE_CATEGORIES, hr_class_name(info->class));
	hr_trace_op_name(t, &slice, c->op[i], info);
	slice.args = t->event.list;
	slice.n_args = t->event.n;
	return hr_tracks_add(t->tracks, &e, &slice);
}

static int trace_batch(void *self, const struct hr_walk_stream *ws, const struct hr_walk_batch *b)
{
	int r = 0;

	for (uint32_t k = 0; k < b->n_rows && r == 0; k++)
		r = trace_event(self, ws, b, b->rows[k]);
	return r;
}

static int trace_stream(struct hr_trace *t, const struct hr_walk_stream *ws)
{
	uint32_t n_files = 0;
	int r = hr_stream_files(ws->s, &n_files);

	if (r < 0)
		return r;
	t->path_named = calloc(n_files / 64 + 1, sizeof(*t->path_named));
	if (t->path_named == NULL)
		return -ENOMEM;
	count_waits(t, ws);
	r = hr_export_events(t->x, ws, trace_batch, t);
	if (r == 0)
		r = hr_gather_rollups(&t->gather, ws, &t->x->damaged);
	if (r == 0)
		r = hr_tracks_end_stream(t->tracks, ws);
	free(t->path_named);
	t->path_base += (uint64_t)n_files + 1;
	return r;
}

/* ---- the trace ---- */

/* Decides which slices are drawn, so that the trace has at most `room` bytes. 0: all. */
static int find_limits(struct hr_trace *t, uint64_t room)
{
	const struct hr_walk *w = t->x->walk;
	const struct hr_trace_out *o = t->out;
	struct hr_gather_room of = {
	    .event_bytes = o->slice_bytes, .region_bytes = o->region_bytes, .paths = o->paths};
	uint64_t paths = o->paths ? t->x->total * PATH_MAX : 0; /* at most */

	for (size_t i = 0; i < w->n_streams; i++) {
		uint32_t n = 0;

		of.regions += w->streams[i].n_regions * o->region_bytes;
		if (!o->paths && hr_stream_files(w->streams[i].s, &n) == 0)
			paths += (uint64_t)n * PATH_BYTES;
	}
	if (room == 0 || t->x->total * o->slice_bytes + paths + of.regions <= room)
		return 0;
	/* Half is for regions, if they need it. */
	of.regions = of.regions < room / 2 ? of.regions : room / 2;
	of.events = room - of.regions;
	if (!o->paths) /* a path is written with the first slice that has it */
		of.events -= paths < of.events / 2 ? paths : of.events / 2;
	return hr_gather_limits(t->x, &of, &t->limits);
}

/* Prepares the counters, which take at most an eighth of `max` bytes, and finds the limits. */
static int prepare(struct hr_trace *t, uint64_t max)
{
	const struct hr_walk *w = t->x->walk;
	uint64_t fixed = w->n_processes * (uint64_t)PROCESS_BYTES, bins = BINS_MOST, bin_bytes;
	int r = hr_gather_init(&t->gather, w);

	if (r < 0)
		return r;
	if (t->gather.to_ns == 0) /* nothing is selected but processes */
		t->gather.from_ns = t->gather.to_ns = (uint64_t)t->x->start_ns;
	bin_bytes = (uint64_t)t->gather.n_ranks * COUNTERS * t->out->counter_bytes;
	if (max > 0 && bins > max / 8 / bin_bytes)
		bins = max / 8 / bin_bytes;
	bins = bins < BINS_LEAST ? BINS_LEAST : bins;
	fixed += bins * bin_bytes;
	r = hr_gather_bins(&t->gather, (unsigned)bins);
	return r < 0 ? r : find_limits(t, max == 0 ? 0 : max > fixed ? max - fixed : 1);
}

/* The trace's clock is the boot clock of the first node. Times of other nodes are converted. */
static int begin_trace(struct hr_trace *t)
{
	const struct hr_walk *w = t->x->walk;
	uint64_t from = t->gather.from_ns;
	int r;

	t->clock_ns = w->streams[0].s->real_minus_boot_ns;
	if ((int64_t)from < t->clock_ns)
		t->clock_ns = 0;
	t->out->begin(t->out, from - (uint64_t)t->clock_ns, from);
	r = hr_tracks_new(t->out, w, t->clock_ns, describe_region, t, &t->tracks);
	if (r < 0)
		return r;
	t->notes.name = "headrace: what this trace lacks";
	hr_tracks_add_track(t->tracks, NULL, NULL, &t->notes);
	return 0;
}

/* Frees `out`. */
static int write_trace(struct hr_export *x, struct hr_trace_out *out)
{
	struct hr_trace t = {.x = x, .out = out};
	uint64_t max = x->options->max_bytes;
	int end, r = prepare(&t, max == UINT64_MAX ? DEFAULT_MAX_BYTES : max);

	if (r == 0)
		r = begin_trace(&t);
	for (size_t i = 0; i < x->walk->n_streams && r == 0; i++)
		r = trace_stream(&t, &x->walk->streams[i]);
	if (r == 0) {
		hr_trace_counters(&t);
		hr_trace_notes(&t);
	}
	end = out->end(out);
	hr_tracks_free(t.tracks);
	hr_gather_done(&t.gather);
	hr_map64_done(&t.names);
	return r < 0 ? r : end;
}

int hr_perfetto_write(struct hr_export *x, FILE *to)
{
	struct hr_trace_out *out;
	int r = hr_perfetto_out_new(to, &out);

	return r < 0 ? r : write_trace(x, out);
}

int hr_chrome_write(struct hr_export *x, FILE *to)
{
	struct hr_trace_out *out;
	int r = hr_chrome_out_new(to, x->options->plain, &out);

	return r < 0 ? r : write_trace(x, out);
}
