/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds traces of other tools to a job that headrace recorded: finds the recorded process of each
 * process in a trace, and the difference of the clocks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text.h"
#include "import/internal.h"

/* ---- the job --------------------------------------------------------------------------------- */

int hr__into_open(struct hr_import *i, char **ret_error)
{
	const char *store = i->options->store;
	const struct hr_catalog_filter filter = {.job = i->job_id};
	const struct hr_stream *streams;
	size_t n;
	int r;

	if (!hr_store_has_job(store, i->job_id))
		return hr_text_fail(-ENOENT, ret_error, "the store %s has no job %s", store,
				    i->job_id);
	r = hr_catalog_open(&store, 1, &filter, &i->catalog, ret_error);
	if (r)
		return r;
	n = hr_catalog_streams(i->catalog, &streams);
	for (size_t k = 0; k < n; k++)
		if (streams[k].live)
			return hr_text_fail(-EAGAIN, ret_error,
					    "job %s is still running: add traces after its end",
					    i->job_id);
	return n ? 0 : hr_text_fail(-ENOENT, ret_error, "job %s has no data", i->job_id);
}

/* ---- the recorded process -------------------------------------------------------------------- */

static bool process_trains(const struct hr_stream *s, const struct hr_process *p)
{
	Headrace__Frame *frame;
	bool trains = false;

	for (uint32_t k = 0; k < s->n_frames && !trains; k++) {
		if (s->frames[k].kind != HEADRACE__FRAME__BODY_REGIONS ||
		    hr_stream_read(s, k, &frame) != 0)
			continue;
		for (size_t i = 0; frame->regions && i < frame->regions->n_keys; i++)
			trains |= frame->regions->keys[i]->proc == p->msg->proc &&
				  frame->regions->keys[i]->kind == HR_REGION_STEP;
		headrace__frame__free_unpacked(frame, NULL);
	}
	return trains;
}

/* How well a recorded process fits: 0: not at all. */
static unsigned process_rating(const struct hr_stream *s, const struct hr_process *p,
			       const struct hr_import_origin *origin)
{
	unsigned rating = 0;
	bool rank = origin->rank >= 0 && p->rank == origin->rank;

	if (origin->rank >= 0 && p->rank >= 0 && !rank)
		return 0;
	if (origin->pid)
		rating = p->msg->pid == origin->pid ? 8 : 0;
	else if (!rank && process_trains(s, p))
		rating = 4;
	if (!rating && rank && p->worker < 0 && process_trains(s, p))
		rating = 4;
	return rating ? rating + 2 * (origin->node && strcmp(origin->node, s->node) == 0) + rank
		      : 0;
}

/*
 * Finds the best process. Images of one process (exec) have the same pid: the last one counts.
 * *ret_several: other processes fit as well.
 */
static void process_choose(const struct hr_import *i, const struct hr_import_origin *origin,
			   struct hr__into *ret, bool *ret_several)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(i->catalog, &streams);
	unsigned best = 0;

	*ret_several = false;
	for (size_t k = 0; k < n; k++) {
		const struct hr_stream *s = &streams[k];

		for (uint32_t p = 0; p < s->n_processes && !s->added_to; p++) {
			unsigned rating = process_rating(s, &s->processes[p], origin);
			bool image =
			    ret->to == s && ret->main->msg->pid == s->processes[p].msg->pid;

			if (rating == 0 || rating < best)
				continue;
			*ret_several = rating == best && !image;
			best = rating;
			ret->to = s;
			ret->main = &s->processes[p];
		}
	}
}

static int recorded_add(struct hr__into *into, const struct hr_region *g,
			const Headrace__Regions *m)
{
	const ProtobufCBinaryData *name = g->name ? &m->texts[g->name - 1] : NULL;
	int64_t ns = hr_stream_real_ns(into->to, g->start_ns);
	struct hr_import_slice text = {0};

	if (g->kind > HR_REGION_MARK)
		into->has_kinds = true;
	if (g->proc != into->main->msg->proc || g->count > 1)
		return 0;
	if (name)
		text = (struct hr_import_slice){(const char *)name->data, name->len};
	return hr__landmark_add(&into->recorded, NULL, g, &text, ns);
}

static int recorded_read(struct hr__into *into)
{
	const struct hr_stream *s = into->to;
	Headrace__Frame *frame;
	struct hr_region g;
	int r = 0;

	for (uint32_t k = 0; k < s->n_frames && !r; k++) {
		if (s->frames[k].kind != HEADRACE__FRAME__BODY_REGIONS ||
		    hr_stream_read(s, k, &frame) != 0)
			continue; /* queries report damaged frames */
		if (frame->regions && hr_regions_restore(frame->regions) == 0) {
			for (size_t i = 0; i < frame->regions->n_key && !r; i++) {
				hr_regions_get(frame->regions, i, &g);
				r = recorded_add(into, &g, frame->regions);
			}
		}
		headrace__frame__free_unpacked(frame, NULL);
	}
	return r;
}

int hr__into_choose(struct hr_import_file *f, const struct hr_import_origin *origin,
		    struct hr__into *ret)
{
	bool several;
	int r;

	process_choose(f->import, origin, ret, &several);
	if (ret->to && !several) {
		ret->main_pid = origin->pid;
		r = recorded_read(ret);
		return r;
	}
	if (several)
		return hr_import_refuse(f,
					"several processes of job %s fit: the trace names no "
					"pid or rank",
					f->import->job_id);
	if (origin->pid)
		return hr_import_refuse(f,
					"job %s has no process with pid %d: is this a trace of "
					"the same run?",
					f->import->job_id, origin->pid);
	return hr_import_refuse(f,
				"the trace names no pid or rank, and no process of job %s has "
				"steps",
				f->import->job_id);
}

void hr__into_done(struct hr__into *into)
{
	hr__landmarks_done(&into->recorded);
	hr__landmarks_done(&into->found);
	free(into->clock);
	into->clock = NULL;
}

const Headrace__Process *hr__into_process(const struct hr_import_stream *s,
					  struct hr_import_process *p)
{
	const struct hr_stream *to = s->into.to;
	const struct hr_process *recorded = NULL;
	const Headrace__Process *m;
	uint64_t clock_ns = (uint64_t)(to->real_minus_boot_ns - s->clock_ns);

	if (p->pid == s->into.main_pid || p->pid == s->into.main->msg->pid)
		recorded = s->into.main;
	for (uint32_t k = 0; k < to->n_processes && !recorded; k++)
		if (to->processes[k].msg->pid == p->pid)
			recorded = &to->processes[k];
	if (!recorded)
		return NULL;
	m = recorded->msg;
	p->pid = m->pid;
	p->ppid = m->ppid;
	p->rank = recorded->rank;
	p->local_rank = recorded->local_rank;
	p->worker = recorded->worker;
	p->world_size = m->world_size;
	p->loader = (int32_t)m->loader_plus1 - 1;
	p->loader_worker = (int32_t)m->loader_worker_plus1 - 1;
	p->start_ns = m->start_ns ? m->start_ns + clock_ns : 0;
	p->end_ns = m->end_ns ? m->end_ns + clock_ns : 0;
	return m;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

uint32_t hr__into_region(struct hr_import_stream *s, uint32_t proc,
			 const struct hr_import_region *g, int *ret_error)
{
	uint32_t kind = g->region.kind;
	int32_t pid = s->processes[proc - 1].pid;

	*ret_error = 0;
	if ((pid == s->into.main_pid || pid == s->into.main->msg->pid) && g->region.count == 1)
		*ret_error = hr__landmark_add(&s->into.found, &s->into.recorded, &g->region,
					      &g->name, (int64_t)g->region.start_ns);
	/* The recording has the steps and waits already, so they would count twice. */
	return kind > HR_REGION_MARK && s->into.has_kinds ? (uint32_t)HR_REGION_RANGE : kind;
}

/* Adds a line for the user to the result. */
static int clock_note(struct hr_import_stream *s, const struct hr_import_file *f)
{
	struct hr_import_result *to = s->import->result;
	char *line;
	int r = -ENOMEM;

	if (asprintf(&line, "clock of %s: %s", f->name, s->into.clock) < 0)
		return -ENOMEM;
	pthread_mutex_lock(&s->import->lock);
	if (hr_array_reserve(to->clocks, to->n_clocks, s->import->clocks_room)) {
		to->clocks[to->n_clocks++] = line;
		r = 0;
	}
	pthread_mutex_unlock(&s->import->lock);
	if (r)
		free(line);
	return r;
}

static int clock_text(struct hr_import_stream *s, const struct hr__alignment *a)
{
	const char *what = a->steps ? "step" : "region";
	double error_ms = (double)a->error_ns / 1e6;
	int r;

	if (a->n == 0)
		r = asprintf(&s->into.clock, "by the wall clocks of the host, error unknown");
	else if (s->clock_unknown)
		r = asprintf(&s->into.clock, "by %u common %s%s, error at most %.3f ms", a->n, what,
			     a->n == 1 ? "" : "s", error_ms);
	else
		r = asprintf(&s->into.clock, "%+.3f ms by %u common %s%s, error at most %.3f ms",
			     (double)a->offset_ns / 1e6, a->n, what, a->n == 1 ? "" : "s",
			     error_ms);
	if (r < 0)
		s->into.clock = NULL;
	return r < 0 ? -ENOMEM : 0;
}

int hr__into_clock(struct hr_import_stream *s, struct hr_import_file *f)
{
	struct hr__alignment a;
	int r;

	for (uint32_t i = 0; i < s->into.found.n; i++)
		s->into.found.list[i].ns += s->clock_ns;
	r = hr__landmarks_align(&s->into.recorded, &s->into.found, !s->clock_unknown, &a);
	if (r)
		return r;
	if (a.n == 0 && s->clock_unknown)
		return hr_import_refuse(f,
					"its clock is unknown: it has no time of day, and no "
					"step or region in common with job %s",
					f->import->job_id);
	s->into.error_ns = a.error_ns;
	r = clock_text(s, &a);
	if (!r)
		r = clock_note(s, f);
	s->clock_ns += a.offset_ns;
	if (!r && s->into.n_operations)
		hr_import_problem(f,
				  "%" PRIu64 " operations were not added: headrace recorded the "
				  "I/O of this run itself",
				  s->into.n_operations);
	return r;
}
