/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of the running job, on the drain thread between two sweeps. */
#include "daemon/drain_internal.h"

#define CELLS_MOST 1024u

/*
 * What a ring's owner has been in the middle of for at least that long: then the cell has not changed for as long, and two looks
 * agree. It may change while it is copied, and a start of long ago stand beside an operation of now.
 */
static bool look(const struct hr_drain *d, const struct hr_ring_view *r, uint64_t least_ns,
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

static size_t look_at_all(const struct hr_drain *d, uint64_t least_ns, struct hr_live_cell *cells,
			  uint32_t *ret_cut)
{
	size_t n = 0;

	for (const struct hr_session *s = d->sessions; s; s = s->next) {
		for (uint32_t i = 0; i < hr_session_rings(s); i++) {
			struct hr_live_cell c = {
			    s->proc, i / HR_MAP_RINGS, i % HR_MAP_RINGS, 0, {0}};

			if (s->dead || !look(d, &s->rings[i], least_ns, &c))
				continue;
			if (n < CELLS_MOST)
				cells[n++] = c;
			else
				(*ret_cut)++;
		}
	}
	return n;
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
	n = look_at_all(d, in_flight_ns, cells, &cut);
	hr_clock_sample(&now);
	r = hr_engine_live(d->c.engine, &now, cells, n, ret);
	if (r == 0) {
		(*ret)->m.in_flight_cut = cut;
		(*ret)->m.refused = d->refused_noted;
	}
	free(cells);
	return r;
}
