/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats one loop over a DataLoader with other settings. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/diagnosis/replay_loop.h"

/* Assumed times to create, start and end a worker, if the recorded loop had no workers. */
#define CREATE_NS 15e6
#define START_NS  20e6
#define END_NS	  40e6
/* If less of a batch is left to do than this, only rounding is left: the batch is done. */
#define DONE 1e-9

/*
 * Two hardware threads of a core, or two virtual CPUs on it, together have about 1.3 times the
 * speed of one (measured: work takes 1.5 times as long).
 */
#define SHARED_SLOWDOWN 0.5

#define ALMOST 0.05 /* a smaller excess of threads over cores is within the error */

/* The time of a pass in addition to its batches, in ns. */
struct pass {
	double create, start, end;
};

struct worker {
	bool busy;
	size_t batch;		    /* the batch that it makes, or will make next */
	double io, cpu, lock, rest; /* parts of the time of this batch, in ns */
	double left;		    /* the part of this batch that is not made, 0 to 1 */
	double start;		    /* time at which it can begin its first batch */
};

struct loop_run {
	const struct hr_recorded_loop *r;
	const struct hr_changed_loop *c;
	struct hr_recorded_batch *regrouped; /* NULL: batches of the recorded size */
	const struct hr_recorded_batch *batches;
	size_t n;
	struct worker *workers; /* c->workers of them */
	double *made; /* when the worker of each batch has handed it over; INFINITY: not yet */
	/*
	 * For each number of busy workers: the multiple of their I/O, and of their waits for locks.
	 */
	double *load, *locked;
	struct pass pass;
	double now;
	size_t received; /* number of batches that the training thread has received */
	/* What the training thread does: waits for its next batch, receives it, works on it. */
	enum { WAITS, TAKES, WORKS } phase;
	double left; /* TAKES: the rest in ns; WORKS: the part that is not done, 0 to 1 */
	double slow; /* how many times as long CPU work takes at this moment */
	/*
	 * Integrals over time: number of busy workers, its square. Sums: CPU work, slowed CPU work.
	 */
	double busy, squares, cpu, slowed;
};

static struct pass pass_of(const struct hr_recorded_loop *r, const struct hr_changed_loop *c)
{
	struct pass p = {.end = r->end};

	/* Persistent workers start before the first pass only. */
	if (c->persistent && !c->same && !r->first)
		return (struct pass){0};
	if (c->workers > 0 && r->loop->workers > 0) {
		p.create = r->create * c->workers / r->loop->workers;
		p.start = r->start;
	} else if (c->workers > 0) {
		p = (struct pass){CREATE_NS * c->workers, START_NS, END_NS};
	}
	return c->shared ? (struct pass){2 * p.create, 2 * p.start, 2 * p.end} : p;
}

/* ---- batches of another size ---- */

static void add_share(struct hr_recorded_batch *to, const struct hr_recorded_batch *from,
		      double share)
{
	to->io += share * from->io;
	to->cached += share * from->cached;
	to->cpu += share * from->cpu;
	to->lock += share * from->lock;
	to->rest += share * from->rest;
	to->gap += share * from->gap;
}

/*
 * Makes batches that are c->batch times as large as recorded: each consists of recorded batches and
 * parts of them.
 */
static void regroup(struct loop_run *s)
{
	double times = s->c->batch;

	for (size_t i = 0; i < s->r->n; i++) {
		double from = (double)i / times, end = (double)(i + 1) / times;

		for (size_t k = (size_t)from; k < s->n && (double)k < end; k++)
			add_share(&s->regrouped[k], &s->r->batches[i],
				  (fmin(end, (double)(k + 1)) - fmax(from, (double)k)) * times);
	}
}

/* ---- a moment of a replay ---- */

/* How long the training thread works on a batch before it requests the next one; not 0. */
static double work_of(const struct loop_run *s)
{
	const struct hr_changed_loop *c = s->c;
	double gap = fmax(1, s->batches[s->received - 1].gap), share = c->main_share;
	double before = fmin(s->r->slow, 1 / fmax(1e-9, share)), times;

	times = c->same ? 1 : c->gap * (1 + share * (s->slow - before));
	/* The time of waits for other ranks does not change. */
	return gap * (1 + (times - 1) * (1 - s->r->stalled));
}

/* How long a worker needs for its batch if CPU work takes `slow` times as long; not 0. */
static double batch_ns(const struct loop_run *s, const struct worker *w, size_t busy, double slow)
{
	return fmax(1, w->io * s->load[busy] + w->lock * s->locked[busy] + w->cpu * slow + w->rest);
}

/* Finds s->slow from the number of threads for each core that want to compute. */
static void contend(struct loop_run *s, size_t busy)
{
	const struct hr_changed_loop *c = s->c;
	double wanted = s->phase == TAKES   ? 1
			: s->phase == WORKS ? c->main_share + s->r->others
					    : 0;

	for (uint32_t i = 0; i < c->workers; i++) {
		const struct worker *w = &s->workers[i];

		if (w->busy)
			wanted += w->cpu / batch_ns(s, w, busy, 1);
	}
	s->slow = c->cores > 0 ? fmax(1, wanted / c->cores) : 1;
	/*
	 * Threads that wait for each other are as fast as the thread that shares its core with most
	 * others.
	 */
	if (c->barriers && s->phase == WORKS && s->r->others >= HR_PARALLEL_CORES)
		s->slow = ceil(s->slow - ALMOST);
	s->slow *= c->outside;
	if (c->shared && c->cores > 0)
		s->slow *=
		    1 + SHARED_SLOWDOWN * fmin(1, fmax(0, fmin(wanted, c->cores) - s->r->wanted) /
						      (c->cores / 2));
}

/* Returns how many batches the training thread has requested. */
static size_t requested(const struct loop_run *s)
{
	return s->received + (size_t)s->c->workers * s->c->prefetch;
}

/* Begins the worker's next batch. */
static void begin_batch(const struct loop_run *s, struct worker *w)
{
	const struct hr_changed_loop *c = s->c;
	const struct hr_recorded_batch *b = &s->batches[w->batch];

	w->busy = true;
	w->left = 1;
	w->io = c->same ? b->ns : b->io * c->io;
	w->cpu = c->same ? 0 : b->cached * c->cached + b->cpu;
	w->lock = c->same ? 0 : b->lock;
	w->rest = c->same ? 0 : b->rest;
}

/*
 * Each idle worker begins its next batch if the training thread has requested it. Returns the
 * number of busy workers.
 */
static size_t assign(struct loop_run *s)
{
	size_t busy = 0;

	for (uint32_t i = 0; i < s->c->workers; i++) {
		struct worker *w = &s->workers[i];

		if (!w->busy && w->batch < s->n && w->batch < requested(s) && s->now >= w->start)
			begin_batch(s, w);
		busy += w->busy;
	}
	return busy;
}

/* The time until a worker or the training thread finishes what it does, in ns. */
static double until_next(const struct loop_run *s, size_t busy)
{
	double ns = INFINITY;

	for (uint32_t i = 0; i < s->c->workers; i++) {
		const struct worker *w = &s->workers[i];

		if (w->busy)
			ns = fmin(ns, w->left * batch_ns(s, w, busy, s->slow));
		else if (w->start > s->now)
			ns = fmin(ns, w->start - s->now);
	}
	if (s->phase == WAITS)
		return fmin(ns, fmax(0, s->made[s->received] - s->now));
	return fmin(ns, s->phase == TAKES ? s->left : s->left * work_of(s));
}

/* The worker's part of the hand-over of its batch, in ns. */
static double pickle_of(const struct loop_run *s, const struct worker *w)
{
	size_t next = w->batch + s->c->workers;

	if (s->c->same)
		return 0;
	return next < s->n && next < requested(s) ? s->r->pickle_busy : s->r->pickle_idle;
}

static void pass_workers(struct loop_run *s, double ns, size_t busy)
{
	s->busy += ns * (double)busy;
	s->squares += ns * (double)busy * (double)busy;
	for (uint32_t i = 0; i < s->c->workers; i++) {
		struct worker *w = &s->workers[i];
		double share;

		if (!w->busy)
			continue;
		share = ns / batch_ns(s, w, busy, s->slow);
		s->cpu += share * w->cpu;
		s->slowed += share * w->cpu * s->slow;
		w->left -= share;
		if (w->left > DONE)
			continue;
		w->busy = false;
		s->made[w->batch] = s->now + ns + pickle_of(s, w);
		w->batch += s->c->workers;
	}
}

static void pass_main(struct loop_run *s, double ns)
{
	double now = s->now + ns;

	switch (s->phase) {
	case WAITS:
		if (s->made[s->received] > now)
			return;
		s->phase = TAKES;
		s->left = s->c->same ? hr__loop_handover(s->r, s->received) : s->r->unpickle;
		return;
	case TAKES:
		s->left -= ns;
		if (s->left > DONE)
			return;
		s->received++;
		s->phase = WORKS;
		s->left = 1;
		return;
	case WORKS:
		s->left -= ns / work_of(s);
		if (s->left <= DONE)
			s->phase = WAITS;
	}
}

static void run_workers(struct loop_run *s)
{
	while (s->received < s->n || s->phase == WORKS) {
		size_t busy = assign(s);
		double ns;

		contend(s, busy);
		ns = until_next(s, busy);
		pass_workers(s, ns, busy);
		pass_main(s, ns);
		s->now += ns;
	}
}

/* Replays a loop without workers: the training thread makes the batches. */
static void run_alone(struct loop_run *s)
{
	const struct hr_changed_loop *c = s->c;

	s->slow = c->outside * (c->cores > 0 ? fmax(1, 1 / c->cores) : 1);
	for (size_t i = 0; i < s->n; i++) {
		struct worker *alone = s->workers;

		alone->batch = i;
		begin_batch(s, alone);
		s->received = i + 1;
		s->now += batch_ns(s, alone, 1, s->slow);
		s->now += work_of(s);
	}
}

/* ---- a replay ---- */

/* -ENOMEM. */
static int run_init(struct loop_run *s)
{
	const struct hr_changed_loop *c = s->c;
	uint32_t workers = c->workers > 0 ? c->workers : 1;

	s->batches = s->r->batches;
	s->n = s->r->n;
	if (c->batch != 1) {
		s->n = (size_t)fmax(1, ceil((double)s->r->n / c->batch));
		s->batches = s->regrouped = calloc(s->n, sizeof(*s->regrouped));
	}
	s->workers = calloc(workers, sizeof(*s->workers));
	s->made = malloc((s->n + 1) * sizeof(*s->made));
	s->load = malloc(2 * ((size_t)workers + 1) * sizeof(*s->load));
	if (s->batches == NULL || s->workers == NULL || s->made == NULL || s->load == NULL)
		return -ENOMEM;
	if (s->regrouped != NULL)
		regroup(s);
	s->pass = pass_of(s->r, c);
	s->now = s->pass.create;
	for (size_t i = 0; i <= s->n; i++)
		s->made[i] = INFINITY;
	for (uint32_t i = 0; i < workers; i++)
		s->workers[i] = (struct worker){
		    .batch = i,
		    .start = s->pass.create + (c->same ? hr__loop_start(s->r, i) : s->pass.start)};
	s->locked = s->load + workers + 1;
	for (uint32_t i = 0; i <= workers; i++) {
		/* If workers use a lock one after the other, each waits for all others. */
		s->locked[i] = i == 0 ? 0 : (i - 1) / fmax(0.5, s->r->busy - 1);
		s->load[i] = c->same || i == 0 ? 1 : pow(i / s->r->busy, c->load);
	}
	return 0;
}

static void run_done(struct loop_run *s)
{
	free(s->regrouped);
	free(s->workers);
	free(s->made);
	free(s->load);
}

int hr__loop_run(const struct hr_recorded_loop *r, const struct hr_changed_loop *c,
		 struct hr_loop_result *ret)
{
	struct loop_run s = {.r = r, .c = c};
	int error = run_init(&s);

	*ret = (struct hr_loop_result){.busy = 1, .slow = 1};
	if (error == 0) {
		if (c->workers > 0)
			run_workers(&s);
		else
			run_alone(&s);
		ret->ns = s.now + s.pass.end;
		ret->busy = s.busy > 0 ? s.squares / s.busy : 1;
		ret->slow = s.cpu > 0 ? s.slowed / s.cpu : 1;
	}
	run_done(&s);
	return error;
}
