/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/drain/drain_internal.h"

#include "common/save.h"

#define CELLS_MOST 1024u

/*
 * Reads a cell twice, because its owner may change it in between. Returns false if the owner did,
 * or if the operation is younger than `least_ns`.
 */
static bool read_cell(const struct hr_drain *d, const struct hr_ring_view *r, uint64_t least_ns,
		      struct hr_live_cell *ret)
{
	struct hr_aggregate aggregate;
	struct hr_inflight again;
	uint64_t now = hr_clock_ticks(d->c.clock);

	hr_ring_cells(r, &ret->cell, &aggregate);
	if (ret->cell.op == 0 || ret->cell.start_ticks > now)
		return false;
	ret->age_ns = hr_ticks_span_ns(&d->c.clock->line, now - ret->cell.start_ticks);
	if (ret->age_ns < least_ns)
		return false;
	hr_ring_cells(r, &again, &aggregate);
	return again.op == ret->cell.op && again.start_ticks == ret->cell.start_ticks;
}

static size_t read_cells(const struct hr_drain *d, uint64_t least_ns, struct hr_live_cell *cells,
			 uint32_t *ret_cut)
{
	size_t n = 0;

	for (const struct hr_session *s = d->sessions; s; s = s->next) {
		for (uint32_t i = 0; i < hr_session_rings(s); i++) {
			struct hr_live_cell c = {
			    s->proc, i / HR_MAP_RINGS, i % HR_MAP_RINGS, 0, {0}};

			if (s->dead || !read_cell(d, &s->rings[i], least_ns, &c))
				continue;
			if (n < CELLS_MOST)
				cells[n++] = c;
			else
				(*ret_cut)++;
		}
	}
	return n;
}

static int by_proc(const void *a, const void *b)
{
	const Headrace__LiveProcess *const *p = a, *const *q = b;

	return (*p)->proc < (*q)->proc ? -1 : (*p)->proc > (*q)->proc;
}

static void add_region(const struct hr_clock_line *line, const struct hr_region_cell *cell,
		       uint64_t now, Headrace__LiveProcess *ret)
{
	struct hr_save save = {ret->save_start_ns, ret->save_end_ns};

	switch (cell->flags >> HR_REGION_KIND_SHIFT) {
	case HR_REGION_INPUT_WAIT:
		ret->wait_ns += hr_ticks_span_ns(line, now - cell->start_ticks);
		break;
	case HR_REGION_CHECKPOINT:
		(void)hr_save_add(&save, hr_ticks_ns(line, cell->start_ticks),
				  hr_ticks_ns(line, now));
		ret->save_start_ns = save.start_ns;
		ret->save_end_ns = save.end_ns;
		break;
	default:
		break;
	}
}

static void add_regions(const struct hr_drain *d, const struct hr_session *s,
			Headrace__LiveProcess *ret)
{
	struct hr_region_cell cells[HR_REGION_DEPTH];
	uint64_t now = hr_clock_ticks(d->c.clock);

	for (uint32_t i = 0; i < hr_session_rings(s); i++) {
		uint32_t n = hr_ring_regions(&s->rings[i], cells);

		for (uint32_t k = 0; k < n; k++)
			if (cells[k].start_ticks < now)
				add_region(&d->c.clock->line, &cells[k], now, ret);
	}
}

static void add_all_regions(const struct hr_drain *d, Headrace__LiveJob *m)
{
	for (const struct hr_session *s = d->sessions; s && m->n_processes; s = s->next) {
		const Headrace__LiveProcess wanted = {.proc = s->proc}, *key = &wanted;
		Headrace__LiveProcess **found =
		    s->dead ? NULL
			    : bsearch(&key, m->processes, m->n_processes, sizeof(key), by_proc);

		if (found)
			add_regions(d, s, *found);
	}
}

int hr__drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret)
{
	struct hr_live_cell *cells = calloc(CELLS_MOST, sizeof(*cells));
	struct hr_clock_sample now;
	uint32_t cut = 0;
	size_t n;
	int r;

	if (!cells)
		return -ENOMEM;
	n = read_cells(d, in_flight_ns, cells, &cut);
	hr_clock_sample(&now);
	r = hr_engine_live(d->c.engine, &now, cells, n, ret);
	if (r == 0) {
		(*ret)->m.in_flight_cut = cut;
		(*ret)->m.refused = d->lost_noted[HR_LOSS_LIMIT];
		if ((*ret)->m.n_processes)
			qsort((*ret)->m.processes, (*ret)->m.n_processes,
			      sizeof(*(*ret)->m.processes), by_proc);
		add_all_regions(d, &(*ret)->m);
	}
	free(cells);
	return r;
}
