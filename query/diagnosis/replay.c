/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/diagnosis/replay_loop.h"

#define TOLERANCE   0.05
#define NOISE	    0.03 /* two runs of the same loop differ by this share */
#define WORKERS_MAX 1024u
/* The measured exponent of a mount is that exact. */
#define EXPONENT_ERROR 0.25

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
static double cpu_share(const struct hr_recorded_loop *r)
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

static uint32_t or_same(uint32_t value, uint32_t recorded)
{
	return value == HR_REPLAY_SAME ? recorded : value;
}

static bool is_same(const struct hr_setting *s)
{
	const struct hr_multiple all[] = {s->io, s->cached, s->later};
	bool same = s->cores <= 0 && s->batch == 1;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		same = same && all[i].low == 1 && all[i].high == 1;
	return same;
}

static struct hr_changed_loop change(const struct hr_recorded_loop *r, const struct hr_setting *s)
{
	const struct hr_loop *l = r->loop;
	uint32_t prefetch = l->prefetch > 0 ? l->prefetch : 2;
	struct hr_changed_loop c = {.workers = or_same(s->workers, l->workers),
				    .prefetch = or_same(s->prefetch, prefetch),
				    .persistent = s->persistent || l->persistent,
				    .batch = s->batch,
				    .gap = 1};

	c.workers = c.workers < WORKERS_MAX ? c.workers : WORKERS_MAX;
	c.same = c.workers == l->workers && c.prefetch == prefetch &&
		 c.persistent == l->persistent && is_same(s);
	return c;
}

static double pick(struct hr_multiple m, int high)
{
	return high ? m.high : m.low;
}

/*
 * One end of the range. `most`: the training thread uses most CPU time, and a larger batch takes it
 * proportionally longer. `loaded`: the storage reacts most to load, and cores share a pipeline.
 */
static void choose(const struct hr_recorded_loop *r, const struct hr_setting *s, int most,
		   int loaded, struct hr_changed_loop *c)
{
	const struct hr_loop *l = r->loop;
	double cores = s->cores > 0 ? s->cores : r->cores, share = r->share;
	double main_share = most ? r->main_high : r->main_low;
	double before = slowdown(r->cores, l->workers, share, main_share);
	double more = fmax(1, c->workers) / fmax(1, l->workers);

	c->slow = c->workers > 0 ? slowdown(cores, c->workers, share, main_share) : 1;
	c->gap = 1 + main_share * (c->slow / before - 1);
	c->gap *= most ? fmax(1, s->batch) / s->batch : fmin(1, s->batch) / s->batch;
	c->io = pick(s->io, loaded) * pow(more, loaded ? r->load_high : r->load_low);
	c->io *= r->first ? 1 : pick(s->later, loaded);
	c->cached = pick(s->cached, loaded);
	if (loaded && c->workers > l->workers) {
		double shared = sharing(cores, l->workers, c->workers, share);

		c->slow *= shared;
		c->gap *= shared;
	}
}

/* The time of a loop without its waits and the start of its workers, in ns. */
static double without_waits(const struct hr_loop *l)
{
	double ns = (double)(l->to - l->created);

	for (size_t i = 0; i < l->n; i++)
		ns -= (double)(l->waits[i].to - l->waits[i].from);
	return ns;
}

/* With as many cores, and batches of the same size, the training thread takes as long as it did. */
static void add_range(const struct hr_recorded_loop *r, const struct hr_setting *s,
		      const struct hr_changed_loop *c, double low, double high,
		      struct hr_replayed *ret)
{
	double recorded = (double)(r->loop->to - r->loop->from);

	if (!c->same) {
		low = low * (1 - TOLERANCE) - NOISE * recorded;
		high = high * (1 + TOLERANCE) + NOISE * recorded;
		if (s->cores <= 0 && s->batch == 1)
			low = fmax(low, without_waits(r->loop));
	}
	ret->low += low / 1e9;
	ret->high += high / 1e9;
}

/* Two ends of the range, one of which need not be replayed. */
static bool are_equal(const struct hr_changed_loop *a, const struct hr_changed_loop *b)
{
	return a->io == b->io && a->cached == b->cached && a->slow == b->slow && a->gap == b->gap;
}

/* Adds the range of a loop to *ret. -ENOMEM. */
static int replay_loop(const struct hr_recorded_loop *r, const struct hr_setting *s,
		       struct hr_replayed *ret)
{
	struct hr_changed_loop ends[4], c = change(r, s);
	double low = INFINITY, high = 0;

	ret->recorded += (double)(r->loop->to - r->loop->from) / 1e9;
	ret->replayed += r->replayed / 1e9;
	for (int i = 0; i < 4; i++) {
		bool seen = false;
		double ns;

		choose(r, s, i & 1, i >> 1, &c);
		ends[i] = c;
		for (int k = 0; k < i; k++)
			seen = seen || are_equal(&ends[k], &c);
		if (seen)
			continue;
		ns = hr__loop_run(r, &c);
		if (isnan(ns))
			return -ENOMEM;
		low = ns < low ? ns : low;
		high = ns > high ? ns : high;
	}
	if (ret->loops++ == 0) {
		ret->workers = c.workers;
		ret->prefetch = c.workers > 0 ? c.prefetch : 0;
		ret->persistent = c.persistent;
	}
	add_range(r, s, &c, low, high, ret);
	return 0;
}

static bool is_first(const struct hr_train_life *life, const struct hr_loop *loop)
{
	for (const struct hr_loop *l = life->loops; l < loop; l++)
		if (l->loader == loop->loader)
			return false;
	return true;
}

static double stalled(const struct hr_train_life *life, double stall)
{
	double between = 0;

	for (size_t i = 0; i < life->n_loops; i++) {
		struct hr_recorded_loop r = {.loop = &life->loops[i]};

		for (size_t k = 0; r.loop->trains && k < r.loop->n; k++)
			between += hr__loop_gap(&r, k);
	}
	return between > stall ? stall / between : 1;
}

/* If the thread's CPU time is not known, it may compute all the time or never. */
static void read_main(struct hr_recorded_loop *r, const struct hr_train_life *life)
{
	double share = hr_life_main_share(life);

	r->main_low = isnan(share) ? 0 : share;
	r->main_high = isnan(share) ? 1 : share;
}

/* Without different loads, anything from a latency to a saturated mount is possible. */
static void read_load(struct hr_recorded_loop *r, uint32_t stream)
{
	const struct hr_load *load = hr__load_of(&r->d->loads, stream);
	bool known = load != NULL && load->known;

	r->load_low = known ? fmax(0, load->exponent - EXPONENT_ERROR) : 0;
	r->load_high = known ? fmin(1, load->exponent + EXPONENT_ERROR) : 1;
}

struct hr_recorded_life {
	const struct hr_train_life *life;
	double stall;
	struct hr_recorded_loop *loops; /* those that train and have batches */
	size_t n;
};

double hr_recorded_stall(const struct hr_recorded_life *r)
{
	return r->stall;
}

/* -ENOMEM. */
static int read_loop(struct hr_recorded_loop *r)
{
	struct hr_setting recorded = HR_SETTING_SAME;
	struct hr_changed_loop c = change(r, &recorded);
	int error = hr__loop_read(r);

	if (error < 0 || !r->known)
		return error;
	r->share = cpu_share(r);
	r->replayed = hr__loop_run(r, &c);
	return isnan(r->replayed) ? -ENOMEM : 0;
}

int hr_recorded_new(const struct hr_diagnosis *d, const struct hr_train_life *life,
		    struct hr_recorded_life **ret)
{
	struct hr_recorded_life *r = calloc(1, sizeof(*r));
	struct hr_recorded_loop loop = {.d = d, .cores = life->cores};
	int error = 0;

	*ret = r;
	if (r == NULL)
		return -ENOMEM;
	r->life = life;
	r->stall = hr_cycles_stall(&d->cycles[life - d->lives.list]);
	r->loops = calloc(life->n_loops + 1, sizeof(*r->loops));
	if (r->loops == NULL)
		return -ENOMEM;
	loop.stalled = stalled(life, r->stall);
	read_load(&loop, life->stream);
	read_main(&loop, life);
	for (size_t i = 0; error == 0 && i < life->n_loops; i++) {
		if (!life->loops[i].trains || life->loops[i].n == 0)
			continue;
		loop.loop = &life->loops[i];
		loop.first = is_first(life, loop.loop);
		r->loops[r->n] = loop;
		error = read_loop(&r->loops[r->n++]);
	}
	return error;
}

void hr_recorded_free(struct hr_recorded_life *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->loops[i].batches);
	free(r->loops);
	free(r);
}

int hr_replay(const struct hr_recorded_life *life, const struct hr_setting *setting,
	      struct hr_replayed *ret)
{
	*ret = (struct hr_replayed){0};
	for (size_t i = 0; i < life->n; i++) {
		const struct hr_recorded_loop *r = &life->loops[i];
		int error;

		if (r->loop->iterable && r->loop->workers > 0 &&
		    or_same(setting->workers, r->loop->workers) != r->loop->workers) {
			ret->refusal = HR_REPLAY_SHARDS;
			return 0;
		}
		if (!r->known) {
			ret->refusal = HR_REPLAY_UNKNOWN_FETCH;
			return 0;
		}
		error = replay_loop(r, setting, ret);
		if (error < 0)
			return error;
	}
	if (life->n == 0)
		ret->refusal = HR_REPLAY_NO_LOOP;
	else if (fabs(ret->replayed - ret->recorded) > TOLERANCE * ret->recorded)
		ret->refusal = HR_REPLAY_DIFFERS;
	return 0;
}
