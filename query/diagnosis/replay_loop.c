/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats one loop over a DataLoader. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/diagnosis/replay_loop.h"

/* Assumed where a loop without workers shows none of these: to create, start and end a worker. */
#define CREATE_NS 15e6
#define START_NS  20e6
/* A batch that was made this long ago is in the queue. */
#define READY_NS 2e6
#define END_NS	 40e6

static double later(double a, double b)
{
	return a > b ? a : b;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list, size_t n)
{
	if (n == 0)
		return 0;
	qsort(list, n, sizeof(*list), by_value);
	return list[n / 2];
}

/* ---- what was recorded ---- */

static const struct hr_fetch *fetch_of(const struct hr_recorded_loop *r, size_t batch)
{
	return &r->d->lives.fetches[r->loop->waits[batch].fetch];
}

/* The time from a batch until the next request, or until the loop ended. */
double hr__loop_gap(const struct hr_recorded_loop *r, size_t batch)
{
	const struct hr_wait *w = r->loop->waits;
	int64_t next = batch + 1 < r->loop->n ? w[batch + 1].from : r->loop->to;

	return (double)(next - w[batch].to);
}

/* The time for which a made batch delayed the thread. */
static double handover(const struct hr_recorded_loop *r, size_t batch)
{
	const struct hr_wait *w = &r->loop->waits[batch];
	const struct hr_fetch *f = fetch_of(r, batch);
	int64_t from = f->to > w->from ? f->to : w->from;

	return w->to > from ? (double)(w->to - from) : 0;
}

/* From the creation of the workers until the one of this batch began its first fetch. */
static double start_of(const struct hr_recorded_loop *r, size_t batch)
{
	int64_t ns = batch < r->n ? fetch_of(r, batch)->from - r->loop->created : 0;

	return ns > 0 ? (double)ns : 0;
}

/*
 * A hand-over that the thread waits for contains both parts; if the batch was ready long before, the
 * thread waits for its own part only.
 */
static int read_handovers(struct hr_recorded_loop *r)
{
	double *ready = malloc((r->n + 1) * sizeof(*ready));
	double *made = malloc((r->n + 1) * sizeof(*made)), both;
	size_t n_ready = 0, n_made = 0;
	int error = ready != NULL && made != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; error == 0 && i < r->n; i++) {
		const struct hr_wait *w = &r->loop->waits[i];

		if (fetch_of(r, i)->to >= w->from)
			made[n_made++] = handover(r, i);
		else if ((double)(w->from - fetch_of(r, i)->to) > READY_NS)
			ready[n_ready++] = handover(r, i);
	}
	if (error == 0) {
		both = median(made, n_made);
		r->unpickle = n_ready > 0 ? median(ready, n_ready) : both / 2;
		r->pickle = both > r->unpickle ? both - r->unpickle : 0;
	}
	free(made);
	free(ready);
	return error;
}

/* -ENOMEM. */
static int read_batches(struct hr_recorded_loop *r)
{
	r->batches = malloc((r->n + 1) * sizeof(*r->batches));
	if (r->batches == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		const struct hr_spent *s = &r->d->spent[r->loop->waits[i].fetch];

		r->batches[i] =
		    (struct hr_recorded_batch){.ns = s->ns,
					       .io = fmax(0, s->io - s->cached - s->io_core),
					       .cached = s->cached,
					       .cpu = s->cpu,
					       .rest = s->fault + hr_spent_idle(s) + s->unknown,
					       .gap = hr__loop_gap(r, i)};
	}
	return 0;
}

int hr__loop_read(struct hr_recorded_loop *r)
{
	const struct hr_loop *l = r->loop;
	double *starts;
	size_t n;

	r->n = l->n > 0 && l->waits[l->n - 1].batch == UINT64_MAX ? l->n - 1 : l->n;
	for (size_t i = 0; i < r->n; i++)
		if (l->waits[i].fetch == HR_NO_FETCH)
			return 0;
	n = l->workers < r->n ? l->workers : r->n;
	starts = malloc((n + 1) * sizeof(*starts));
	if (starts == NULL || read_batches(r) < 0) {
		free(starts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		starts[i] = start_of(r, i);
	r->start = median(starts, n);
	free(starts);
	r->create = (double)(l->created - l->from);
	r->end = r->n < l->n ? (double)(l->waits[r->n].to - l->waits[r->n].from) : 0;
	r->known = true;
	return l->workers > 0 ? read_handovers(r) : 0;
}

/* ---- a replay ---- */

static double duration(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
		       size_t batch)
{
	const struct hr_recorded_batch *b = &r->batches[batch];

	return c->same ? b->ns
		       : b->io * c->io + (b->cached * c->cached + b->cpu) * c->slow + b->rest;
}

/* The batches of a replay, in ns. */
struct batches {
	size_t n;
	double *fetch, *gap; /* to make a batch; from its arrival until the next request */
};

/* A batch that is `size` times as large as a recorded one consists of recorded ones and parts of them. */
static void regroup(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
		    struct batches *to)
{
	double gap = 1 + (c->gap - 1) * (1 - r->stalled);

	for (size_t i = 0; i < r->n; i++) {
		double from = (double)i / c->batch, end = (double)(i + 1) / c->batch;

		for (size_t k = (size_t)from; k < to->n && (double)k < end; k++) {
			double share =
			    (fmin(end, (double)(k + 1)) - fmax(from, (double)k)) * c->batch;

			to->fetch[k] += share * duration(r, c, i);
			to->gap[k] += share * r->batches[i].gap * gap;
		}
	}
}

/* -ENOMEM. */
static int make_batches(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
			struct batches *to)
{
	double gap = 1 + (c->gap - 1) * (1 - r->stalled);

	to->n = (size_t)fmax(1, ceil((double)r->n / c->batch));
	to->fetch = calloc(2 * to->n, sizeof(*to->fetch));
	if (to->fetch == NULL)
		return -ENOMEM;
	to->gap = to->fetch + to->n;
	if (c->batch != 1) {
		regroup(r, c, to);
		return 0;
	}
	for (size_t i = 0; i < r->n; i++) {
		to->fetch[i] = duration(r, c, i);
		to->gap[i] = r->batches[i].gap * gap;
	}
	return 0;
}

/* What a pass costs besides its batches, in ns. */
struct pass {
	double create, start, end;
};

static struct pass pass_of(const struct hr_recorded_loop *r, const struct hr_changed_loop *c)
{
	struct pass p = {.end = r->end};

	/* Persistent workers start once, and end once. */
	if (c->persistent && !c->same && !r->first)
		return (struct pass){0};
	if (c->workers > 0 && r->loop->workers > 0) {
		p.create = r->create * c->workers / r->loop->workers;
		p.start = r->start;
	} else if (c->workers > 0) {
		p = (struct pass){CREATE_NS * c->workers, START_NS, END_NS};
	}
	return p;
}

double hr__loop_run(const struct hr_recorded_loop *r, const struct hr_changed_loop *c)
{
	uint32_t workers = c->workers, ahead = c->workers * c->prefetch;
	struct pass pass = pass_of(r, c);
	struct batches b = {0};
	double now = pass.create, *received, *idle;

	if (make_batches(r, c, &b) < 0)
		return NAN;
	received = calloc(b.n + workers + 1, sizeof(*received));
	idle = received + b.n;
	for (uint32_t i = 0; received != NULL && i < workers; i++)
		idle[i] = pass.create + (c->same ? start_of(r, i) : pass.start);
	for (size_t i = 0; received != NULL && i < b.n; i++) {
		double done = now + b.fetch[i];

		if (workers > 0) {
			double asked = i < ahead ? pass.create : received[i - ahead];
			double *free_at = &idle[i % workers];

			*free_at = later(asked, *free_at) + b.fetch[i];
			done = c->same ? later(now, *free_at) + handover(r, i)
				       : later(now, *free_at + r->pickle) + r->unpickle;
		}
		received[i] = done;
		now = done + b.gap[i];
	}
	free(b.fetch);
	if (received == NULL)
		return NAN;
	free(received);
	return now + pass.end;
}
