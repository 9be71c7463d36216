/* SPDX-License-Identifier: Apache-2.0 */
/* Replays one loop over a DataLoader with other settings. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/diagnosis/replay_loop.h"

/* Assumed times to create, start and end a worker, if the recorded loop had no workers. */
#define CREATE_NS 15e6
#define START_NS  20e6
#define END_NS	  40e6
/* If a smaller part of a batch is left, it is a rounding error, and the batch is finished. */
#define DONE 1e-9

/*
 * Two hardware threads of a core, or two virtual CPUs on it, together have about 1.3 times the
 * speed of one (measured: work takes 1.5 times as long).
 */
#define SHARED_SLOWDOWN 0.5

#define ALMOST 0.05 /* fewer threads more than there are cores are ignored */

/* Times of a pass, in ns: to create the workers, until they begin batches, and to end them. */
struct pass {
	double create, start, end;
};

struct worker {
	bool busy;
	size_t batch;		    /* the batch that the worker makes, or will make next */
	double io, cpu, lock, rest; /* parts of the time to make this batch, in ns */
	double left;		    /* the part of this batch that is not made yet, 0 to 1 */
	double start;		    /* when the worker can begin its first batch */
};

struct loop_run {
	const struct hr_recorded_loop *r;
	const struct hr_changed_loop *c;
	struct hr_recorded_batch *regrouped; /* NULL: the batch size is as recorded */
	const struct hr_recorded_batch *batches;
	size_t n;
	struct worker *workers; /* c->workers elements, at least 1 */
	double *made;		/* when each batch was sent by its worker; INFINITY: not yet */
	/* For each number of busy workers: factors of their I/O and waits for locks. */
	double *load, *locked;
	struct pass pass;
	double now;
	size_t received;
	/* The training thread waits for its next batch, receives it, or works on it. */
	enum { WAITS, TAKES, WORKS } phase;
	double left; /* TAKES: remaining ns; WORKS: the remaining part, 0 to 1 */
	double slow; /* how many times as long CPU work takes now as on idle cores */
	/*
	 * `busy`, `squares`: integrals over time of the number of busy workers, and of its square.
	 * `cpu`: time that the CPU work so far would take on idle cores; `slowed`: time that it
	 * took.
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

/* Makes batches that are c->batch times as large from recorded batches and parts of them. */
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

/* Returns the time between receiving a batch and waiting for the next one; at least 1 ns. */
static double work_of(const struct loop_run *s)
{
	const struct hr_changed_loop *c = s->c;
	double gap = fmax(1, s->batches[s->received - 1].gap), share = c->main_share;
	double before = fmin(s->r->slow, 1 / fmax(1e-9, share)), times;

	times = c->same ? 1 : c->gap * (1 + share * (s->slow - before));
	/* No setting changes the waits for other ranks. */
	return gap * (1 + (times - 1) * (1 - s->r->stalled));
}

/* Returns a worker's time for its batch if CPU work takes `slow` times as long; at least 1 ns. */
static double batch_ns(const struct loop_run *s, const struct worker *w, size_t busy, double slow)
{
	return fmax(1, w->io * s->load[busy] + w->lock * s->locked[busy] + w->cpu * slow + w->rest);
}

/* Computes s->slow from the number of threads that want to compute, and the number of cores. */
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
	/* All threads are as slow as those on the core with most threads. */
	if (c->barriers && s->phase == WORKS && s->r->others >= HR_PARALLEL_CORES)
		s->slow = ceil(s->slow - ALMOST);
	s->slow *= c->outside;
	if (c->shared && c->cores > 0)
		s->slow *=
		    1 + SHARED_SLOWDOWN * fmin(1, fmax(0, fmin(wanted, c->cores) - s->r->wanted) /
						      (c->cores / 2));
}

/* Returns how many batches the training thread has requested from workers so far. */
static size_t requested(const struct loop_run *s)
{
	return s->received + (size_t)s->c->workers * s->c->prefetch;
}

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

/* Idle workers begin batches that were requested. Returns the number of busy workers. */
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

/* Returns the time until a worker or the training thread finishes its current work, in ns. */
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

/* Returns how long the worker takes to send its batch, in ns. */
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

/* Replays a loop without workers, in which the training thread makes the batches. */
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
		/* Workers use a lock one after the other, so each waits for all others. */
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
