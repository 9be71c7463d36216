/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's processes. Maps find them by number, token or pid, and a list has them in the order
 * in which they attached.
 */
#include <errno.h>

#include "daemon/engine/state.h"

struct hr_proc *hr__proc_by(const struct hr_engine *e, const struct hr_map64 *map, uint64_t key)
{
	uint32_t slot = hr_map64_get(map, key);

	return slot == HR_MAP64_NONE ? NULL : e->slots[slot];
}

struct hr_proc *hr__proc_find(const struct hr_engine *e, uint64_t proc)
{
	return hr__proc_by(e, &e->by_proc, proc);
}

void hr__proc_dirty(struct hr_engine *e, struct hr_proc *p)
{
	if (p->dirty)
		return;
	p->dirty = true;
	p->next_dirty = NULL;
	if (e->last_dirty)
		e->last_dirty->next_dirty = p;
	else
		e->dirty = p;
	e->last_dirty = p;
	e->n_dirty++;
}

static int grow_slots(struct hr_engine *e)
{
	uint32_t more = e->room_slots ? e->room_slots * 2 : 64;
	struct hr_proc **v = realloc(e->slots, more * sizeof(struct hr_proc *));
	uint32_t *unused = realloc(e->unused, more * sizeof(*unused));

	if (v)
		e->slots = v;
	if (unused)
		e->unused = unused;
	if (!v || !unused)
		return -ENOMEM;
	e->room_slots = more;
	return 0;
}

static int process_take_slot(struct hr_engine *e, struct hr_proc *p)
{
	if (!e->n_unused && e->n_slots == e->room_slots && grow_slots(e))
		return -ENOMEM;
	p->slot = e->n_unused ? e->unused[--e->n_unused] : e->n_slots++;
	e->slots[p->slot] = p;
	return 0;
}

struct hr_proc *hr__proc_new(struct hr_engine *e, const struct hr_identity *id)
{
	struct hr_proc *p = calloc(1, sizeof(*p));

	if (!p || process_take_slot(e, p)) {
		free(p);
		e->failed = true;
		return NULL;
	}
	p->id = *id;
	p->last_path = UINT32_MAX;
	p->last_filerec = UINT32_MAX;
	memset(p->rollup_of, 0xff, sizeof(p->rollup_of));
	if (hr_map64_set(&e->by_proc, id->proc, p->slot) ||
	    hr_map64_set(&e->by_token, id->token, p->slot) ||
	    hr_map64_set(&e->by_pid, (uint32_t)id->pid, p->slot))
		e->failed = true;
	p->prev = e->last;
	if (e->last)
		e->last->next = p;
	else
		e->first = p;
	e->last = p;
	e->stats.processes++;
	if (id->proc > e->last_proc)
		e->last_proc = id->proc;
	return p;
}

void hr__proc_forget(struct hr_engine *e, struct hr_proc *p)
{
	if (hr__proc_by(e, &e->by_pid, (uint32_t)p->id.pid) == p)
		hr_map64_remove(&e->by_pid, (uint32_t)p->id.pid);
	if (hr__proc_by(e, &e->by_token, p->id.token) == p)
		hr_map64_remove(&e->by_token, p->id.token);
}

void hr__proc_free(struct hr_engine *e, struct hr_proc *p)
{
	hr__proc_forget(e, p);
	hr_map64_remove(&e->by_proc, p->id.proc);
	e->slots[p->slot] = NULL;
	e->unused[e->n_unused++] = p->slot;
	if (p->prev)
		p->prev->next = p->next;
	else
		e->first = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		e->last = p->prev;
	for (uint32_t i = 0; i < p->n_rings; i++)
		free(p->rings[i].lost);
	free(p->rings);
	free(p->spawned);
	free(p->exe);
	free(p->cmdline);
	free(p->defaults);
	hr_positions_done(&p->positions);
	free(p);
}

struct hr_ring_state *hr__ring(struct hr_proc *p, uint32_t map, uint32_t ring)
{
	uint32_t i = map * HR_MAP_RINGS + ring;

	if (map >= HR_SESSION_MAPS || ring >= HR_MAP_RINGS)
		return NULL;
	if (i >= p->n_rings) {
		struct hr_ring_state *v = realloc(p->rings, (i + 1) * sizeof(*v));

		if (!v)
			return NULL;
		memset(v + p->n_rings, 0, (i + 1 - p->n_rings) * sizeof(*v));
		for (uint32_t k = p->n_rings; k <= i; k++)
			v[k].task_batch = UINT64_MAX;
		p->rings = v;
		p->n_rings = i + 1;
	}
	return &p->rings[i];
}
