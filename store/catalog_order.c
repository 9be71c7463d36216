/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the streams of a catalogue, and the numbers of their processes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog.h"

static int by_job_and_node(const void *a, const void *b)
{
	const struct hr_stream *x = &(*(struct hr__stream *const *)a)->view;
	const struct hr_stream *y = &(*(struct hr__stream *const *)b)->view;
	int r = strcmp(x->job, y->job);

	if (r == 0)
		r = strcmp(x->cluster, y->cluster);
	if (r == 0)
		r = x->attempt < y->attempt ? -1 : x->attempt > y->attempt;
	if (r == 0)
		r = strcmp(x->node, y->node);
	if (r == 0)
		r = x->instance < y->instance ? -1 : x->instance > y->instance;
	return r;
}

/* Returns when the first process of the stream started, in ns of the wall clock. */
static int64_t started(const struct hr_stream *s)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < s->n_processes; i++)
		if (s->processes[i].msg->start_ns < first)
			first = s->processes[i].msg->start_ns;
	return s->n_processes ? hr_stream_real_ns(s, first) : INT64_MAX;
}

static int by_place_and_time(const void *a, const void *b)
{
	const struct hr_stream *x = &(*(struct hr__stream *const *)a)->view;
	const struct hr_stream *y = &(*(struct hr__stream *const *)b)->view;
	bool x_added = (*(struct hr__stream *const *)a)->added_to != 0;
	bool y_added = (*(struct hr__stream *const *)b)->added_to != 0;
	int64_t x_start, y_start;
	int r = strcmp(x->job, y->job);

	if (r == 0)
		r = strcmp(x->node, y->node);
	if (r != 0)
		return r;
	if (x_added != y_added) /* so that added streams do not change the numbers of others */
		return x_added ? 1 : -1;
	x_start = started(x);
	y_start = started(y);
	if (x_start != y_start)
		return x_start < y_start ? -1 : 1;
	return x->instance < y->instance ? -1 : x->instance > y->instance;
}

/* Returns the highest number of a process in rows and events, because a row may be damaged. */
static uint64_t last_proc(const struct hr_stream *s)
{
	uint64_t last = s->n_processes ? s->processes[s->n_processes - 1].msg->proc : 0;

	for (uint32_t i = 0; i < s->n_batches; i++) {
		const struct hr_batch_ref *b = &s->batches[i];

		if (b->n_procs > 0 && b->procs[b->n_procs - 1] > last)
			last = b->procs[b->n_procs - 1];
	}
	return last;
}

static void number_processes(struct hr_catalog *c)
{
	const struct hr_stream *before = NULL;

	if (c->n_streams < 2)
		return;
	qsort(c->streams, c->n_streams, sizeof(c->streams[0]), by_place_and_time);
	for (size_t i = 0; i < c->n_streams; i++) {
		struct hr_stream *s = &c->streams[i]->view;

		if (before && strcmp(before->job, s->job) == 0 &&
		    strcmp(before->node, s->node) == 0)
			s->proc_base = before->proc_base + last_proc(before);
		before = s;
	}
}

/* Finds the stream to which stream i was added: of the same node, so it is near. NULL: missing. */
static const struct hr_stream *recorded_stream(const struct hr_catalog *c, size_t i,
					       uint64_t instance)
{
	const struct hr_stream *s = &c->views[i];

	for (size_t k = 0; k < c->n_streams; k++) {
		const struct hr_stream *other = &c->views[k];

		if (other->instance == instance && other->attempt == s->attempt && k != i &&
		    c->streams[k]->added_to == 0 && strcmp(other->node, s->node) == 0 &&
		    strcmp(other->job, s->job) == 0 && strcmp(other->cluster, s->cluster) == 0)
			return other;
	}
	return NULL;
}

/* Removes added streams without an end: their import still runs, or was killed. */
static void drop_unfinished(struct hr_catalog *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_streams; i++) {
		if (c->streams[i]->added_to != 0 && !c->streams[i]->view.ended)
			hr__stream_free(c->streams[i]);
		else
			c->streams[n++] = c->streams[i];
	}
	c->n_streams = n;
}

int hr__catalog_finish(struct hr_catalog *c)
{
	for (size_t i = 0; i < c->n_streams; i++) {
		int r = hr__stream_finish(c, c->streams[i]);

		if (r < 0)
			return r;
	}
	drop_unfinished(c);
	c->views = calloc(c->n_streams + 1, sizeof(*c->views));
	if (!c->views)
		return -ENOMEM;
	number_processes(c);
	if (c->n_streams > 0)
		qsort(c->streams, c->n_streams, sizeof(c->streams[0]), by_job_and_node);
	for (size_t i = 0; i < c->n_streams; i++)
		c->views[i] = c->streams[i]->view;
	for (size_t i = 0; i < c->n_streams; i++)
		if (c->streams[i]->added_to != 0)
			c->views[i].added_to = recorded_stream(c, i, c->streams[i]->added_to);
	return 0;
}
