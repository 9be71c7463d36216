/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a life: passes over loaders, and steps. */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

static struct hr_pass *latest_pass(struct hr_life_reader *r, uint64_t loader)
{
	for (size_t i = r->n_passes; i-- > 0;)
		if (r->passes[i].loader == loader)
			return &r->passes[i];
	return NULL;
}

const struct hr_pass *hr__pass_at(const struct hr_life_reader *r, uint64_t loader, int64_t time)
{
	const struct hr_pass *latest = NULL;

	for (size_t i = 0; i < r->n_passes && r->passes[i].from <= time; i++)
		if (r->passes[i].loader == loader)
			latest = &r->passes[i];
	return latest;
}

/* A wait for batch 0, or for the first batch of a loader, begins a pass. */
static int add_to_pass(struct hr_life_reader *r, const struct hr_mark *m, int64_t created)
{
	struct hr_pass *p = latest_pass(r, m->loader);

	if (p == NULL || m->batch == 0) {
		if (!hr_array_reserve(r->passes, r->n_passes, r->passes_room))
			return -ENOMEM;
		p = &r->passes[r->n_passes++];
		*p = (struct hr_pass){.from = created, .loader = m->loader};
	}
	p->to = m->to;
	return 0;
}

/* All passes of a loader train if an optimizer steps between a wait of one of them and the next wait. */
static void find_training(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	const struct hr_mark *wait = NULL;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (marks[i].tid != r->life->tid)
			continue;
		if (marks[i].kind == HR_REGION_INPUT_WAIT)
			wait = &marks[i];
		if (marks[i].kind != HR_REGION_OPTIMIZER || wait == NULL)
			continue;
		for (size_t k = 0; k < r->n_passes; k++)
			if (r->passes[k].loader == wait->loader)
				any = r->passes[k].trains = true;
		wait = NULL;
	}
	/* Without optimizers (inference), no loop is a validation. */
	for (size_t k = 0; !any && k < r->n_passes; k++)
		r->passes[k].trains = true;
}

/* If a loop is left early, its last step ends after its last wait. */
static void extend_passes(struct hr_life_reader *r)
{
	for (size_t i = 0, k = 0; i < r->n_passes; i++) {
		struct hr_pass *p = &r->passes[i];

		while (k < r->n_steps && r->steps[k]->to <= p->to)
			k++;
		if (p->trains && k < r->n_steps && r->steps[k]->from < p->to)
			p->to = r->steps[k]->to;
	}
}

static struct hr_place start_of(const struct hr_life_reader *r)
{
	struct hr_place at = {.first_loop = INT64_MAX, .last_loop = INT64_MIN};

	for (size_t i = 0; i < r->n_passes; i++) {
		const struct hr_pass *p = &r->passes[i];

		at.first_loop = p->from < at.first_loop ? p->from : at.first_loop;
		at.last_loop = p->to > at.last_loop ? p->to : at.last_loop;
	}
	if (r->n_steps > 0) {
		const struct hr_mark *first = r->steps[0], *last = r->steps[r->n_steps - 1];

		at.first_loop = first->from < at.first_loop ? first->from : at.first_loop;
		at.last_loop = last->to > at.last_loop ? last->to : at.last_loop;
	}
	return at;
}

int hr__passes_find(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	int64_t created = INT64_MIN;
	int error = 0;

	r->n_passes = r->n_steps = 0;
	for (size_t i = 0; error == 0 && i < n; i++) {
		const struct hr_mark *m = &marks[i];

		if (m->tid != r->life->tid)
			continue;
		if (m->kind == HR_MARK_CREATES) {
			created = m->from;
		} else if (m->kind == HR_REGION_INPUT_WAIT) {
			error = add_to_pass(r, m, created == INT64_MIN ? m->from : created);
			created = INT64_MIN;
		} else if (m->kind == HR_REGION_STEP) {
			error = hr_array_reserve(r->steps, r->n_steps, r->steps_room) ? 0 : -ENOMEM;
			if (error == 0)
				r->steps[r->n_steps++] = m;
		}
	}
	if (error < 0)
		return error;
	find_training(r, marks, n);
	extend_passes(r);
	r->at = start_of(r);
	return 0;
}

enum hr_phase hr__phase_at(const struct hr_life_reader *r, int64_t time)
{
	const struct hr_place *at = &r->at;

	if (time < at->first_loop)
		return HR_PHASE_START;
	if (time >= at->last_loop)
		return HR_PHASE_END;
	/* the innermost pass began last */
	for (size_t i = r->n_passes; i-- > 0;)
		if (r->passes[i].from <= time && time < r->passes[i].to)
			return r->passes[i].trains ? HR_PHASE_TRAIN : HR_PHASE_VALIDATION;
	if (at->step < r->n_steps && r->steps[at->step]->from <= time)
		return HR_PHASE_TRAIN;
	return HR_PHASE_BETWEEN;
}
