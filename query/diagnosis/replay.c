/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/diagnosis/replay_loop.h"

#define TOLERANCE   0.05
#define NOISE	    0.03 /* two runs of the same loop can differ by this share */
#define WORKERS_MAX 1024u
/* If the limits of a range differ by more than this factor, no single value is predicted. */
#define WIDE 1.5
/* The measured exponent of a mount (samples.h) may be wrong by this much. */
#define EXPONENT_ERROR 0.25

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
	c.prefetch = c.prefetch > 0 ? c.prefetch : 1;
	c.same = c.workers == l->workers && c.prefetch == prefetch &&
		 c.persistent == l->persistent && is_same(s);
	return c;
}

/*
 * Assumed values of what is unknown, from 0 (its lower limit) to 1 (its upper limit). `main`: CPU
 * time of the training thread, and how much a larger batch adds to it. `load`: how the storage
 * reacts to load. `barriers`: the threads with which the training process computes wait for each
 * other. `shared`: two CPUs share the pipeline of a core.
 */
struct guess {
	double main, load;
	bool barriers, shared;
};
enum { MIDDLE, LEAST, MOST_MAIN, MOST_LOAD, MOST, SHARED, GUESSES };
static const struct guess guesses[GUESSES] = {
    [MIDDLE] = {0.5, 0.5, true, false}, [LEAST] = {0, 0, false, false},
    [MOST_MAIN] = {1, 0, true, false},	[MOST_LOAD] = {0, 1, true, false},
    [MOST] = {1, 1, true, false},	[SHARED] = {1, 1, true, true},
};

static double between(double a, double b, double where)
{
	return a + where * (b - a);
}

static double pick(struct hr_multiple m, double where)
{
	return between(m.low, m.high, where);
}

static void guess(const struct hr_recorded_loop *r, const struct hr_setting *s,
		  const struct guess *g, struct hr_changed_loop *c)
{
	c->cores = s->cores > 0 ? s->cores : r->cores;
	c->outside = s->cores > 0 ? 1 : r->outside;
	c->main_share = between(r->main_low, r->main_high, g->main);
	c->barriers = g->barriers;
	c->shared = g->shared && c->workers > r->loop->workers;
	c->io = pick(s->io, g->load) * (r->first ? 1 : pick(s->later, g->load));
	c->load = r->load[lround(2 * g->load)];
	c->cached = pick(s->cached, g->load);
	c->gap = between(fmin(1, s->batch), fmax(1, s->batch), g->main) / s->batch;
}

/* Returns the time of a loop without its waits and without the start of workers, in ns. */
static double without_waits(const struct hr_loop *l)
{
	double ns = (double)(l->to - l->created);

	for (size_t i = 0; i < l->n; i++)
		ns -= (double)(l->waits[i].to - l->waits[i].from);
	return ns;
}

/*
 * Adds the limits of a loop's time to *ret. If cores and batch size are as recorded, and there are
 * at least as many workers, the loop takes at least the training thread's own time.
 */
static void add_range(const struct hr_recorded_loop *r, const struct hr_setting *s,
		      const struct hr_changed_loop *c, double low, double high,
		      struct hr_replayed *ret)
{
	double recorded = (double)(r->loop->to - r->loop->from);

	if (!c->same) {
		low = low * (1 - TOLERANCE) - NOISE * recorded;
		high = high * (1 + TOLERANCE) + NOISE * recorded;
		if (s->cores <= 0 && s->batch == 1 && c->workers >= r->loop->workers)
			low = fmax(low, without_waits(r->loop));
	}
	ret->low += low / 1e9;
	ret->high += high / 1e9;
}

/* Whether two replays have the same result, because their assumed values are equal. */
static bool are_equal(const struct hr_changed_loop *a, const struct hr_changed_loop *b)
{
	return a->shared == b->shared && a->barriers == b->barriers &&
	       a->main_share == b->main_share && a->io == b->io && a->load == b->load &&
	       a->cached == b->cached && a->gap == b->gap;
}

/* Replays a loop with each guess, and adds the results to *ret and `seconds`. -ENOMEM. */
static int replay_loop(const struct hr_recorded_loop *r, const struct hr_setting *s, bool range,
		       struct hr_replayed *ret, double seconds[GUESSES])
{
	struct hr_changed_loop all[GUESSES], c = change(r, s);
	double ns[GUESSES], low = INFINITY, high = 0;

	ret->recorded += (double)(r->loop->to - r->loop->from) / 1e9;
	ret->replayed += r->replayed / 1e9;
	for (int i = 0; i < GUESSES; i++) {
		struct hr_loop_result result = {.ns = r->replayed};
		int same = 0;

		guess(r, s, &guesses[range ? i : MIDDLE], &c);
		all[i] = c;
		while (!are_equal(&all[same], &c))
			same++;
		if (same < i)
			result.ns = ns[same];
		else if (!c.same && hr__loop_run(r, &c, &result) < 0)
			return -ENOMEM;
		ns[i] = result.ns;
		seconds[i] += ns[i] / 1e9;
		low = fmin(low, ns[i]);
		high = fmax(high, ns[i]);
	}
	if (ret->loops++ == 0) {
		ret->workers = c.workers;
		ret->prefetch = c.workers > 0 ? c.prefetch : 0;
		ret->persistent = c.persistent;
	}
	add_range(r, s, &c, low, high, ret);
	return 0;
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

/* If the training thread's CPU time is unknown, the limits are 0 and all of its time. */
static void read_main(struct hr_recorded_loop *r, const struct hr_train_life *life)
{
	struct hr_main_use use = hr_life_main_use(life);

	r->main_low = isnan(use.share) ? 0 : use.share;
	r->main_high = isnan(use.share) ? 1 : use.share;
	r->others = use.others;
}

/* Reads the exponent (samples.h) of the mount. If it is unknown, its limits are 0 and 1. */
static void read_load(struct hr_recorded_loop *r, uint32_t stream)
{
	const struct hr_load *load = hr__load_of(&r->d->loads, stream);
	bool known = load != NULL && load->known;

	r->load[0] = known ? fmax(0, load->exponent - EXPONENT_ERROR) : 0;
	r->load[1] = known ? load->exponent : 0.5;
	r->load[2] = known ? fmin(1, load->exponent + EXPONENT_ERROR) : 1;
}

/*
 * Replays the recorded settings. Waits for cores that do not occur in the replay were caused by
 * other programs, so other settings do not change them. -ENOMEM.
 */
static int read_result(struct hr_recorded_loop *r)
{
	struct hr_setting recorded = HR_SETTING_SAME;
	struct hr_changed_loop c = change(r, &recorded);
	struct hr_loop_result result;
	double cpu = 0, core = 0, all = 0;
	int error = hr__loop_run(r, &c, &result);

	r->replayed = result.ns;
	r->busy = result.busy;
	for (size_t i = 0; i < r->n; i++) {
		const struct hr_spent *s = &r->d->spent[r->loop->waits[i].fetch];

		cpu += s->cpu + s->cached;
		core += s->core + s->io_core;
		all += s->ns;
	}
	r->outside = 1;
	r->slow = cpu > 0 ? 1 + core / cpu : 1;
	r->wanted = fmin(r->cores,
			 1 + r->others + (all > core ? r->loop->workers * cpu / (all - core) : 0));
	c.same = false;
	guess(r, &recorded, &guesses[MIDDLE], &c);
	if (error == 0)
		error = hr__loop_run(r, &c, &result);
	r->outside = fmax(1, r->slow / result.slow);
	return error;
}

struct hr_recorded_life {
	const struct hr_train_life *life;
	struct hr_recorded_loop *loops; /* training loops that have batches */
	size_t n;
};

/* -ENOMEM. */
static int read_loop(struct hr_recorded_loop *r)
{
	int error = hr__loop_read(r);

	return error < 0 || !r->known ? error : read_result(r);
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
	r->loops = calloc(life->n_loops + 1, sizeof(*r->loops));
	if (r->loops == NULL)
		return -ENOMEM;
	loop.stalled = stalled(life, d->cycles[life - d->lives.list].stall);
	read_load(&loop, life->stream);
	read_main(&loop, life);
	for (size_t i = 0; error == 0 && i < life->n_loops; i++) {
		if (!life->loops[i].trains || life->loops[i].other_kind || life->loops[i].n == 0)
			continue;
		loop.loop = &life->loops[i];
		loop.first = hr__loop_is_first(life, loop.loop);
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

/* Returns HR_REPLAY_OK, or why the range is too wide for a prediction. */
static enum hr_replay_refusal doubt_of(const struct hr_setting *s, const double seconds[GUESSES])
{
	if (seconds[MOST] <= WIDE * seconds[LEAST])
		return HR_REPLAY_OK;
	if (seconds[MOST_LOAD] > seconds[MOST_MAIN])
		return HR_REPLAY_LOAD;
	return s->batch != 1 ? HR_REPLAY_STEP : HR_REPLAY_MAIN;
}

/* Returns for how long the accelerator works in loops that took this many seconds; 0: unknown. */
static double accelerator_s(const struct hr_recorded_life *r, double seconds)
{
	return r->life->asked_ns > 0 ? seconds * r->life->busy_ns / r->life->asked_ns : 0;
}

int hr_replay(const struct hr_recorded_life *life, const struct hr_setting *setting, bool range,
	      struct hr_replayed *ret)
{
	double seconds[GUESSES] = {0}, least;

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
		if (life->life->asked_ns == 0 &&
		    (double)r->loop->hidden_ns >
			TOLERANCE * (double)(r->loop->to - r->loop->from)) {
			ret->refusal = HR_REPLAY_HIDDEN;
			return 0;
		}
		error = replay_loop(r, setting, range, ret, seconds);
		if (error < 0)
			return error;
	}
	if (life->n == 0)
		ret->refusal = HR_REPLAY_NO_LOOP;
	else if (fabs(ret->replayed - ret->recorded) > TOLERANCE * ret->recorded)
		ret->refusal = HR_REPLAY_DIFFERS;
	least = accelerator_s(life, ret->recorded);
	ret->predicted = fmax(least, seconds[MIDDLE]);
	ret->low = fmax(least, ret->low);
	ret->high = fmax(least, ret->high);
	ret->doubt = doubt_of(setting, seconds);
	return 0;
}
