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

#define NEAR_NS INT64_C(10000000000)

/* ---- the job --------------------------------------------------------------------------------- */

int hr__into_open(struct hr_import *i, char **ret_error)
{
	const char *store = i->options->store;
	const struct hr_catalog_filter filter = {.job = i->job_id};
	const struct hr_stream *streams;
	size_t n;
	int r;

	if (!hr_store_is(store))
		return hr_text_fail(-ENOENT, ret_error, "there is no store %s", store);
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

/* Returns 1 if the frame has a step of the process. */
static int step_visit(void *context, Headrace__Frame *frame)
{
	const Headrace__Process *p = context;
	int found = 0;

	for (size_t i = 0; i < frame->regions->n_keys; i++)
		found |= frame->regions->keys[i]->proc == p->proc &&
			 frame->regions->keys[i]->kind == HR_REGION_STEP;
	return found;
}

static bool process_trains(const struct hr_stream *s, const struct hr_process *p)
{
	return hr_stream_each_frame(s, HR_FRAME_BIT(REGIONS), step_visit, (void *)(uintptr_t)p->msg,
				    NULL) == 1;
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
	if (g->kind == HR_REGION_STEP && g->step != HR_REGION_UNKNOWN) {
		if (!hr_array_reserve(into->steps, into->n_steps, into->steps_room))
			return -ENOMEM;
		into->steps[into->n_steps++] =
		    (struct hr__recorded_step){ns, ns + (int64_t)g->dur_ns, g->step, g->epoch};
	}
	if (name)
		text = (struct hr_import_slice){(const char *)name->data, name->len};
	return hr__landmark_add(&into->recorded, NULL, g, &text, ns);
}

static int recorded_visit(void *context, Headrace__Frame *frame)
{
	struct hr_region g;
	int r = 0;

	if (hr_regions_restore(frame->regions) < 0)
		return 0; /* queries report damaged frames */
	for (size_t i = 0; i < frame->regions->n_key && !r; i++) {
		hr_regions_get(frame->regions, i, &g);
		r = recorded_add(context, &g, frame->regions);
	}
	return r;
}

static int by_start(const void *a, const void *b)
{
	const struct hr__recorded_step *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

int hr__into_choose(struct hr_import_file *f, const struct hr_import_origin *origin,
		    struct hr__into *ret)
{
	struct hr_import_origin named;
	bool several;
	int r;

	if (origin->rank < 0 && f->import->options->rank_plus1 > 0) {
		named = *origin;
		named.rank = (int32_t)(f->import->options->rank_plus1 - 1);
		origin = &named;
	}
	process_choose(f->import, origin, ret, &several);
	if (ret->to && !several) {
		ret->main_pid = origin->pid;
		r = hr_stream_each_frame(ret->to, HR_FRAME_BIT(REGIONS), recorded_visit, ret, NULL);
		if (ret->n_steps > 1)
			qsort(ret->steps, ret->n_steps, sizeof(*ret->steps), by_start);
		return r;
	}
	if (several)
		return hr_import_refuse(f,
					"several processes of job %s fit, and the trace names no "
					"pid or rank: name its rank with --rank",
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
	free(into->steps);
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

static bool thread_is_main(const struct hr_import_stream *s, uint32_t thread)
{
	int32_t pid = s->processes[s->threads[thread - 1].proc - 1].pid;

	return pid == s->into.main_pid || pid == s->into.main->msg->pid;
}

int hr__into_landmark(struct hr_import_stream *s, uint32_t thread, const struct hr_import_region *g)
{
	if (!thread_is_main(s, thread) || g->region.count > 1)
		return 0;
	return hr__landmark_add(&s->into.found, &s->into.recorded, &g->region, &g->name,
				(int64_t)g->region.start_ns);
}

int hr__into_align(struct hr_import_stream *s, struct hr__alignment *ret)
{
	struct hr__alignment a;
	int r = hr__landmarks_align(&s->into.recorded, &s->into.found, s->clock_ns,
				    !s->clock_unknown, &a);

	s->into.offset_ns = a.offset_ns;
	if (ret)
		*ret = a;
	return r;
}

void hr__into_step(const struct hr_import_stream *s, uint32_t thread, struct hr_region *g)
{
	int64_t ns = (int64_t)(g->start_ns + g->dur_ns / 2) + s->clock_ns + s->into.offset_ns;
	const struct hr__recorded_step *steps = s->into.steps;
	size_t k;

	if (s->into.n_steps == 0 || !thread_is_main(s, thread))
		return;
	k = hr_array_search(i, s->into.n_steps, steps[i].start_ns <= ns);
	g->step = g->epoch = HR_REGION_UNKNOWN;
	if (k > 0 && ns < steps[k - 1].end_ns) {
		g->step = steps[k - 1].step;
		g->epoch = steps[k - 1].epoch;
	}
}

uint32_t hr__into_kind(const struct hr_import_stream *s, uint32_t kind)
{
	/* The recording has the steps and waits already, so they would count twice. */
	return kind > HR_REGION_MARK && s->into.has_kinds ? (uint32_t)HR_REGION_RANGE : kind;
}

/* Adds a line for the user to the result. */
static int clock_note(struct hr_import_stream *s, const struct hr_import_file *f)
{
	struct hr_import *i = s->import;
	char *line;

	if (asprintf(&line, "clock of %s: %s", f->path, s->into.clock) < 0)
		return -ENOMEM;
	return hr__text_add(i, &i->result->clocks, &i->result->n_clocks, &i->clocks_room, SIZE_MAX,
			    line);
}

static int clock_text(struct hr_import_stream *s, const struct hr__alignment *a)
{
	char offset[40] = "", error[120];
	int r;

	if (!s->clock_unknown)
		snprintf(offset, sizeof(offset), "%+.3f ms ", (double)a->offset_ns / 1e6);
	snprintf(error, sizeof(error), "error %.3f ms (median; at most %.3f ms)",
		 (double)a->error_ns / 1e6, (double)a->most_ns / 1e6);
	if (a->n == 0)
		r = asprintf(&s->into.clock, "by the wall clocks of the host, error unknown");
	else
		r = asprintf(&s->into.clock, "%sby %u common %s%s, %s", offset, a->n,
			     a->steps ? "step" : "region", a->n == 1 ? "" : "s", error);
	if (r < 0)
		s->into.clock = NULL;
	return r < 0 ? -ENOMEM : 0;
}

/*
 * Refuses a trace of another run. Both clocks are of the same host, so they can only differ if
 * somebody set the clock: a trace near the process's life is accepted.
 */
static int times_check(struct hr_import_stream *s, struct hr_import_file *f)
{
	const Headrace__Process *m = s->into.main->msg;
	int64_t begin = hr_stream_real_ns(s->into.to, m->start_ns);
	int64_t end = hr_stream_real_ns(s->into.to, m->end_ns);
	int64_t first = (int64_t)s->first_ns + s->clock_ns;
	int64_t last = (int64_t)s->last_ns + s->clock_ns;

	if (s->clock_unknown || s->first_ns > s->last_ns || m->end_ns == 0 ||
	    (last >= begin - NEAR_NS && first <= end + NEAR_NS))
		return 0;
	return hr_import_refuse(
	    f, "its times are %s %s those of pid %d in job %s: it is a trace of another run",
	    hr_text_duration((uint64_t)(first > end ? first - end : begin - last)).s,
	    first > end ? "after" : "before", m->pid, f->import->job_id);
}

int hr__into_clock(struct hr_import_stream *s, struct hr_import_file *f)
{
	struct hr__alignment a;
	int r = times_check(s, f);

	if (!r)
		r = hr__into_align(s, &a);
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
