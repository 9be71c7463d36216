/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/stalls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/tables/each.h"
#include "query/diagnosis/parts_internal.h"

/*
 * The cycles of ranks end together if the differences of their durations are less than this share
 * of the differences of the ranks' own times.
 */
#define TOGETHER 0.5

struct hr_cycle *hr_cycle_of(const struct hr_cycles *c, uint64_t step)
{
	size_t at = hr_array_search(i, c->n, c->list[i].step < step);

	return at < c->n && c->list[at].step == step ? &c->list[at] : NULL;
}

static bool is_sync(unsigned part)
{
	return part == HR_PART_BACKWARD || part == HR_PART_COLLECTIVE;
}

/*
 * Whether a part is a delay (stalls.h): every part outside steps, and all but computing in steps.
 */
static bool is_delay(const struct hr_block *b, unsigned part)
{
	return b->step == HR_REGION_UNKNOWN ||
	       (part != HR_PART_COMPUTE && part != HR_PART_OPTIMIZER && !is_sync(part));
}

/* ---- cycles of one life ---- */

static void add_block(const struct hr_diagnosis *d, const struct hr_block *b, struct hr_cycle *to)
{
	double parts[HR_PART_END], ns = (double)(b->to - b->from);

	to->ns += ns;
	if (hr__is_whole(b->kind)) {
		unsigned part = hr__whole_part(b->kind);

		to->delay += is_delay(b, part) ? ns : 0;
		to->sync += is_sync(part) && b->step != HR_REGION_UNKNOWN ? ns : 0;
		return;
	}
	memset(parts, 0, sizeof(parts));
	hr__block_parts(d, b, INT64_MIN, parts);
	for (unsigned part = 0; part < HR_PART_END; part++) {
		to->delay += is_delay(b, part) ? parts[part] : 0;
		to->sync += is_sync(part) && b->step != HR_REGION_UNKNOWN ? parts[part] : 0;
	}
}

/*
 * Returns when the ranks meet in the step with the blocks [i, end): at the end of the last
 * backward() or collective. Without these, they meet at the end of the last optimizer step, or of
 * the step.
 */
static int64_t meeting(const struct hr_train_life *life, size_t i, size_t end)
{
	int64_t sync = 0, optimizer = 0;

	for (; i < end; i++) {
		const struct hr_block *b = &life->blocks[i];
		unsigned part = hr__is_whole(b->kind) ? hr__whole_part(b->kind) : HR_PART_END;

		sync = is_sync(part) ? b->to : sync;
		optimizer = part == HR_PART_OPTIMIZER ? b->to : optimizer;
	}
	return sync != 0 ? sync : optimizer != 0 ? optimizer : life->blocks[end - 1].to;
}

/* Makes the cycles of a training process, with their begin and end. -ENOMEM. */
static int find_cycles(const struct hr_train_life *life, struct hr_cycles *c)
{
	for (size_t i = 0, end; i < life->n; i = end) {
		uint64_t step = life->blocks[i].step;
		struct hr_cycle *before = c->n > 0 ? &c->list[c->n - 1] : NULL;
		int64_t from = before != NULL ? before->to : life->blocks[i].from;

		for (end = i + 1; end < life->n && life->blocks[end].step == step;)
			end++;
		if (step == HR_REGION_UNKNOWN)
			continue;
		if (before != NULL && step < before->step) {
			c->n = 0;
			return 0;
		}
		/* the blocks of this step are not contiguous */
		if (before != NULL && step == before->step) {
			before->to = meeting(life, i, end);
			continue;
		}
		if (!hr_array_reserve(c->list, c->n, c->room))
			return -ENOMEM;
		/* The time before the first step belongs to no cycle. */
		c->list[c->n++] =
		    (struct hr_cycle){.step = step, .from = from, .to = meeting(life, i, end)};
	}
	return 0;
}

/* Returns the cycle at a time, or NULL. The search begins at cycle *c. */
static struct hr_cycle *cycle_at(const struct hr_cycles *all, size_t *c, int64_t time)
{
	while (*c < all->n && time >= all->list[*c].to)
		++*c;
	return *c < all->n && time >= all->list[*c].from ? &all->list[*c] : NULL;
}

static int make_cycles(void *data, size_t number)
{
	const struct hr_diagnosis *d = data;
	const struct hr_train_life *life = &d->lives.list[number];
	struct hr_cycles *c = &d->cycles[number];
	size_t at = 0;
	int r = find_cycles(life, c);

	for (size_t i = 0; r == 0 && i < life->n; i++) {
		struct hr_cycle *cycle = cycle_at(c, &at, life->blocks[i].from);

		if (cycle != NULL)
			add_block(d, &life->blocks[i], cycle);
	}
	at = 0;
	for (size_t i = 0; r == 0 && i < life->n_backward; i++) {
		struct hr_cycle *cycle = cycle_at(c, &at, life->backward[i].from);

		if (cycle != NULL)
			cycle->sync = fmax(0, cycle->sync - (double)life->backward[i].cpu_ns);
	}
	return r;
}

/* ---- the ranks of a job ---- */

struct ranks {
	struct hr_cycles **list;
	size_t n;
	bool sync; /* the time in backward() and collectives is known */
	/* Sums over steps of the longest minus the shortest cycle or own time. */
	double spread, owns;
};

/* Returns a rank's own time: the part of its cycle in which it does not wait for other ranks. */
static double own_time(const struct ranks *r, const struct hr_cycle *c)
{
	return r->sync ? c->ns - c->sync : c->delay;
}

/*
 * Sets `at` to all ranks' cycles for the step of the first rank's cycle `n`. False: one has none.
 */
static bool find_step(const struct ranks *r, size_t n, struct hr_cycle **at)
{
	uint64_t step = r->list[0]->list[n].step;

	for (size_t i = 0; i < r->n; i++) {
		const struct hr_cycles *c = r->list[i];

		at[i] = n < c->n && c->list[n].step == step ? &c->list[n] : hr_cycle_of(c, step);
		if (at[i] == NULL)
			return false;
	}
	return true;
}

static void compare(struct ranks *r, struct hr_cycle *const *at)
{
	double shortest = at[0]->ns, longest = at[0]->ns;
	double least = own_time(r, at[0]), most = least;

	for (size_t i = 1; i < r->n; i++) {
		double own = own_time(r, at[i]);

		shortest = at[i]->ns < shortest ? at[i]->ns : shortest;
		longest = at[i]->ns > longest ? at[i]->ns : longest;
		least = own < least ? own : least;
		most = own > most ? own : most;
	}
	r->spread += longest - shortest;
	r->owns += most - least;
}

/*
 * Computes the stalls of one step. Each rank waits for the rank with the longest own time. The wait
 * counts as caused by this rank's longer delay; the rest, by its longer computing.
 */
static void stall(const struct ranks *r, struct hr_cycle *const *at)
{
	struct hr_cycle *last = at[0];

	for (size_t i = 1; i < r->n; i++)
		last = own_time(r, at[i]) > own_time(r, last) ? at[i] : last;
	for (size_t i = 0; i < r->n; i++) {
		double most = r->sync ? at[i]->sync : at[i]->ns - at[i]->delay;
		double later = own_time(r, last) - own_time(r, at[i]);
		double delayed = last->delay - at[i]->delay;

		at[i]->stall = later < most ? later : most;
		if (delayed < 0)
			delayed = 0;
		if (delayed > at[i]->stall)
			delayed = at[i]->stall;
		last->caused += delayed;
		last->slowed += at[i]->stall - delayed;
	}
}

static bool know_sync(const struct ranks *r)
{
	for (size_t i = 0; i < r->n; i++) {
		double sync = 0;

		for (size_t k = 0; k < r->list[i]->n; k++)
			sync += r->list[i]->list[k].sync;
		if (sync <= 0)
			return false;
	}
	return true;
}

static int find_stalls(struct ranks *r)
{
	struct hr_cycle **at = malloc(r->n * sizeof(struct hr_cycle *));

	if (at == NULL)
		return -ENOMEM;
	r->sync = know_sync(r);
	r->spread = r->owns = 0;
	for (size_t i = 0; i < r->list[0]->n; i++)
		if (find_step(r, i, at))
			compare(r, at);
	for (size_t i = 0; r->spread < TOGETHER * r->owns && i < r->list[0]->n; i++)
		if (find_step(r, i, at))
			stall(r, at);
	free(at);
	return 0;
}

/* Lists the ranks of a job with cycles, among the training processes [first, end). */
static void find_ranks(struct hr_diagnosis *d, size_t first, size_t end, struct ranks *r)
{
	r->n = 0;
	for (size_t i = first; i < end; i++)
		if (d->lives.list[i].rank >= 0 && d->cycles[i].n > 0)
			r->list[r->n++] = &d->cycles[i];
}

/* ---- what caused stalls ---- */

static void add_caused(const struct hr_diagnosis *d, const struct hr_block *b,
		       const struct hr_cycle *c, struct hr_part_sums *to)
{
	double parts[HR_PART_END] = {0}, computed;

	if (c == NULL || c->caused + c->slowed <= 0)
		return;
	computed = c->ns - c->delay;
	hr__block_parts(d, b, INT64_MIN, parts);
	for (unsigned part = 0; part < HR_PART_END; part++) {
		double share = is_delay(b, part) ? (c->delay > 0 ? c->caused / c->delay : 0)
						 : (computed > 0 ? c->slowed / computed : 0);

		to->ns[b->phase][is_delay(b, part) ? part : HR_PART_COMPUTE] +=
		    (uint64_t)(parts[part] * share + 0.5);
	}
}

static int sum_cycles(void *data, size_t i)
{
	const struct hr_diagnosis *d = data;
	const struct hr_train_life *life = &d->lives.list[i];
	struct hr_cycles *cycles = &d->cycles[i];
	size_t at = 0;

	for (size_t k = 0; k < cycles->n; k++) {
		cycles->stall += cycles->list[k].stall;
		cycles->slowed += cycles->list[k].slowed;
	}
	for (size_t k = 0; k < life->n; k++)
		add_caused(d, &life->blocks[k], cycle_at(cycles, &at, life->blocks[k].from),
			   &d->caused[i]);
	return 0;
}

int hr__stalls_make(struct hr_diagnosis *d)
{
	struct ranks ranks = {.list = malloc((d->lives.n + 1) * sizeof(*ranks.list))};
	int r = 0;

	d->cycles = calloc(d->lives.n + 1, sizeof(*d->cycles));
	d->caused = calloc(d->lives.n + 1, sizeof(*d->caused));
	if (ranks.list == NULL || d->cycles == NULL || d->caused == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = hr_each(d->q->threads, d->lives.n, make_cycles, d);
	for (size_t i = 0, end; r == 0 && i < d->lives.n; i = end) {
		end = d->first[hr__job_streams(d, d->lives.list[i].stream).end].life;
		find_ranks(d, i, end, &ranks);
		if (ranks.n > 1)
			r = find_stalls(&ranks);
	}
	if (r == 0)
		r = hr_each(d->q->threads, d->lives.n, sum_cycles, d);
	free(ranks.list);
	return r;
}

void hr__stalls_done(struct hr_diagnosis *d)
{
	for (size_t i = 0; d->cycles != NULL && i < d->lives.n; i++)
		free(d->cycles[i].list);
	free(d->cycles);
	free(d->caused);
}
