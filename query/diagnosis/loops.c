/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/order.h"

/* Returns the number of loops that began at or before `time`. */
static size_t loops_until(const struct hr_train_life *life, int64_t time)
{
	return hr_array_search(i, life->n_loops, life->loops[i].from <= time);
}

struct hr_loop *hr__loop_at(const struct hr_life_reader *r, uint64_t loader, int64_t time)
{
	size_t i = loops_until(r->life, time);

	while (i > 0 && r->life->loops[i - 1].loader != loader)
		i--;
	return i > 0 ? &r->life->loops[i - 1] : NULL;
}

/* Adds a wait to the latest loop over its loader. A wait for batch 0 begins a new loop. */
static int add_to_loop(struct hr_life_reader *r, const struct hr_mark *m,
		       const struct hr_mark *create)
{
	struct hr_train_life *life = r->life;
	struct hr_loop *l = hr__loop_at(r, m->loader, m->from);

	if (l == NULL || m->batch == 0) {
		if (!hr_array_reserve(life->loops, life->n_loops, life->loops_room))
			return -ENOMEM;
		l = &life->loops[life->n_loops++];
		*l = (struct hr_loop){
		    .from = create != NULL ? create->from : m->from,
		    .created = create != NULL ? create->to : m->from,
		    .loader = m->loader,
		    .workers = m->workers < UINT32_MAX ? (uint32_t)m->workers : 0,
		    .prefetch = m->prefetch < UINT32_MAX ? (uint32_t)m->prefetch : 0,
		    .batch_size = m->batch_size < UINT32_MAX ? (uint32_t)m->batch_size : 0,
		    .other_kind = m->other_kind,
		    .own = m->own,
		    .made = create != NULL ? create->made : NULL,
		    .persistent = m->persistent,
		    .iterable = m->iterable,
		};
	}
	if (!hr_array_reserve(l->waits, l->n, l->room))
		return -ENOMEM;
	l->waits[l->n++] = (struct hr_wait){.from = m->from,
					    .to = m->to,
					    .cost_from = m->hidden_to,
					    .fetch = HR_NO_FETCH,
					    .batch = m->end ? UINT64_MAX : m->batch};
	l->to = m->to;
	l->hidden_ns += (uint64_t)(m->hidden_to - m->from);
	if (m->used.cpu_ns != HR_UNKNOWN && !m->end) {
		l->wait_cpu_ns += m->used.cpu_ns;
		l->cpu_waits++;
	}
	if (l->n > 1) { /* the time before the first wait is not part of the loop */
		l->between_ns += m->before_ns;
		l->between_cpu_ns += m->before_cpu_ns;
		l->others_cpu_ns += m->others_cpu_ns;
		l->core_ns += m->before_core_ns;
	}
	return 0;
}

bool hr__loop_is_first(const struct hr_train_life *life, const struct hr_loop *loop)
{
	for (const struct hr_loop *l = life->loops; l < loop; l++)
		if (l->loader == loop->loader)
			return false;
	return true;
}

struct hr_main_use hr_life_main_use(const struct hr_train_life *life)
{
	double all = 0, cpu = 0, others = 0, core = 0;

	for (size_t i = 0; i < life->n_loops; i++) {
		const struct hr_loop *l = &life->loops[i];

		if (!l->trains)
			continue;
		all += (double)l->between_ns;
		cpu += (double)l->between_cpu_ns;
		others += (double)l->others_cpu_ns;
		core += (double)l->core_ns;
	}
	if (all <= 0)
		return (struct hr_main_use){.share = NAN};
	cpu = fmin(1, cpu / all);
	return (struct hr_main_use){cpu, others / all, fmin(1 - cpu, core / all)};
}

static bool has_step(const struct hr_life_reader *r, const struct hr_loop *l)
{
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i]->from >= l->from && r->steps[i]->from < l->to)
			return true;
	return false;
}

static void set_training(struct hr_train_life *life, uint64_t loader)
{
	for (size_t k = 0; k < life->n_loops; k++)
		if (life->loops[k].loader == loader)
			life->loops[k].trains = true;
}

/* If no optimizer is known: the loops over a loader train if steps begin in one of them. */
static void find_training_by_steps(struct hr_life_reader *r)
{
	struct hr_train_life *life = r->life;
	bool any = false;

	for (size_t k = 0; k < life->n_loops; k++) {
		if (life->loops[k].trains || !has_step(r, &life->loops[k]))
			continue;
		set_training(life, life->loops[k].loader);
		any = true;
	}
	/* Without steps (inference), all loops count as training. */
	for (size_t k = 0; !any && k < life->n_loops; k++)
		life->loops[k].trains = true;
}

/* Sets `trains` of all loops over a loader if a wait for it precedes an optimizer's step. */
static void find_training(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	struct hr_train_life *life = r->life;
	const struct hr_mark *wait = NULL;
	uint64_t marked = 0; /* the loader whose loops were set last */
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (marks[i].tid != life->tid || marks[i].added || marks[i].outer)
			continue;
		if (marks[i].kind == HR_REGION_INPUT_WAIT)
			wait = &marks[i];
		if (marks[i].kind != HR_REGION_OPTIMIZER || wait == NULL)
			continue;
		if (!any || wait->loader != marked)
			set_training(life, wait->loader);
		any = true;
		marked = wait->loader;
		wait = NULL;
	}
	if (!any)
		find_training_by_steps(r);
}

/* If the program leaves a loop early, the loop's last step ends after its last wait. */
static void extend_loops(struct hr_life_reader *r)
{
	for (size_t i = 0, k = 0; i < r->life->n_loops; i++) {
		struct hr_loop *l = &r->life->loops[i];

		while (k < r->n_steps && r->steps[k]->to <= l->to)
			k++;
		if (l->trains && k < r->n_steps && r->steps[k]->from < l->to)
			l->to = r->steps[k]->to;
	}
}

static struct hr_life_place start_of(const struct hr_life_reader *r)
{
	struct hr_life_place at = {.first_loop = INT64_MAX, .last_loop = INT64_MIN};

	for (size_t i = 0; i < r->life->n_loops; i++) {
		const struct hr_loop *l = &r->life->loops[i];

		at.first_loop = l->from < at.first_loop ? l->from : at.first_loop;
		at.last_loop = l->to > at.last_loop ? l->to : at.last_loop;
	}
	if (r->n_steps > 0) {
		const struct hr_mark *first = r->steps[0], *last = r->steps[r->n_steps - 1];

		at.first_loop = first->from < at.first_loop ? first->from : at.first_loop;
		at.last_loop = last->to > at.last_loop ? last->to : at.last_loop;
	}
	return at;
}

static int find_edges(struct hr_life_reader *r)
{
	const struct hr_train_life *life = r->life;
	size_t n = 2 * (r->n_steps + r->n_epochs + life->n_loops);

	r->n_edges = 0;
	if (!hr_array_fit(r->edges, n + 1, r->edges_room) || r->edges == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_steps; i++) {
		r->edges[r->n_edges++] = r->steps[i]->from;
		r->edges[r->n_edges++] = r->steps[i]->to;
	}
	for (size_t i = 0; i < r->n_epochs; i++) {
		r->edges[r->n_edges++] = r->epochs[i]->from;
		r->edges[r->n_edges++] = r->epochs[i]->to;
	}
	for (size_t i = 0; i < life->n_loops; i++) {
		r->edges[r->n_edges++] = life->loops[i].from;
		r->edges[r->n_edges++] = life->loops[i].to;
	}
	hr_int64s_sort(r->edges, n);
	return 0;
}

static int add_mark(const struct hr_mark ***list, size_t *n, size_t *room, const struct hr_mark *m)
{
	if (!hr_array_reserve(*list, *n, *room))
		return -ENOMEM;
	(*list)[(*n)++] = m;
	return 0;
}

static void extend_loop(struct hr_loop *l, int64_t to)
{
	l->to = to > l->to ? to : l->to;
}

int hr__loops_find(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	const struct hr_mark *create = NULL;
	int error = 0;

	r->n_steps = r->n_epochs = 0;
	for (size_t i = 0; error == 0 && i < n; i++) {
		const struct hr_mark *m = &marks[i];

		if (m->tid != r->life->tid || m->added || m->outer)
			continue;
		if (m->kind == HR_MARK_CREATES) {
			create = m;
		} else if (m->kind == HR_REGION_INPUT_WAIT && !m->open) {
			error = add_to_loop(r, m, create);
			create = NULL;
		} else if (m->kind == HR_REGION_INPUT_WAIT && r->life->n_loops > 0) {
			/* The program ended in this wait, and so in its latest loop. */
			extend_loop(&r->life->loops[r->life->n_loops - 1], m->to);
		} else if (m->kind == HR_REGION_STEP) {
			error = add_mark(&r->steps, &r->n_steps, &r->steps_room, m);
		} else if (m->kind == HR_REGION_EPOCH) {
			error = add_mark(&r->epochs, &r->n_epochs, &r->epochs_room, m);
		}
	}
	if (error < 0)
		return error;
	for (size_t i = 0; i < r->n_steps; i++)
		r->life->steps_ns += (uint64_t)(r->steps[i]->to - r->steps[i]->from);
	r->life->n_steps = r->n_steps;
	find_training(r, marks, n);
	extend_loops(r);
	r->at = start_of(r);
	return find_edges(r);
}

uint32_t hr__loop_around(const struct hr_life_reader *r, int64_t time)
{
	size_t i = loops_until(r->life, time);

	while (i > 0 && r->life->loops[i - 1].to <= time)
		i--;
	return i > 0 ? (uint32_t)(i - 1) : HR_NO_LOOP;
}

enum hr_phase hr__phase_at(const struct hr_life_reader *r, int64_t time, uint32_t loop)
{
	const struct hr_life_place *at = &r->at;

	if (time < at->first_loop)
		return HR_PHASE_START;
	if (time >= at->last_loop)
		return HR_PHASE_END;
	if (loop != HR_NO_LOOP)
		return r->life->loops[loop].trains ? HR_PHASE_TRAIN : HR_PHASE_VALIDATION;
	if (at->step < r->n_steps && r->steps[at->step]->from <= time)
		return HR_PHASE_TRAIN;
	return HR_PHASE_BETWEEN;
}
