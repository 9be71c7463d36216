/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/order.h"
#include "query/diagnosis/replay_loop.h"

/* A batch that a worker finished more than this long before the wait is already in the queue. */
#define READY_NS 50000000
#define KNOWN	 3 /* a median of fewer hand-overs is not used */

static double median(double *list, size_t n)
{
	if (n == 0)
		return 0;
	hr_doubles_sort(list, n);
	return list[n / 2];
}

static const struct hr_fetch *fetch_of(const struct hr_recorded_loop *r, size_t batch)
{
	return &r->d->lives.fetches[r->loop->waits[batch].fetch];
}

double hr__loop_gap(const struct hr_recorded_loop *r, size_t batch)
{
	const struct hr_wait *w = r->loop->waits;
	int64_t next = batch + 1 < r->loop->n ? w[batch + 1].from : r->loop->to;

	return (double)(next - w[batch].to);
}

double hr__loop_handover(const struct hr_recorded_loop *r, size_t batch)
{
	const struct hr_wait *w = &r->loop->waits[batch];
	const struct hr_fetch *f = fetch_of(r, batch);
	int64_t from = f->to > w->from ? f->to : w->from;

	return w->to > from ? (double)(w->to - from) : 0;
}

double hr__loop_start(const struct hr_recorded_loop *r, size_t batch)
{
	int64_t ns = batch < r->n ? fetch_of(r, batch)->from - r->loop->created : 0;

	return ns > 0 ? (double)ns : 0;
}

/*
 * Durations of three kinds of hand-overs: the batch was ready before the wait (READY); otherwise,
 * the worker was making its next batch (BUSY), or was idle (IDLE).
 */
struct handovers {
	double *list[3];
	size_t n[3];
};
enum { READY, BUSY, IDLE };

/* Whether the worker began its next batch before this one was handed over. */
static bool is_worker_busy(const struct hr_recorded_loop *r, size_t batch)
{
	const struct hr_train_lives *lives = &r->d->lives;
	const struct hr_wait *w = &r->loop->waits[batch];
	const struct hr_fetch *f = fetch_of(r, batch);

	return w->fetch + 1 < lives->n_fetches && f[1].worker == f->worker && f[1].from < w->to;
}

/* -ENOMEM. The caller frees list[0], also after a failure. */
static int sort_handovers(const struct hr_recorded_loop *r, struct handovers *h)
{
	h->list[0] = malloc(3 * (r->n + 1) * sizeof(double));
	if (h->list[0] == NULL)
		return -ENOMEM;
	for (int i = 1; i < 3; i++)
		h->list[i] = h->list[0] + (size_t)i * (r->n + 1);
	for (size_t i = 0; i < r->n; i++) {
		int64_t before = r->loop->waits[i].from - fetch_of(r, i)->to;
		int kind = is_worker_busy(r, i) ? BUSY : IDLE;

		if (before > 0 && before <= READY_NS)
			continue;
		kind = before > 0 ? READY : kind;
		h->list[kind][h->n[kind]++] = hr__loop_handover(r, i);
	}
	return 0;
}

/*
 * Computes the durations of both parts of a hand-over: the worker sends a batch (pickle), and the
 * training thread receives it (unpickle). If the training thread waits for the batch, the measured
 * time contains both parts. If the batch was ready long before, the time contains only the second
 * part, which takes at least its CPU time. Sending takes long if the worker makes its next batch
 * meanwhile, because this delays its sending thread (Python's lock).
 */
static int read_handovers(struct hr_recorded_loop *r)
{
	const struct hr_loop *l = r->loop;
	struct handovers h = {0};
	int error = sort_handovers(r, &h);

	if (error == 0) {
		double busy = median(h.list[BUSY], h.n[BUSY]),
		       idle = median(h.list[IDLE], h.n[IDLE]);
		double both = h.n[BUSY] > 0 ? busy : idle;

		r->unpickle = h.n[READY] >= KNOWN ? median(h.list[READY], h.n[READY])
			      : l->cpu_waits > 0  ? (double)l->wait_cpu_ns / (double)l->cpu_waits
						  : both / 2;
		r->pickle_busy = fmax(0, both - r->unpickle);
		r->pickle_idle = h.n[IDLE] >= KNOWN ? fmax(0, idle - r->unpickle)
						    : fmin(r->pickle_busy, r->unpickle);
	}
	free(h.list[0]);
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

		r->batches[i] = (struct hr_recorded_batch){
		    .ns = s->ns,
		    .io = fmax(0, s->io - s->cached - s->io_core) + s->fault,
		    .cached = s->cached,
		    .cpu = s->cpu,
		    .lock = s->lock,
		    .rest = hr_spent_idle(s) - s->lock + s->unknown,
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
		starts[i] = hr__loop_start(r, i);
	r->start = median(starts, n);
	free(starts);
	r->create = (double)(l->created - l->from);
	r->end = r->n < l->n ? (double)(l->waits[r->n].to - l->waits[r->n].from) : 0;
	r->known = true;
	return l->workers > 0 ? read_handovers(r) : 0;
}
