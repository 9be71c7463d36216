/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/life_internal.h"

#include <errno.h>

#include "common/array.h"

/* Returns the region that contains `time`, or NULL. The search begins at *next. */
static const struct hr_mark *mark_at(const struct hr_mark *const *list, size_t n, size_t *next,
				     int64_t time)
{
	while (*next < n && list[*next]->to <= time)
		++*next;
	return *next < n && list[*next]->from <= time ? list[*next] : NULL;
}

int hr__block_add(struct hr_life_reader *r, enum hr_block_kind kind, int64_t from, int64_t to,
		  struct hr_interval explains, uint32_t fetch)
{
	struct hr_train_life *life = r->life;
	const struct hr_mark *step, *epoch;
	struct hr_block *b;
	uint32_t loop = hr__loop_around(r, from > life->from ? from : life->from);

	from = from > life->from ? from : life->from;
	to = to < life->to ? to : life->to;
	if (from >= to)
		return 0;
	if (!hr_array_reserve(life->blocks, life->n, life->room))
		return -ENOMEM;
	step = mark_at(r->steps, r->n_steps, &r->at.step, from);
	epoch = mark_at(r->epochs, r->n_epochs, &r->at.epoch, from);
	epoch = epoch != NULL ? epoch : step;
	b = &life->blocks[life->n++];
	*b = (struct hr_block){.from = from,
			       .to = to,
			       .step = step != NULL ? step->step : HR_REGION_UNKNOWN,
			       .epoch = epoch != NULL ? epoch->epoch : HR_REGION_UNKNOWN,
			       .fetch = fetch,
			       .kind = (uint8_t)kind,
			       .loop = loop,
			       .phase = (uint8_t)hr__phase_at(r, from, loop)};
	explains.from = from;
	explains.to = to;
	explains.use = !hr__in_scope(r, life->rank)			    ? HR_USE_NONE
		       : kind == HR_BLOCK_FETCH || kind == HR_BLOCK_UNKNOWN ? HR_USE_WAITED
		       : fetch != HR_NO_FETCH				    ? HR_USE_HIDDEN
									    : HR_USE_OWN;
	explains.ops = b->ops = hr__scan_ops(r->scan);
	return hr__scan_add(r->scan, &explains);
}

int hr__block_add_own(struct hr_life_reader *r, enum hr_block_kind kind, int64_t from, int64_t to,
		      uint32_t fetch)
{
	struct hr_interval own = {.proc = r->life->proc, .tid = r->life->tid};

	return hr__block_add(r, kind, from, to, own, fetch);
}

int hr__fetch_add(struct hr_life_reader *r, const struct hr_mark *m, uint32_t worker, uint32_t *ret)
{
	struct hr_train_lives *l = r->to;

	if (!hr_array_reserve(l->fetches, l->n_fetches, l->fetches_room))
		return -ENOMEM;
	*ret = (uint32_t)l->n_fetches;
	l->fetches[l->n_fetches++] = (struct hr_fetch){.from = m->from,
						       .to = m->to,
						       .ops = hr__scan_ops(r->scan),
						       .placed = m->from,
						       .worker = worker,
						       .batch = m->batch,
						       .used = m->used,
						       .first_line = m->first_line,
						       .n_lines = m->n_lines};
	return 0;
}
