/* SPDX-License-Identifier: Apache-2.0 */
#include "export/trace/trace_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/gpu.h"
#include "common/map64.h"

#define PID_MOST 4194304 /* the kernel's largest pid: PID_MAX_LIMIT of linux/threads.h */

enum lane_kind { LANE_SPAN, LANE_ASYNC, LANE_CROSSING, LANE_KINDS };

static const char *const lane_names[LANE_KINDS] = {
    [LANE_SPAN] = "spans", [LANE_ASYNC] = "asynchronous I/O", [LANE_CROSSING] = "overlapping"};

struct lane {
	struct hr_track track;
	uint64_t end_ns; /* of its last slice */
};

struct lanes {
	struct lane *list;
	size_t n, room;
};

struct thread {
	struct hr_track track;
	uint64_t end_ns; /* up to here, the thread's own track is written; boot clock */
	const struct hr_walk_region *regions;
	size_t n_regions, next;
	uint64_t *open; /* ends of the open slices, innermost last */
	size_t n_open, room_open;
	struct lanes lanes[LANE_KINDS];
};

struct process_track {
	uint64_t id; /* 0: not written yet */
	int32_t pid; /* unique in the trace */
};

struct hr_tracks {
	struct hr_trace_out *out;
	const struct hr_walk *w;
	int64_t clock_ns;
	hr_tracks_region *region;
	void *self;
	bool several_nodes;
	uint64_t last_id;		 /* of a track */
	struct process_track *processes; /* by number */
	struct hr_map64 pids;
	struct thread *threads;
	size_t n_threads, room_threads;
	struct hr_map64 by_thread;
};

int hr_tracks_new(struct hr_trace_out *out, const struct hr_walk *w, int64_t clock_ns,
		  hr_tracks_region *region, void *self, struct hr_tracks **ret)
{
	struct hr_tracks *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->out = out;
	t->w = w;
	t->clock_ns = clock_ns;
	t->region = region;
	t->self = self;
	for (size_t i = 1; i < w->n_streams; i++)
		t->several_nodes |= strcmp(w->streams[0].s->node, w->streams[i].s->node) != 0;
	t->processes = calloc(w->n_processes + 1, sizeof(*t->processes));
	if (t->processes == NULL) {
		hr_tracks_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void hr_tracks_free(struct hr_tracks *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->n_threads; i++) {
		for (unsigned k = 0; k < LANE_KINDS; k++)
			free(t->threads[i].lanes[k].list);
		free(t->threads[i].open);
	}
	free(t->threads);
	free(t->processes);
	hr_map64_done(&t->pids);
	hr_map64_done(&t->by_thread);
	free(t);
}

uint64_t hr_tracks_ns(const struct hr_tracks *t, const struct hr_stream *s, uint64_t boot_ns)
{
	int64_t ns = hr_stream_real_ns(s, boot_ns) - t->clock_ns;

	return ns > 0 ? (uint64_t)ns : 0;
}

/* ---- processes and threads ---- */

/* Returns the pid or, if another process of the trace has it, a number above all pids. */
static int32_t unique_pid(struct hr_tracks *t, const struct hr_walk_process *p)
{
	int32_t pid = p->p->msg->pid;

	if (pid > 0 && hr_map64_get(&t->pids, (uint64_t)pid) == HR_MAP64_NONE &&
	    hr_map64_set(&t->pids, (uint64_t)pid, p->number) == 0)
		return pid;
	return PID_MOST + (int32_t)p->number;
}

/* Writes "rank 3 worker 1 on n1". Viewers add the pid `shown`. */
static void process_name(const struct hr_tracks *t, const struct hr_walk_stream *ws,
			 const struct hr_process *p, int32_t shown, char *ret, size_t bytes)
{
	int at = hr_walk_process_name(p, "process", ret, bytes);

	if (t->several_nodes)
		at += snprintf(ret + at, bytes - (size_t)at, " on %.100s", ws->s->node);
	if (shown != p->msg->pid)
		snprintf(ret + at, bytes - (size_t)at, " (pid %d)", p->msg->pid);
}

/* Returns the track of a process, and writes it if it is used for the first time. */
static const struct process_track *
find_process(struct hr_tracks *t, const struct hr_walk_stream *ws, const struct hr_walk_process *p)
{
	struct process_track *process = &t->processes[p->number];
	const Headrace__Process *m = p->p->msg;
	struct hr_track track = {.process = true,
				 .ppid = m->ppid,
				 .cpus = m->cpus,
				 .first_cpu = m->first_cpu,
				 .cpu_quota_milli = m->cpu_quota_milli};
	char name[400];

	if (process->id != 0)
		return process;
	process->id = ++t->last_id;
	process->pid = unique_pid(t, p);
	process_name(t, ws, p->p, process->pid, name, sizeof(name));
	track.id = process->id;
	track.pid = process->pid;
	track.name = name;
	t->out->track(t->out, &track);
	return process;
}

void hr_tracks_add_track(struct hr_tracks *t, const struct hr_walk_stream *ws,
			 const struct hr_walk_process *p, struct hr_track *track)
{
	if (p != NULL) {
		const struct process_track *process = find_process(t, ws, p);

		track->parent = process->id;
		track->pid = process->pid;
		if (track->tid == p->p->msg->pid)
			track->tid = process->pid;
	}
	track->id = ++t->last_id;
	t->out->track(t->out, track);
}

/*
 * Writes the name of a thread's track. Returns the thread id for viewers; 0: the track is not that
 * of a thread, because it shows a GPU, or because another tool recorded the thread, too.
 */
static int32_t thread_name(const struct hr_walk_stream *ws, const struct hr_walk_process *p,
			   uint32_t tid, char *ret, size_t bytes)
{
	bool main = tid == (uint32_t)p->p->msg->pid;

	if (hr_gpu_tid_is(tid)) {
		snprintf(ret, bytes, "GPU %u stream %u", hr_gpu_device(tid), hr_gpu_stream(tid));
		return 0;
	}
	if (ws->s->added_to != NULL && main)
		snprintf(ret, bytes, "main, in the added trace");
	else if (ws->s->added_to != NULL)
		snprintf(ret, bytes, "thread %u, in the added trace", tid);
	else
		snprintf(ret, bytes, "%s", main ? "main" : "thread");
	return ws->s->added_to != NULL ? 0 : (int32_t)tid;
}

static struct thread *find_thread(struct hr_tracks *t, const struct hr_walk_stream *ws,
				  const struct hr_walk_process *p, uint32_t tid)
{
	uint64_t key = (uint64_t)p->number << 32 | tid;
	uint32_t i = hr_map64_get(&t->by_thread, key);
	char name[80];
	struct hr_track track = {.name = name, .thread = tid};
	struct thread *th;

	if (i != HR_MAP64_NONE)
		return &t->threads[i];
	if (!hr_array_reserve(t->threads, t->n_threads, t->room_threads) ||
	    hr_map64_set(&t->by_thread, key, (uint32_t)t->n_threads) < 0)
		return NULL;
	track.tid = thread_name(ws, p, tid, name, sizeof(name));
	hr_tracks_add_track(t, ws, p, &track);
	track.name = NULL;
	th = &t->threads[t->n_threads++];
	*th = (struct thread){.track = track};
	th->regions = hr_walk_regions(ws, p->p->msg->proc, tid, &th->n_regions);
	return th;
}

/* ---- slices ---- */

static void write_end(struct hr_tracks *t, const struct hr_walk_stream *ws,
		      const struct hr_track *track, uint64_t ns)
{
	struct hr_slice end = {.type = HR_SLICE_END, .track = track};

	end.ns = hr_tracks_ns(t, ws->s, ns);
	t->out->slice(t->out, &end);
}

static void write_slice(struct hr_tracks *t, const struct hr_walk_stream *ws,
			const struct hr_track *track, uint64_t start_ns, uint64_t end_ns,
			struct hr_slice *slice)
{
	slice->track = track;
	slice->ns = hr_tracks_ns(t, ws->s, start_ns);
	t->out->slice(t->out, slice);
	if (slice->type == HR_SLICE_BEGIN)
		write_end(t, ws, track, end_ns);
}

/* Writes a slice into the first lane that is free at its begin, or into a new lane. */
static int write_to_lane(struct hr_tracks *t, const struct hr_tracks_event *e, struct thread *th,
			 enum lane_kind kind, struct hr_slice *slice)
{
	struct lanes *l = &th->lanes[kind];
	struct hr_track track = {.name = lane_names[kind], .thread = e->tid};
	size_t i = 0;

	while (i < l->n && l->list[i].end_ns > e->start_ns)
		i++;
	if (i == l->n) {
		if (!hr_array_reserve(l->list, l->n, l->room))
			return -ENOMEM;
		hr_tracks_add_track(t, e->ws, e->p, &track);
		l->list[l->n++] = (struct lane){.track = track};
	}
	l->list[i].end_ns = e->end_ns;
	write_slice(t, e->ws, &l->list[i].track, e->start_ns, e->end_ns, slice);
	return 0;
}

static void advance_to(struct thread *th, uint64_t ns)
{
	th->end_ns = ns > th->end_ns ? ns : th->end_ns;
}

/* Ends the open regions that end at `ns` or before. */
static void close_regions(struct hr_tracks *t, const struct hr_walk_stream *ws, struct thread *th,
			  uint64_t ns)
{
	while (th->n_open > 0 && th->open[th->n_open - 1] <= ns) {
		uint64_t end_ns = th->open[--th->n_open];

		write_end(t, ws, &th->track, end_ns);
		advance_to(th, end_ns);
	}
}

/* Whether a slice fits into the thread's own track, after what is already there. */
static bool nests(const struct thread *th, uint64_t start_ns, uint64_t end_ns)
{
	return start_ns >= th->end_ns && (th->n_open == 0 || end_ns <= th->open[th->n_open - 1]);
}

static int write_region(struct hr_tracks *t, const struct hr_tracks_event *e, struct thread *th,
			const struct hr_walk_region *r)
{
	struct hr_slice slice = {.type = HR_SLICE_BEGIN};
	struct hr_region region;
	struct hr_tracks_event own = *e;

	hr_regions_get(r->frame, r->row, &region);
	t->region(t->self, r, &slice);
	own.start_ns = r->start_ns;
	own.end_ns = r->end_ns;
	if (slice.name == 0) /* left out */
		return 0;
	if (slice.type == HR_SLICE_INSTANT) {
		write_slice(t, e->ws, &th->track, r->start_ns, r->start_ns, &slice);
		return 0;
	}
	if (region.kind == HR_REGION_SPAN)
		return write_to_lane(t, &own, th, LANE_SPAN, &slice);
	if (!nests(th, r->start_ns, r->end_ns))
		return write_to_lane(t, &own, th, LANE_CROSSING, &slice);
	advance_to(th, r->start_ns);
	if (r->start_ns == r->end_ns) {
		write_slice(t, e->ws, &th->track, r->start_ns, r->end_ns, &slice);
		return 0;
	}
	if (!hr_array_reserve(th->open, th->n_open, th->room_open))
		return -ENOMEM;
	th->open[th->n_open++] = r->end_ns;
	slice.track = &th->track;
	slice.ns = hr_tracks_ns(t, e->ws->s, r->start_ns);
	t->out->slice(t->out, &slice);
	return 0;
}

/* Writes the begins and ends of the thread's regions up to e->start_ns. */
static int write_regions(struct hr_tracks *t, const struct hr_tracks_event *e, struct thread *th)
{
	int r = 0;

	for (; r == 0 && th->next < th->n_regions; th->next++) {
		const struct hr_walk_region *region = &th->regions[th->next];

		if (region->start_ns > e->start_ns)
			break;
		close_regions(t, e->ws, th, region->start_ns);
		r = write_region(t, e, th, region);
	}
	close_regions(t, e->ws, th, e->start_ns);
	return r;
}

int hr_tracks_add(struct hr_tracks *t, const struct hr_tracks_event *e, struct hr_slice *slice)
{
	struct thread *th = find_thread(t, e->ws, e->p, e->tid);
	int r;

	if (th == NULL)
		return -ENOMEM;
	if (e->async)
		return write_to_lane(t, e, th, LANE_ASYNC, slice);
	/* An operation that began before the last one is out of order: regions stay as they are. */
	r = e->start_ns >= th->end_ns ? write_regions(t, e, th) : 0;
	if (r < 0)
		return r;
	if (!nests(th, e->start_ns, e->end_ns))
		return write_to_lane(t, e, th, LANE_CROSSING, slice);
	write_slice(t, e->ws, &th->track, e->start_ns, e->end_ns, slice);
	advance_to(th, e->end_ns);
	return 0;
}

int hr_tracks_end_stream(struct hr_tracks *t, const struct hr_walk_stream *ws)
{
	struct hr_tracks_event end = {.ws = ws, .start_ns = UINT64_MAX};
	int r = 0;

	for (size_t i = 0; i < ws->n_regions && r == 0;) {
		struct thread *th;

		end.p = hr_walk_process(ws, ws->regions[i].proc);
		end.tid = ws->regions[i].tid;
		th = find_thread(t, ws, end.p, end.tid);
		if (th == NULL)
			return -ENOMEM;
		r = write_regions(t, &end, th);
		i = (size_t)(th->regions - ws->regions) + th->n_regions;
	}
	hr_map64_done(&t->by_thread); /* an added stream has tracks of its own */
	return r;
}
