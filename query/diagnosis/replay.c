/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define TOLERANCE   0.05
#define WORKERS_MAX 1024u
/* The measured exponent of a mount is that exact. */
#define EXPONENT_ERROR 0.25
/* Assumed where a loop without workers shows none of these: to create, start and end a worker. */
#define CREATE_NS 15e6
#define START_NS  20e6
/* A batch that was made this long ago is in the queue. */
#define READY_NS 2e6
#define END_NS	 40e6

/* What is the same in all replays of a loop. */
struct recorded {
	const struct hr_diagnosis *d;
	const struct hr_loop *loop;
	bool first;		    /* over its loader */
	size_t n;		    /* batches */
	double create;		    /* iter() */
	double start;		    /* from then until a worker fetches */
	double end;		    /* until all workers have ended */
	double pickle, unpickle;    /* a hand-over: the worker's and the training thread's part */
	double cores;		    /* 0: unknown */
	double main_low, main_high; /* share of a core that the thread uses between waits */
	double load_low, load_high; /* exponent of the mount (samples.h) */
	double stalled; /* share of the time between waits that it waited for other ranks */
};

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

double hr_life_cores(const struct hr_diagnosis *d, const struct hr_train_life *life)
{
	const struct hr_process *p = hr_stream_process(d->q->streams[life->stream].s, life->proc);
	unsigned sharing = 0;

	/* Ranks of a node with as many processors and the same first one probably share them. */
	for (size_t i = 0; i < d->lives.n; i++) {
		const struct hr_train_life *other = &d->lives.list[i];
		const struct hr_process *o =
		    hr_stream_process(d->q->streams[other->stream].s, other->proc);

		sharing += other->stream == life->stream && o->msg->cpus == p->msg->cpus &&
			   o->msg->first_cpu == p->msg->first_cpu;
	}
	return sharing > 0 ? (double)p->msg->cpus / sharing : 0;
}

/* ---- what was recorded ---- */

static const struct hr_fetch *fetch_of(const struct recorded *r, size_t batch)
{
	return &r->d->lives.fetches[r->loop->waits[batch].fetch];
}

/* The time from a batch until the next request, or until the loop ended. */
static double gap_after(const struct recorded *r, size_t batch)
{
	const struct hr_wait *w = r->loop->waits;
	int64_t next = batch + 1 < r->loop->n ? w[batch + 1].from : r->loop->to;

	return (double)(next - w[batch].to);
}

/* The time for which a made batch delayed the thread. */
static double handover(const struct recorded *r, size_t batch)
{
	const struct hr_wait *w = &r->loop->waits[batch];
	const struct hr_fetch *f = fetch_of(r, batch);
	int64_t from = f->to > w->from ? f->to : w->from;

	return w->to > from ? (double)(w->to - from) : 0;
}

/* From the creation of the workers until the one of this batch began its first fetch. */
static double start_of(const struct recorded *r, size_t batch)
{
	int64_t ns = batch < r->n ? fetch_of(r, batch)->from - r->loop->created : 0;

	return ns > 0 ? (double)ns : 0;
}

/*
 * A hand-over that the thread waits for contains both parts; if the batch was ready long before, the
 * thread waits for its own part only.
 */
static int read_handovers(struct recorded *r)
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

/* False: fetches are unknown. -ENOMEM. */
static int read_loop(struct recorded *r)
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
	if (starts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		starts[i] = start_of(r, i);
	r->start = median(starts, n);
	free(starts);
	r->create = (double)(l->created - l->from);
	r->end = r->n < l->n ? (double)(l->waits[r->n].to - l->waits[r->n].from) : 0;
	return l->workers > 0 && read_handovers(r) < 0 ? -ENOMEM : 1;
}

/* ---- a replay ---- */

/*
 * How much slower computing is than on a core of its own: workers compute during `share` of their
 * time, and the training thread during `main_share` of its own.
 */
static double slowdown(double cores, double workers, double share, double main_share)
{
	double wanted = workers * share + main_share;

	return cores > 0 && wanted > cores ? wanted / cores : 1;
}

/* The part of the time of fetches, without waits for cores, that is CPU time. */
static double cpu_share(const struct recorded *r)
{
	double cpu = 0, all = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct hr_spent *s = &r->d->spent[r->loop->waits[i].fetch];

		cpu += s->cpu + s->cached;
		all += s->ns - s->core - s->io_core;
	}
	return all > 0 ? cpu / all : 0;
}

/*
 * How much longer CPU work may take if `more` workers run instead of `less`: two hardware threads of a
 * core, or two virtual CPUs on it, have about 1.3 times the speed of one (measured: 1.5 times longer).
 */
static double sharing(double cores, uint32_t less, uint32_t more, double share)
{
	double busy = fmin(cores, 1 + more * share) - fmin(cores, 1 + less * share);

	return cores > 0 ? 1 + 0.5 * fmin(1, busy / (cores / 2)) : 1;
}

struct changed {
	uint32_t workers, prefetch;
	bool persistent, same;
	double io;     /* multiple of the time of I/O, */
	double cached; /* and of that which the kernel's caches serve */
	double slow; /* multiple of the CPU time of fetches, where they no longer wait for cores */
	double gap;  /* multiple of the time between waits */
};

static double duration(const struct recorded *r, const struct changed *c, size_t batch)
{
	const struct hr_spent *s = &r->d->spent[r->loop->waits[batch].fetch];

	if (c->same)
		return s->ns;
	return fmax(0, s->io - s->cached - s->io_core) * c->io +
	       (s->cached * c->cached + s->cpu) * c->slow + s->fault + hr_spent_idle(s) +
	       s->unknown;
}

/* The duration of the loop, in ns; NAN: out of memory. */
static double run(const struct recorded *r, const struct changed *c)
{
	uint32_t workers = c->workers, ahead = c->workers * c->prefetch;
	double create = 0, start = 0, end = r->end, now, *received, *idle;

	if (workers > 0 && r->loop->workers > 0) {
		double more = (double)workers / r->loop->workers;

		create = r->create * more;
		start = r->start;
	} else if (workers > 0) {
		create = CREATE_NS * workers;
		start = START_NS;
		end = END_NS;
	}
	/* Persistent workers start once, and end once. */
	if (c->persistent && !c->same && !r->first)
		create = start = end = 0;
	received = calloc(r->n + 1, sizeof(*received));
	idle = calloc((size_t)workers + 1, sizeof(*idle));
	if (received == NULL || idle == NULL) {
		free(received);
		free(idle);
		return NAN;
	}
	for (uint32_t i = 0; i < workers; i++)
		idle[i] = create + (c->same ? start_of(r, i) : start);
	now = create;
	for (size_t i = 0; i < r->n; i++) {
		double done = now + duration(r, c, i);

		if (workers > 0) {
			double asked = i < ahead ? create : received[i - ahead];
			double *free_at = &idle[i % workers];

			*free_at = fmax(asked, *free_at) + duration(r, c, i);
			done = c->same ? fmax(now, *free_at) + handover(r, i)
				       : fmax(now, *free_at + r->pickle) + r->unpickle;
		}
		received[i] = done;
		now = done + gap_after(r, i) * (1 + (c->gap - 1) * (1 - r->stalled));
	}
	free(received);
	free(idle);
	return now + end;
}

static uint32_t or_same(uint32_t value, uint32_t recorded)
{
	return value == HR_REPLAY_SAME ? recorded : value;
}

/* Adds the range of a loop to *ret. -ENOMEM. */
static int replay_loop(const struct recorded *r, const struct hr_setting *s,
		       struct hr_replayed *ret)
{
	const struct hr_loop *l = r->loop;
	uint32_t prefetch = l->prefetch > 0 ? l->prefetch : 2;
	struct changed c = {.workers = l->workers, .prefetch = prefetch, .same = true, .gap = 1};
	double share = cpu_share(r), low = INFINITY, high = 0;
	double cores = s->cores > 0 ? s->cores : r->cores, replayed = run(r, &c), more;

	if (isnan(replayed))
		return -ENOMEM;
	ret->recorded += (double)(l->to - l->from) / 1e9;
	ret->replayed += replayed / 1e9;
	c.workers = or_same(s->workers, l->workers);
	c.workers = c.workers < WORKERS_MAX ? c.workers : WORKERS_MAX;
	more = fmax(1, c.workers) / fmax(1, l->workers);
	c.prefetch = or_same(s->prefetch, prefetch);
	c.persistent = s->persistent || l->persistent;
	c.same = c.workers == l->workers && c.prefetch == prefetch &&
		 c.persistent == l->persistent && s->cores <= 0 && s->io == 1 && s->cached == 1;
	for (int most = 0; most < 2; most++) {
		double main_share = most ? r->main_high : r->main_low;
		double before = slowdown(r->cores, l->workers, share, main_share);

		c.slow = c.workers > 0 ? slowdown(cores, c.workers, share, main_share) : 1;
		c.gap = 1 + main_share * (c.slow / before - 1);
		/*
		 * More workers may slow down each other: a mount that is already saturated
		 * serves them one after the other, and cores may share a pipeline.
		 */
		for (int loaded = 0; loaded < 2; loaded++) {
			double ns, exponent = loaded ? r->load_high : r->load_low;

			c.io = s->io * pow(more, exponent);
			c.cached = s->cached;
			if (loaded && c.workers > l->workers) {
				double shared = sharing(cores, l->workers, c.workers, share);

				c.slow *= shared;
				c.gap *= shared;
			}
			ns = run(r, &c);
			if (isnan(ns))
				return -ENOMEM;
			low = ns < low ? ns : low;
			high = ns > high ? ns : high;
		}
	}
	if (ret->loops++ == 0) {
		ret->workers = c.workers;
		ret->prefetch = c.workers > 0 ? c.prefetch : 0;
		ret->persistent = c.persistent;
	}
	ret->low += low * (c.same ? 1 : 1 - TOLERANCE) / 1e9;
	ret->high += high * (c.same ? 1 : 1 + TOLERANCE) / 1e9;
	return 0;
}

static bool is_first(const struct hr_train_life *life, const struct hr_loop *loop)
{
	for (const struct hr_loop *l = life->loops; l < loop; l++)
		if (l->loader == loop->loader)
			return false;
	return true;
}

static double stalled(const struct hr_diagnosis *d, const struct hr_train_life *life)
{
	double stall = hr_cycles_stall(&d->cycles[life - d->lives.list]), between = 0;

	for (size_t i = 0; i < life->n_loops; i++) {
		struct recorded r = {.loop = &life->loops[i]};

		for (size_t k = 0; r.loop->trains && k < r.loop->n; k++)
			between += gap_after(&r, k);
	}
	return between > stall ? stall / between : 1;
}

/* If the thread's CPU time is not known, it may compute all the time or never. */
static void read_main(struct recorded *r, const struct hr_train_life *life)
{
	double share = hr_life_main_share(life);

	r->main_low = isnan(share) ? 0 : share;
	r->main_high = isnan(share) ? 1 : share;
}

/* Without different loads, anything from a latency to a saturated mount is possible. */
static void read_load(struct recorded *r, uint32_t stream)
{
	const struct hr_load *load = hr__load_of(&r->d->loads, stream);
	bool known = load != NULL && load->known;

	r->load_low = known ? fmax(0, load->exponent - EXPONENT_ERROR) : 0;
	r->load_high = known ? fmin(1, load->exponent + EXPONENT_ERROR) : 1;
}

int hr_replay(const struct hr_diagnosis *d, const struct hr_train_life *life,
	      const struct hr_setting *setting, struct hr_replayed *ret)
{
	struct recorded r = {.d = d, .cores = hr_life_cores(d, life), .stalled = stalled(d, life)};
	bool any = false;

	*ret = (struct hr_replayed){0};
	read_load(&r, life->stream);
	read_main(&r, life);
	for (size_t i = 0; i < life->n_loops; i++) {
		int known;

		r.loop = &life->loops[i];
		if (!r.loop->trains || r.loop->n == 0)
			continue;
		any = true;
		r.first = is_first(life, r.loop);
		known = read_loop(&r);
		if (known < 0)
			return known;
		if (!known) {
			ret->refusal = HR_REPLAY_UNKNOWN_FETCH;
			return 0;
		}
		known = replay_loop(&r, setting, ret);
		if (known < 0)
			return known;
	}
	if (!any)
		ret->refusal = HR_REPLAY_NO_LOOP;
	else if (fabs(ret->replayed - ret->recorded) > TOLERANCE * ret->recorded)
		ret->refusal = HR_REPLAY_DIFFERS;
	return 0;
}
