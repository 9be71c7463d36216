/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps: copies records from rings to the journal, and ends the sessions of exited processes. */
#include "daemon/drain/drain_internal.h"

#include <assert.h>
#include <string.h>

#include "common/fdstore.h"
#include "daemon/drain/feed.h"

/* If a sweep takes more probe records than this, the next sweep follows soon. */
#define PROBES_BUSY 4096u
/* The next sweep is soon if one takes more than 1/DEAF_PART of a ring without a doorbell. */
#define DEAF_PART 8

/* ---- sweeping -------------------------------------------------------------------------------- */

/* The rings of a session with records, and how many slots of each ring the next entry takes. */
struct share {
	uint32_t n;
	uint32_t all; /* sum of `count` */
	uint16_t ring[HR_SESSION_RINGS];
	uint32_t count[HR_SESSION_RINGS];
};

/* Counts the slots that are ready: at most `most` per ring, up to the same time in all rings. */
static void measure_up_to(struct hr_session *s, uint32_t most, uint64_t limit, uint64_t now_ns,
			  struct share *share)
{
	bool again;

	do {
		uint64_t earliest = UINT64_MAX;

		share->all = 0;
		for (uint32_t i = 0; i < share->n; i++) {
			uint64_t end;

			share->count[i] = hr_ring_ready(&s->rings[share->ring[i]], limit, most,
							s->dead, now_ns, &end);
			share->all += share->count[i];
			if (end < earliest)
				earliest = end;
		}
		/* Takes all rings only up to `earliest`, so that no effect precedes its cause. */
		again = share->n > 1 && earliest < limit && earliest != 0;
		if (again)
			limit = earliest;
	} while (again);
}

static void drain_sweep_measure(struct hr_session *s, uint64_t limit, uint64_t now_ns,
				struct share *share)
{
	uint32_t most = 1, least;

	share->n = 0;
	for (uint32_t i = 0; i < hr_session_rings(s); i++) {
		const struct hr_ring_view *r = &s->rings[i];

		if (!hr_ring_has_slots(r))
			continue;
		share->ring[share->n++] = (uint16_t)i;
		if (r->n_slots > most)
			most = (uint32_t)r->n_slots;
	}
	least = share->n ? HR_ENTRY_SLOTS / share->n : most;
	for (;; most = most / 2 > least ? most / 2 : least) {
		measure_up_to(s, most, limit, now_ns, share);
		if (share->all <= HR_ENTRY_SLOTS || most <= least)
			return;
	}
}

/* Writes one RECORDS entry from all rings of a session. Returns the number of slots. */
static uint32_t sweep_rings(struct hr_drain *d, struct hr_session *s, uint64_t sweep_ticks,
			    uint64_t now_ns)
{
	struct hr_entry_records *in;
	struct hr_record *slots;
	struct share share;
	uint64_t bytes;

	drain_sweep_measure(s, s->dead ? UINT64_MAX : sweep_ticks, now_ns, &share);
	if (!share.all)
		return 0;
	bytes = sizeof(*in) + share.n * sizeof(struct hr_run) + (uint64_t)share.all * HR_SLOT_BYTES;
	in = hr__drain_begin(d, bytes);
	if (!in)
		return 0;
	in->proc = s->proc;
	in->sweep_ticks = sweep_ticks;
	in->n_runs = share.n;
	in->spare = 0;
	slots = (struct hr_record *)(in->runs + share.n);
	for (uint32_t i = 0; i < share.n; i++) {
		struct hr_ring_view *r = &s->rings[share.ring[i]];

		in->runs[i] =
		    (struct hr_run){share.ring[i] / HR_MAP_RINGS, share.ring[i] % HR_MAP_RINGS,
				    share.count[i], r->tail};
		hr_ring_copy(r, share.count[i], slots);
		slots += share.count[i];
		d->deaf_full |= s->deaf && share.count[i] > r->n_slots / DEAF_PART;
	}
	assert((uint8_t *)slots == (uint8_t *)in + bytes); /* the runs are as measured */
	hr_journal_commit(d->c.journal, HR_ENTRY_RECORDS, bytes);
	hr_journal_unlock(d->c.journal);
	/* The journal has the slots, so the client may already reuse them. */
	for (uint32_t i = 0; i < share.n; i++)
		if (share.count[i])
			hr_ring_consumed(&s->rings[share.ring[i]], share.count[i]);
	hr__drain_catch_up(d);
	return share.all;
}

static void journal_lost(struct hr_drain *d, const struct hr_session *s, uint32_t ring,
			 const struct hr_lost_row *rows, uint32_t n)
{
	struct hr_entry_lost *in;

	if (!n)
		return;
	in = hr__drain_begin(d, sizeof(*in) + n * sizeof(rows[0]));
	if (!in)
		return;
	in->proc = s->proc;
	in->map = (uint16_t)(ring / HR_MAP_RINGS);
	in->ring = (uint16_t)(ring % HR_MAP_RINGS);
	in->n = n;
	memcpy(in->rows, rows, n * sizeof(rows[0]));
	hr__drain_commit(d, HR_ENTRY_LOST, sizeof(*in) + n * sizeof(rows[0]));
}

/* Probes see the calls of libraries with a libc of their own, and of all programs. */
static uint32_t without_probed(const struct hr_drain *d, struct hr_lost_row *rows, uint32_t n)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!d->feed || (rows[i].op != HR_CTL_LIBRARY && rows[i].op != HR_CTL_PROGRAM))
			rows[left++] = rows[i];
	return left;
}

static void sweep_lost(struct hr_drain *d, struct hr_session *s, uint64_t now_ns)
{
	struct hr_lost_row rows[HR_OP_MAX];
	uint32_t n;

	for (uint32_t i = 0; i < hr_session_rings(s); i++) {
		n = without_probed(d, rows, hr_ring_lost(&s->rings[i], rows));
		journal_lost(d, s, i, rows, hr_session_check_lost(s, rows, n, now_ns));
	}
	n = hr_session_strays(s, rows);
	journal_lost(d, s, 0, rows, hr_session_check_lost(s, rows, n, now_ns));
}

static void sweep_excluded(struct hr_drain *d, struct hr_session *s)
{
	uint64_t total[HR_EXCLUDED_KINDS];
	struct hr_entry_excluded *in;

	if (!hr_session_excluded(s, total))
		return;
	in = hr__drain_begin(d, sizeof(*in));
	if (!in)
		return;
	in->proc = s->proc;
	memcpy(in->total, total, sizeof(total));
	hr__drain_commit(d, HR_ENTRY_EXCLUDED, sizeof(*in));
}

/*
 * Runs less often than sweeps. Programs open excluded files all the time, and an entry for each
 * sweep would fill the journal.
 */
static void sweep_all_excluded(struct hr_drain *d, uint64_t now_ns)
{
	if (now_ns - d->last_excluded_ns < HR__TICK_NS)
		return;
	d->last_excluded_ns = now_ns;
	for (struct hr_session *s = d->sessions; s; s = s->next)
		sweep_excluded(d, s);
}

static uint32_t sweep_session(struct hr_drain *d, struct hr_session *s, uint64_t ticks,
			      uint64_t now_ns)
{
	uint32_t all = sweep_rings(d, s, ticks, now_ns);

	sweep_lost(d, s, now_ns);
	return all;
}

/* ---- the end of a session -------------------------------------------------------------------- */

static void leave_regions(struct hr_drain *d, const struct hr_session *s, uint32_t ring,
			  enum hr_left_regions what, uint64_t ticks)
{
	union {
		struct hr_region_cell open[HR_REGION_SPANS];
		struct hr_region_short sums[HR_REGION_SHORTS];
	} cells;
	struct hr_entry_left_regions *in;
	uint32_t n;

	if (what == HR_LEFT_RANGES)
		n = hr_ring_regions(&s->rings[ring], cells.open);
	else if (what == HR_LEFT_SPANS)
		n = hr_session_spans(s, cells.open);
	else
		n = hr_ring_shorts(&s->rings[ring], cells.sums);
	in = n ? hr__drain_begin(d, sizeof(*in) + n * sizeof(in->cells[0])) : NULL;
	if (!in)
		return;
	in->proc = s->proc;
	in->now_ticks = ticks;
	in->map = (uint16_t)(ring / HR_MAP_RINGS);
	in->ring = (uint16_t)(ring % HR_MAP_RINGS);
	in->what = what;
	in->n = n;
	in->deeper = what == HR_LEFT_RANGES ? hr_ring_deeper(&s->rings[ring]) : 0;
	memcpy(in->cells, &cells, n * sizeof(in->cells[0]));
	hr__drain_commit(d, HR_ENTRY_LEFT_REGIONS, sizeof(*in) + n * sizeof(in->cells[0]));
}

void hr__drain_leave_cells(struct hr_drain *d, struct hr_session *s, uint64_t ticks)
{
	for (uint32_t i = 0; i < hr_session_rings(s); i++) {
		struct hr_inflight inflight;
		struct hr_aggregate aggregate;
		struct hr_entry_left *in;

		hr_ring_cells(&s->rings[i], &inflight, &aggregate);
		if (inflight.op == 0 && (aggregate.op == 0 || aggregate.count == 0))
			continue;
		in = hr__drain_begin(d, sizeof(*in));
		if (!in)
			continue;
		in->proc = s->proc;
		in->now_ticks = ticks;
		in->map = i / HR_MAP_RINGS;
		in->ring = i % HR_MAP_RINGS;
		in->inflight = inflight;
		in->aggregate = aggregate;
		hr__drain_commit(d, HR_ENTRY_LEFT, sizeof(*in));
	}
	for (uint32_t i = 0; i < hr_session_rings(s); i++) {
		leave_regions(d, s, i, HR_LEFT_SHORTS, ticks);
		leave_regions(d, s, i, HR_LEFT_RANGES, ticks);
	}
	leave_regions(d, s, 0, HR_LEFT_SPANS, ticks);
}

/* If a process is dead, takes its records and sums from the probes, before its end is journaled. */
static void settle_dead(struct hr_drain *d, uint64_t now_ns)
{
	const struct hr_session *s = d->sessions;

	while (s && !s->dead)
		s = s->next;
	if (s && d->feed)
		hr_feed_settle(d->feed, now_ns);
}

static void drain_sweep_finish(struct hr_drain *d, struct hr_session *s, uint64_t now_ns)
{
	uint64_t ticks = hr_clock_ticks(d->c.clock);
	char name[HR_MAP_NAME_BYTES];

	/*
	 * Stops after as many slots as the rings have: another process may still write to the map.
	 */
	for (uint64_t left = hr_session_slots(s), taken = 1; left > 0 && taken > 0; left -= taken) {
		taken = sweep_session(d, s, ticks, now_ns);
		if (taken > left)
			taken = left;
	}
	sweep_excluded(d, s);
	hr__drain_leave_cells(d, s, ticks);
	hr__drain_end(d, s->proc, s->exit);
	if (d->feed)
		hr_feed_session_ended(d->feed, s->proc);
	for (uint32_t i = 0; i < s->n_maps; i++) {
		hr_map_name(s->proc, i, name);
		hr_fdstore_remove(name);
	}
	hr_session_free(s);
}

/* Journals the clients that other threads have counted as lost since the last call. */
static void note_clients(struct hr_drain *d)
{
	for (enum hr_loss_reason reason = 0; reason < HR_LOSS_REASONS; reason++) {
		uint64_t now = __atomic_load_n(&d->lost[reason], __ATOMIC_RELAXED);

		if (now != d->lost_noted[reason])
			hr__drain_note(d, reason, now - d->lost_noted[reason]);
		d->lost_noted[reason] = now;
	}
}

/* Returns whether a process that is dead now was active after the hello of `later`. */
static bool met_dead(const struct hr_drain *d, const struct hr_session *later)
{
	for (const struct hr_session *s = d->sessions; s; s = s->next)
		if (s->dead && s != later && hr_session_active_after(s, later->hello_ticks))
			return true;
	return false;
}

/*
 * Sweeps all sessions except those that attached after a process died (`later`). Returns the number
 * of slots taken.
 */
static uint64_t sweep_living(struct hr_drain *d, uint64_t ticks, uint64_t now_ns)
{
	uint64_t all = 0;
	bool any_later = false;

	d->rings = 0;
	for (struct hr_session *s = d->sessions; s; s = s->next) {
		d->rings += hr_session_rings(s);
		any_later |= s->later;
		if (!s->later)
			all += sweep_session(d, s, ticks, now_ns);
	}
	for (struct hr_session *s = d->sessions; s && any_later; s = s->next) {
		if (!s->later || !met_dead(d, s))
			continue;
		s->later = false;
		all += sweep_session(d, s, ticks, now_ns);
	}
	return all;
}

uint64_t hr__drain_sweep(struct hr_drain *d)
{
	struct hr_session **at = &d->sessions, *s, *dead = NULL;
	uint64_t ticks = hr_clock_ticks(d->c.clock), now_ns = hr_boot_ns();
	uint64_t all;

	hr__drain_catch_up(d);
	if (now_ns - d->last_tick_ns >= HR__TICK_NS &&
	    (d->traffic || hr_engine_waiting(d->c.engine)))
		hr__drain_tick(d, now_ns);
	/*
	 * Worker numbers depend on which processes live at the same time. So the sweep takes the
	 * records of processes that lived at a death, then the ends, then all later records.
	 */
	d->deaf_full = false;
	all = sweep_living(d, ticks, now_ns);
	sweep_all_excluded(d, now_ns);
	settle_dead(d, now_ns);
	while ((s = *at)) {
		if (!s->dead) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		/* the newest session is first in `sessions` and must end last */
		s->next = dead;
		dead = s;
	}
	while ((s = dead)) {
		dead = s->next;
		drain_sweep_finish(d, s, now_ns);
		all++;
	}
	for (s = d->sessions; s; s = s->next) {
		if (s->later)
			all += sweep_session(d, s, ticks, now_ns);
		s->later = false;
	}
	if (d->feed) {
		uint64_t taken = hr_feed_sweep(d->feed, now_ns, false);

		d->deaf_full |= taken > PROBES_BUSY; /* probes cannot ring the doorbell */
		all += taken;
	}
	hr__drain_read_mounts(d, hr_engine_mounts_wanted(d->c.engine), now_ns);
	hr__drain_deselect(d);
	note_clients(d);
	/* Clients check that the heartbeat changes. */
	__atomic_add_fetch(&d->c.page->beat, 1, __ATOMIC_RELAXED);
	d->traffic = all != 0;
	return all;
}

void hr__drain_sweep_out(struct hr_drain *d)
{
	uint64_t left = 0, taken = 1;

	d->last_excluded_ns = 0; /* then the sweep takes the counts of excluded files */
	for (const struct hr_session *s = d->sessions; s; s = s->next)
		left += hr_session_slots(s);
	for (; left > 0 && taken > 0; left -= taken) {
		taken = hr__drain_sweep(d);
		if (taken > left)
			taken = left;
	}
	if (d->feed)
		hr_feed_sweep(d->feed, hr_boot_ns(), true);
}
