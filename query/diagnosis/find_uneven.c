/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about one slow worker, and about single slow batches. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/order.h"
#include "query/diagnosis/findings_internal.h"

/*
 * The median batch of a slow worker takes this many times as long as that of other workers. Chosen,
 * not measured: it assumes that workers with equal work differ by less. BATCHES_MIN: for a median.
 */
#define SLOW_FACTOR 2.5
#define BATCHES_MIN 3u
/* A slow worker causes at least this share of the waits. */
#define MOST 0.6
/* What a worker does for more than this share of its batches is what it mostly does. */
#define MOSTLY	     0.5
#define PREFETCH_MAX 32u
/* Workers that make batches for more than this share of the time need no larger prefetch_factor. */
#define BUSY 0.75
/* If a larger share of the waits lacks a core, workers that begin earlier have none, either. */
#define NO_CORE 0.3
#define REMOVES 0.5 /* advised only if it removes at least this share of the waits */
/* The slowest batches are this part of all. */
#define SLOWEST_PART 20

static void add_spent(struct hr_spent *to, const struct hr_spent *s)
{
	to->ns += s->ns;
	to->io += s->io;
	to->cpu += s->cpu + s->core;
	to->fault += s->fault;
	to->sleep += s->sleep;
	to->network += s->network;
	to->lock += s->lock;
}

struct mostly {
	const char *does, *remedy;
};

static struct mostly mostly(const struct hr_spent *s)
{
	const struct {
		double ns;
		struct mostly mostly;
	} all[] = {
	    {s->io, {"uses files", "copy its files to faster storage"}},
	    {s->cpu, {"computes", "make its transforms cheaper"}},
	    {s->fault, {"waits for pages of mapped files", "read them at once instead"}},
	    {s->sleep, {"sleeps", "remove the sleep (time.sleep, a retry, a rate limit)"}},
	    {s->network, {"waits for the network", "send its requests ahead"}},
	    {s->lock, {"waits for a lock", "hold the lock for a shorter time"}},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].ns > MOSTLY * s->ns)
			return all[i].mostly;
	return (struct mostly){"neither computes nor uses files", "remove this wait"};
}

/* ---- one worker ---- */

/* A batch of a training loop, which a worker made. */
struct made {
	uint32_t worker;    /* the number that torch gave the worker */
	double fetch, wait; /* seconds */
	const struct hr_spent *spent;
};

struct made_list {
	struct made *list;
	size_t n, room;
};

static int by_worker(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->fetch > y->fetch) - (x->fetch < y->fetch);
}

/* -ENOMEM. */
static int add_made(const struct hr_diagnosis *d, const struct hr_wait *wait, struct made_list *to)
{
	const struct hr_fetch *f =
	    wait->fetch != HR_NO_FETCH ? &d->lives.fetches[wait->fetch] : NULL;
	const struct hr_worker *w =
	    f != NULL && f->worker != HR_NO_FETCH ? &d->lives.workers[f->worker] : NULL;

	if (w == NULL || w->number < 0)
		return 0;
	if (!hr_array_reserve(to->list, to->n, to->room))
		return -ENOMEM;
	to->list[to->n++] = (struct made){.worker = (uint32_t)w->number,
					  .fetch = d->spent[wait->fetch].ns / 1e9,
					  .wait = (double)(wait->to - wait->cost_from) / 1e9,
					  .spent = &d->spent[wait->fetch]};
	return 0;
}

/* Lists the batches of the training loops of a training process. -ENOMEM. */
static int read_made(const struct hr_diagnosis *d, const struct hr_train_life *life,
		     struct made_list *to)
{
	int r = 0;

	to->n = 0;
	for (size_t k = 0; k < life->n_loops; k++)
		for (size_t i = 0; r == 0 && life->loops[k].trains && i < life->loops[k].n; i++)
			r = add_made(d, &life->loops[k].waits[i], to);
	if (to->n > 0)
		qsort(to->list, to->n, sizeof(*to->list), by_worker);
	return r;
}

/* The worker whose median batch takes longest. */
struct slow_worker {
	uint32_t number;
	/* Median duration of the worker's batches, and the longest median of another worker. */
	double median, others;
	double share; /* the waits for batches of this worker as a share of all waits */
	struct mostly mostly;
};

/* Compares the worker that made the batches in `list` with the slowest worker so far. */
static void add_worker(const struct made *list, size_t n, double waits, struct slow_worker *slowest)
{
	double median = n >= BATCHES_MIN ? list[n / 2].fetch : 0, wait = 0;
	struct hr_spent spent = {0};

	for (size_t i = 0; i < n; i++) {
		wait += list[i].wait;
		add_spent(&spent, list[i].spent);
	}
	slowest->others = fmax(slowest->others, fmin(median, slowest->median));
	if (median <= slowest->median)
		return;
	slowest->number = list[0].worker;
	slowest->median = median;
	slowest->share = waits > 0 ? wait / waits : 0;
	slowest->mostly = mostly(&spent);
}

/* Returns false if no worker is much slower than all others. */
static bool find_slowest(const struct made_list *m, struct slow_worker *ret)
{
	double waits = 0;

	*ret = (struct slow_worker){0};
	for (size_t i = 0; i < m->n; i++)
		waits += m->list[i].wait;
	for (size_t i = 0, n; i < m->n; i += n) {
		n = 1;
		while (i + n < m->n && m->list[i + n].worker == m->list[i].worker)
			n++;
		add_worker(&m->list[i], n, waits, ret);
	}
	return ret->share >= MOST && ret->others > 0 && ret->median >= SLOW_FACTOR * ret->others;
}

static void add_slow_worker(struct hr_training_job *j, struct hr_job_waits *w,
			    const struct hr_train_life *life, const struct slow_worker *slow)
{
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_SLOW_WORKER, slow->share * hr_job_waits_making(w));

	if (f == NULL)
		return;
	f->worker = slow->number;
	f->rank = j->lives > 1 ? life->rank : -1;
	f->evidence = hr__finding_text(j,
				       "the median batch of this worker takes %s, that of the "
				       "slowest other worker %s; for most of it, this worker %s",
				       hr__seconds(slow->median).s, hr__seconds(slow->others).s,
				       slow->mostly.does);
	f->action = hr__finding_text(j,
				     "find out why only worker %u %s (get_worker_info().id == %u, "
				     "its shard of the data), and %s; %s",
				     slow->number, slow->mostly.does, slow->number,
				     slow->mostly.remedy, HR_FIND_STACK);
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE | 1 << HR_USUAL_CORES,
		  "faster storage or more cores: the other workers do the same work quickly");
	*w = (struct hr_job_waits){.all = w->all};
}

static void find_worker(struct hr_training_job *j, struct hr_job_waits *w)
{
	const struct hr_diagnosis *d = j->d;
	struct made_list made = {0};
	struct slow_worker slow;

	for (size_t i = j->first; i < j->end && j->error == 0; i++) {
		const struct hr_train_life *life = &d->lives.list[i];

		if (!hr__job_has(j, i))
			continue;
		j->error = read_made(d, life, &made);
		if (j->error == 0 && find_slowest(&made, &slow)) {
			add_slow_worker(j, w, life, &slow);
			break;
		}
	}
	free(made.list);
}

/* ---- single batches ---- */

/* Returns what workers mostly do in batches that take at least `ns`. */
static struct mostly mostly_longer(const struct hr_training_job *j, double ns)
{
	struct hr_spent spent = {0};

	for (size_t i = j->first_fetch; i < j->end_fetch; i++)
		if (hr__job_made(j, &j->d->lives.fetches[i]) && j->d->spent[i].ns >= ns)
			add_spent(&spent, &j->d->spent[i]);
	return mostly(&spent);
}

/* Returns a text with the median duration of batches, and that of the slowest twentieth. */
static const char *spread(struct hr_training_job *j, struct mostly *ret_slowest)
{
	const struct hr_diagnosis *d = j->d;
	double *ns = malloc((j->end_fetch - j->first_fetch + 1) * sizeof(*ns));
	const char *text;
	size_t n = 0;

	if (ns == NULL) {
		j->error = -ENOMEM;
		return NULL;
	}
	for (size_t i = j->first_fetch; i < j->end_fetch; i++) {
		if (hr__job_made(j, &d->lives.fetches[i]))
			ns[n++] = d->spent[i].ns;
	}
	hr_doubles_sort(ns, n);
	*ret_slowest = mostly_longer(j, n > 0 ? ns[n - 1 - n / SLOWEST_PART] : 0);
	text = n == 0 ? NULL
		      : hr__finding_text(
			    j,
			    "the median batch takes %s, but the slowest twentieth of all batches "
			    "takes %s or more each; for these, the worker mostly %s",
			    hr__seconds(ns[n / 2] / 1e9).s,
			    hr__seconds(ns[n - 1 - n / SLOWEST_PART] / 1e9).s, ret_slowest->does);
	free(ns);
	return text;
}

/* Returns the mean share of the time in training loops in which a worker makes batches. */
static double busy(const struct hr_training_job *j)
{
	const struct hr_diagnosis *d = j->d;
	double ns = 0;

	for (size_t i = j->first_fetch; i < j->end_fetch; i++) {
		if (hr__job_made(j, &d->lives.fetches[i]))
			ns += d->spent[i].ns;
	}
	return ns / 1e9 / (j->loop * (double)j->lives * j->workers);
}

/*
 * Finds batches that are late although the workers are mostly idle. If a larger prefetch_factor
 * lets workers begin earlier, the loop waits less for these batches.
 */
static void find_batches(struct hr_training_job *j, struct hr_job_waits *w)
{
	double before = hr__loop_part(j, HR_PART_WAIT_PREFETCH),
	       lost = hr_job_waits_making(w) + before;
	uint32_t prefetch = j->prefetch > 0 ? j->prefetch : 2, best = 0;
	struct hr_finding *f;
	double gain = 0;

	if (j->workers == 0 || lost < hr__worth(j) || busy(j) > BUSY ||
	    w->core > NO_CORE * hr_job_waits_making(w))
		return;
	for (uint32_t p = 2 * prefetch; p <= PREFETCH_MAX && j->error == 0; p *= 2) {
		struct hr_setting setting = HR_SETTING_SAME;
		struct hr_replayed r;

		setting.prefetch = p;
		if (hr__job_replay(j, &setting, false, &r) < 0)
			j->error = -ENOMEM;
		if (j->error < 0 || r.refusal != HR_REPLAY_OK)
			return;
		if (r.recorded - r.predicted > gain + HR_BETTER * r.recorded) {
			gain = r.recorded - r.predicted;
			best = p;
		}
	}
	if (best == 0 || gain < REMOVES * lost)
		return;
	f = hr__finding_add(j, HR_FOUND_PREFETCH, lost);
	if (f != NULL) {
		struct hr_setting setting = HR_SETTING_SAME;
		struct mostly slowest = {"", ""};

		setting.prefetch = best;
		f->evidence = spread(j, &slowest);
		f->action = hr__finding_text(j, "%s, or make the slowest batches faster: %s",
					     hr__set_loader(j, "prefetch_factor", best, prefetch),
					     slowest.remedy);
		(void)hr__predict(j, f, &setting);
		hr__avoid(j, f, 1 << HR_USUAL_CORES,
			  "more cores: for most of the time, the workers have no batch to make");
		*w = (struct hr_job_waits){.all = w->all};
	}
}

void hr__find_uneven(struct hr_training_job *j, struct hr_job_waits *w)
{
	if (hr_job_waits_making(w) < hr__worth(j))
		return;
	find_worker(j, w);
	find_batches(j, w);
}
