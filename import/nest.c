/* SPDX-License-Identifier: Apache-2.0 */
/* Regions in any order: collects them, and sorts them by thread and time before they are added. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "import/internal.h"

#define REGIONS_MOST	(256u << 10) /* collected at a time */
#define TEXT_BYTES_MOST (64u << 20)  /* of the collected regions */
#define OPEN_MOST	512u	     /* regions around a region that are counted */

struct collected {
	struct hr_import_region g;
	uint32_t thread;
	uint32_t order;
};

struct open_region {
	uint64_t start_ns, end_ns, step;
	bool counts; /* for the depth: no step or epoch */
};

struct open_regions { /* of a thread, outermost first */
	struct open_region *list;
	uint32_t n, room;
};

struct process_step {
	uint64_t proc, start_ns, end_ns, step;
};

struct hr__nest {
	struct hr_import_stream *s;
	struct collected *list;
	uint32_t n, room;
	struct hr_arena texts;
	uint64_t text_bytes;
	struct open_regions *threads; /* by number of the thread */
	uint32_t n_threads, threads_room;
	struct process_step *steps; /* sorted by process and start */
	uint32_t n_steps, steps_room;
};

void hr__nest_free(struct hr_import_stream *s)
{
	struct hr__nest *n = s->nest;

	if (!n)
		return;
	for (uint32_t i = 0; i < n->n_threads; i++)
		free(n->threads[i].list);
	free(n->threads);
	free(n->list);
	free(n->steps);
	hr_arena_free(&n->texts);
	free(n);
	s->nest = NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int by_process_and_start(const void *a, const void *b)
{
	const struct process_step *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int steps_collect(struct hr__nest *n)
{
	uint32_t before = n->n_steps;

	for (uint32_t i = 0; i < n->n; i++) {
		const struct hr_region *g = &n->list[i].g.region;

		if (g->kind != HR_REGION_STEP || g->step == HR_REGION_UNKNOWN)
			continue;
		if (!hr_array_reserve(n->steps, n->n_steps, n->steps_room))
			return -ENOMEM;
		n->steps[n->n_steps++] =
		    (struct process_step){n->s->threads[n->list[i].thread - 1].proc, g->start_ns,
					  g->start_ns + g->dur_ns, g->step};
	}
	if (n->n_steps > before)
		qsort(n->steps, n->n_steps, sizeof(*n->steps), by_process_and_start);
	return 0;
}

/* Returns the step of the process at this time. */
static uint64_t step_at(const struct hr__nest *n, uint64_t proc, uint64_t ns)
{
	const struct process_step *s = n->steps;
	size_t k = hr_array_search(i, n->n_steps,
				   s[i].proc < proc || (s[i].proc == proc && s[i].start_ns <= ns));

	if (k == 0 || s[k - 1].proc != proc || s[k - 1].end_ns <= ns)
		return HR_REGION_UNKNOWN;
	return s[k - 1].step;
}

/* ---- depth ----------------------------------------------------------------------------------- */

static int by_thread_and_time(const void *a, const void *b)
{
	const struct collected *x = a, *y = b;
	uint64_t x_end = x->g.region.start_ns + x->g.region.dur_ns;
	uint64_t y_end = y->g.region.start_ns + y->g.region.dur_ns;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->g.region.start_ns != y->g.region.start_ns)
		return x->g.region.start_ns < y->g.region.start_ns ? -1 : 1;
	if (x_end != y_end)
		return x_end > y_end ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct open_regions *thread_at(struct hr__nest *n, uint32_t thread)
{
	if (!hr_array_fit(n->threads, thread, n->threads_room))
		return NULL;
	while (n->n_threads < thread)
		n->threads[n->n_threads++] = (struct open_regions){0};
	return &n->threads[thread - 1];
}

/* Sets depth and step of a region from those that are open in its thread. */
static int region_place(const struct hr__nest *n, struct open_regions *open, struct collected *c)
{
	struct hr_region *g = &c->g.region;
	uint64_t end_ns = g->start_ns + g->dur_ns, step = HR_REGION_UNKNOWN;
	bool counts = g->kind != HR_REGION_STEP && g->kind != HR_REGION_EPOCH;
	uint32_t kept = 0;

	g->depth = 0;
	for (uint32_t i = 0; i < open->n; i++) {
		const struct open_region o = open->list[i];

		if (o.end_ns <= g->start_ns && !(o.end_ns == end_ns && g->dur_ns == 0))
			continue;
		open->list[kept++] = o;
		/* After a flush, regions can be open that begin later. */
		if (o.start_ns <= g->start_ns && o.end_ns >= end_ns) {
			g->depth += o.counts;
			step = o.step != HR_REGION_UNKNOWN ? o.step : step;
		}
	}
	open->n = kept;
	g->depth = counts ? g->depth : 0;
	if (g->step == HR_REGION_UNKNOWN)
		g->step = step;
	if (g->step == HR_REGION_UNKNOWN && g->kind != HR_REGION_EPOCH)
		g->step = step_at(n, n->s->threads[c->thread - 1].proc, g->start_ns);
	if (g->kind == HR_REGION_MARK || g->kind == HR_REGION_SPAN || open->n == OPEN_MOST)
		return 0;
	if (!hr_array_reserve(open->list, open->n, open->room))
		return -ENOMEM;
	open->list[open->n++] = (struct open_region){g->start_ns, end_ns, g->step, counts};
	return 0;
}

/* Adds what it has collected to the stream. */
static int nest_flush(struct hr__nest *n)
{
	int r = steps_collect(n);

	for (uint32_t i = 0; i < n->n && n->s->into.to && !r; i++)
		r = hr__into_landmark(n->s, n->list[i].thread, &n->list[i].g);
	if (!r && n->s->into.to)
		r = hr__into_align(n->s, NULL);
	if (n->n > 1)
		qsort(n->list, n->n, sizeof(*n->list), by_thread_and_time);
	for (uint32_t i = 0; i < n->n && !r; i++) {
		struct collected *c = &n->list[i];
		struct open_regions *open = thread_at(n, c->thread);

		r = open ? region_place(n, open, c) : -ENOMEM;
		if (n->s->into.to)
			hr__into_step(n->s, c->thread, &c->g.region);
		if (!r)
			r = hr_import_region(n->s, c->thread, &c->g);
		if (r == -EBADMSG) /* the reader checks its times, so only the clock can be wrong */
			r = 0;
	}
	n->n = 0;
	n->text_bytes = 0;
	hr_arena_free(&n->texts);
	return r;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int text_keep(struct hr__nest *n, struct hr_import_slice *text)
{
	n->text_bytes += text->n;
	if (text->n == 0)
		return 0;
	text->p = hr_arena_copy(&n->texts, text->p, text->n);
	return text->p ? 0 : -ENOMEM;
}

int hr_import_region_nest(struct hr_import_stream *s, uint32_t thread,
			  const struct hr_import_region *region)
{
	struct hr__nest *n = s->nest;
	struct collected *c;
	int r = 0;

	if (!n)
		n = s->nest = calloc(1, sizeof(*n));
	if (!n || !thread)
		return -ENOMEM;
	n->s = s;
	if (n->n == REGIONS_MOST || n->text_bytes > TEXT_BYTES_MOST)
		r = nest_flush(n);
	if (r)
		return r;
	if (!hr_array_reserve(n->list, n->n, n->room))
		return -ENOMEM;
	c = &n->list[n->n];
	*c = (struct collected){*region, thread, n->n};
	n->n++;
	r = text_keep(n, &c->g.domain);
	if (!r)
		r = text_keep(n, &c->g.category);
	if (!r)
		r = text_keep(n, &c->g.name);
	return r ? r : text_keep(n, &c->g.args);
}

int hr_import_region_flush(struct hr_import_stream *s)
{
	int r = s->nest ? nest_flush(s->nest) : 0;

	hr__nest_free(s);
	return r;
}
