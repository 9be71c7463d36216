/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/drain_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/fdstore.h"

#define TICK_NS	      UINT64_C(250000000)
#define SLEEP_MIN_NS  UINT64_C(1000000)
#define SLEEP_BUSY_NS UINT64_C(20000000) /* most while there is traffic */
#define SLEEP_DEAF_NS UINT64_C(2000000)	 /* the same, with a process that cannot ring the bell */
#define SLEEP_IDLE_NS UINT64_C(100000000)
#define BUSY_SLOTS    1024u /* found by one sweep: no time to sleep */

/* ---- sweeping -------------------------------------------------------------------------------------- */

/* The rings of a session that have something, and how much of it goes into the next entry. */
struct share {
	uint32_t n;
	uint32_t all; /* slots */
	uint16_t ring[HR_SESSION_RINGS];
	uint32_t count[HR_SESSION_RINGS];
};

/* How much of each ring is ready, `most` slots of one, all up to the same moment. */
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
		/* A ring that was cut short holds the others back, or effects would overtake causes. */
		again = share->n > 1 && earliest < limit && earliest != 0;
		if (again)
			limit = earliest;
	} while (again);
}

/* As much as fits into an entry. */
static void measure(struct hr_session *s, uint64_t limit, uint64_t now_ns, struct share *share)
{
	uint32_t most = 1, least;

	share->n = 0;
	for (uint32_t i = 0; i < hr_session_rings(s); i++) {
		const struct hr_ring_view *r = &s->rings[i];

		if (!hr_ring_stirs(r))
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

/* One RECORDS entry from all rings. Returns slots taken. */
static uint32_t sweep_rings(struct hr_drain *d, struct hr_session *s, uint64_t sweep_ticks,
			    uint64_t now_ns)
{
	struct hr_entry_records *in;
	struct hr_record *slots;
	struct share share;
	uint64_t bytes;

	measure(s, s->dead ? UINT64_MAX : sweep_ticks, now_ns, &share);
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
	}
	hr_journal_commit(d->c.journal, HR_ENTRY_RECORDS, bytes);
	hr_journal_unlock(d->c.journal);
	/* The journal has them: the client may reuse the slots while the engine works. */
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

static void sweep_lost(struct hr_drain *d, struct hr_session *s)
{
	struct hr_lost_row rows[HR_OP_MAX];

	for (uint32_t i = 0; i < hr_session_rings(s); i++)
		journal_lost(d, s, i, rows, hr_ring_lost(&s->rings[i], rows));
	journal_lost(d, s, 0, rows, hr_session_strays(s, rows));
}

static uint32_t sweep_session(struct hr_drain *d, struct hr_session *s, uint64_t ticks,
			      uint64_t now_ns)
{
	uint32_t all = sweep_rings(d, s, ticks, now_ns);

	sweep_lost(d, s);
	return all;
}

/* ---- the end of a session ---------------------------------------------------------------------------- */

static void leave_cells(struct hr_drain *d, struct hr_session *s, uint64_t ticks)
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
}

static void journal_end(struct hr_drain *d, uint64_t proc, const char *exit)
{
	struct hr_entry_end *in = hr__drain_begin(d, sizeof(*in));

	if (!in)
		return;
	in->proc = proc;
	in->now_ns = hr_boot_ns();
	memset(in->exit, 0, sizeof(in->exit));
	memcpy(in->exit, exit, strnlen(exit, sizeof(in->exit) - 1));
	hr__drain_commit(d, HR_ENTRY_END, sizeof(*in));
}

/* The process is gone: everything that it left, then its end. */
static void finish(struct hr_drain *d, struct hr_session *s, uint64_t now_ns)
{
	uint64_t ticks = hr_clock_ticks(d->c.clock);
	char name[64];

	/* What rings can hold, and no more: whoever else has the map may go on writing. */
	for (uint64_t left = hr_session_slots(s), taken = 1; left > 0 && taken > 0; left -= taken) {
		taken = sweep_session(d, s, ticks, now_ns);
		if (taken > left)
			taken = left;
	}
	leave_cells(d, s, ticks);
	journal_end(d, s->proc, s->exit);
	for (uint32_t i = 0; i < s->n_maps; i++) {
		snprintf(name, sizeof(name), "s%llu.%u", (unsigned long long)s->proc, i);
		hr_fdstore_remove(name);
	}
	d->deaf -= s->deaf;
	hr_session_free(s);
}

/* What the attach thread has counted of clients since the last time. */
static void note_clients(struct hr_drain *d, const uint64_t *count, uint64_t *noted,
			 enum hr_loss_reason reason)
{
	uint64_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	if (now == *noted)
		return;
	hr__drain_note(d, reason, now - *noted);
	*noted = now;
}

static uint64_t sweep(struct hr_drain *d)
{
	struct hr_session **at = &d->sessions, *s;
	uint64_t ticks = hr_clock_ticks(d->c.clock), now_ns = hr_boot_ns();
	uint64_t all = 0;

	hr__drain_catch_up(d);
	if (now_ns - d->last_tick_ns >= TICK_NS && (d->traffic || hr_engine_waiting(d->c.engine)))
		hr__drain_tick(d, now_ns);
	while ((s = *at)) {
		if (!s->dead) {
			all += sweep_session(d, s, ticks, now_ns);
			at = &s->next;
			continue;
		}
		*at = s->next;
		finish(d, s, now_ns);
		all++;
	}
	hr__drain_read_mounts(d, hr_engine_mounts_wanted(d->c.engine), now_ns);
	hr__drain_deselect(d);
	note_clients(d, &d->refused, &d->refused_noted, HR_LOSS_LIMIT);
	note_clients(d, &d->missed, &d->missed_noted, HR_LOSS_UNATTACHED);
	d->sweeps++;
	/* Goes on from the daemon before: clients only look whether it moves. */
	__atomic_add_fetch(&d->c.page->beat, 1, __ATOMIC_RELAXED);
	d->traffic = all != 0;
	return all;
}

/* ---- requests --------------------------------------------------------------------------------------- */

static struct hr_session *session_of(struct hr_drain *d, uint64_t proc)
{
	struct hr_session *s = d->sessions;

	while (s && s->proc != proc)
		s = s->next;
	return s;
}

static void serve(struct hr_drain *d, struct message *m)
{
	struct hr_session *s;

	switch (m->kind) {
	case NEW_SESSION:
		m->session->next = d->sessions;
		d->sessions = m->session;
		d->deaf += m->session->deaf;
		hr_session_set_level(m->session, d->level);
		break;
	case NEW_MAP:
		s = session_of(d, m->proc);
		if (!s || hr_session_add_map(s, &m->map))
			hr_map_close(&m->map);
		else
			hr_session_set_level(s, d->level);
		break;
	case ENDED:
		s = session_of(d, m->proc);
		if (s) {
			s->dead = true;
			memcpy(s->exit, m->exit, sizeof(s->exit));
		} else {
			journal_end(d, m->proc, m->exit);
		}
		break;
	}
	free(m);
}

static void take_inbox(struct hr_drain *d)
{
	struct message *m;

	pthread_mutex_lock(&d->lock);
	m = d->inbox;
	d->inbox = NULL;
	d->inbox_last = &d->inbox;
	pthread_mutex_unlock(&d->lock);
	if (m)
		hr__drain_catch_up(d); /* their ATTACH entries come first */
	while (m) {
		struct message *next = m->next;

		serve(d, m);
		m = next;
	}
}

static void publish(struct hr_drain *d)
{
	struct hr_engine_stats e;

	hr_engine_stats_get(d->c.engine, &e);
	pthread_mutex_lock(&d->lock);
	d->stats.events = e.records;
	d->stats.records_in = e.records;
	d->stats.bytes_moved = e.bytes_moved;
	d->stats.lost = e.lost;
	d->stats.torn = e.torn;
	d->stats.hostile = e.hostile;
	d->stats.batches = e.batches;
	d->stats.sessions = e.processes;
	d->stats.sessions_total = e.processes_total;
	d->stats.sweeps = d->sweeps;
	d->stats.counters_only = d->counters_only;
	d->stats.refused = d->refused_noted;
	d->stats.journal_in_memory = d->c.journal_in_memory;
	pthread_mutex_unlock(&d->lock);
}

/* As much as all rings can hold: many sweeps where one entry has room for a part only. */
static void sweep_out(struct hr_drain *d)
{
	uint64_t left = 0, taken = 1;

	for (const struct hr_session *s = d->sessions; s; s = s->next)
		left += hr_session_slots(s);
	for (; left > 0 && taken > 0; left -= taken) {
		taken = sweep(d);
		if (taken > left)
			taken = left;
	}
}

static void flush(struct hr_drain *d, uint64_t wanted)
{
	sweep_out(d);
	hr__drain_tick(d, hr_boot_ns());
	hr__drain_seal(d);
	publish(d);
	pthread_mutex_lock(&d->lock);
	d->flush_done = wanted;
	pthread_cond_broadcast(&d->served);
	pthread_mutex_unlock(&d->lock);
}

static void stop(struct hr_drain *d, const char *state)
{
	struct hr_entry_stop *in;
	struct hr_session *s;

	sweep_out(d);
	for (s = d->sessions; s; s = s->next) {
		hr_session_set_level(s, HR_LEVEL_OFF);
		leave_cells(d, s, hr_clock_ticks(d->c.clock));
	}
	hr__drain_tick(d, hr_boot_ns());
	in = hr__drain_begin(d, sizeof(*in));
	if (in) {
		in->now_ns = hr_boot_ns();
		memset(in->state, 0, sizeof(in->state));
		memcpy(in->state, state, strnlen(state, sizeof(in->state) - 1));
		hr__drain_commit(d, HR_ENTRY_STOP, sizeof(*in));
	}
	publish(d);
}

/* Past max_bytes only counters are kept; it says so, in levels and stats. */
static void check_size(struct hr_drain *d)
{
	if (d->counters_only || !d->c.max_bytes ||
	    hr_appender_stored_bytes(d->c.appender) < d->c.max_bytes)
		return;
	d->counters_only = true;
	if (hr_engine_level(d->c.engine) == HR_LEVEL_TRACE)
		hr__drain_set_level(d, HR_LEVEL_COUNTERS, true);
}

/* ---- sleeping ---------------------------------------------------------------------------------------- */

static bool pressed(const struct hr_drain *d)
{
	for (const struct hr_session *s = d->sessions; s; s = s->next)
		for (uint32_t i = 0; i < hr_session_rings(s); i++)
			if (hr_ring_pressed(&s->rings[i]))
				return true;
	return false;
}

static bool asked(struct hr_drain *d)
{
	bool yes;

	pthread_mutex_lock(&d->lock);
	yes = d->inbox || d->flush_wanted > d->flush_done || d->stop_state != NULL;
	pthread_mutex_unlock(&d->lock);
	return yes;
}

/* Sleeps until the bell, or for a time that follows the traffic. */
static void sleep_a_while(struct hr_drain *d, uint64_t found)
{
	uint32_t bell = __atomic_load_n(&d->c.page->bell, __ATOMIC_ACQUIRE);
	uint64_t busy_ns = d->deaf ? SLEEP_DEAF_NS : SLEEP_BUSY_NS;
	struct timespec t = {0};

	if (found > BUSY_SLOTS)
		d->sleep_ns = SLEEP_MIN_NS;
	else if (found)
		d->sleep_ns = d->sleep_ns * 3 / 2 < busy_ns ? d->sleep_ns * 3 / 2 : busy_ns;
	else
		d->sleep_ns = d->sleep_ns * 2 < SLEEP_IDLE_NS ? d->sleep_ns * 2 : SLEEP_IDLE_NS;
	/* Pairs with the shim's look at `sleeping` after its commit: it sees 1, or we see its ring past the mark. */
	__atomic_store_n(&d->c.page->sleeping, 1, __ATOMIC_SEQ_CST);
	if (!asked(d) && !pressed(d)) {
		t.tv_nsec = (long)d->sleep_ns;
		syscall(SYS_futex, &d->c.page->bell, FUTEX_WAIT, bell, &t, NULL, 0);
	}
	__atomic_store_n(&d->c.page->sleeping, 0, __ATOMIC_RELEASE);
}

static void ring_bell(struct hr_drain *d)
{
	__atomic_add_fetch(&d->c.page->bell, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &d->c.page->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *run(void *arg)
{
	struct hr_drain *d = arg;

	for (;;) {
		const char *state;
		uint64_t wanted, found;

		take_inbox(d);
		found = sweep(d);
		check_size(d);
		publish(d);
		pthread_mutex_lock(&d->lock);
		wanted = d->flush_wanted > d->flush_done ? d->flush_wanted : 0;
		state = d->stop_state;
		pthread_mutex_unlock(&d->lock);
		if (wanted)
			flush(d, wanted);
		if (state) {
			take_inbox(d);
			stop(d, state);
			return NULL;
		}
		sleep_a_while(d, found);
	}
}

/* ---- from other threads ------------------------------------------------------------------------------ */

int hr_drain_new(const struct hr_drain_config *config, struct hr_drain **ret)
{
	struct hr_drain *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->c = *config;
	d->inbox_last = &d->inbox;
	d->sleep_ns = SLEEP_MIN_NS;
	d->level = hr_engine_level(config->engine);
	d->counters_only = config->counters_only;
	d->applied = hr_journal_head(config->journal);
	d->last_clock_ns = hr_boot_ns();
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->served, NULL);
	publish(d);
	*ret = d;
	return 0;
}

int hr_drain_start(struct hr_drain *d)
{
	int r = pthread_create(&d->thread, NULL, run, d);

	d->running = r == 0;
	return -r;
}

static void send(struct hr_drain *d, struct message message)
{
	struct message *m = malloc(sizeof(*m));

	if (!m) { /* the session stays unread: its client drops and counts */
		hr_session_free(message.session);
		hr_map_close(&message.map);
		return;
	}
	*m = message;
	pthread_mutex_lock(&d->lock);
	*d->inbox_last = m;
	d->inbox_last = &m->next;
	pthread_mutex_unlock(&d->lock);
	ring_bell(d);
}

void hr_drain_add_session(struct hr_drain *d, struct hr_session *s)
{
	send(d, (struct message){.kind = NEW_SESSION, .session = s});
}

void hr_drain_add_map(struct hr_drain *d, uint64_t proc, const struct hr_map *map)
{
	send(d, (struct message){.kind = NEW_MAP, .proc = proc, .map = *map});
}

void hr_drain_ended(struct hr_drain *d, uint64_t proc, const char *exit)
{
	struct message m = {.kind = ENDED, .proc = proc};

	memcpy(m.exit, exit, strnlen(exit, sizeof(m.exit) - 1));
	send(d, m);
}

void hr_drain_refused(struct hr_drain *d)
{
	__atomic_add_fetch(&d->refused, 1, __ATOMIC_RELAXED);
}

void hr_drain_missed(struct hr_drain *d)
{
	__atomic_add_fetch(&d->missed, 1, __ATOMIC_RELAXED);
}

void hr_drain_flush(struct hr_drain *d)
{
	uint64_t wanted;

	pthread_mutex_lock(&d->lock);
	wanted = ++d->flush_wanted;
	pthread_mutex_unlock(&d->lock);
	ring_bell(d);
	pthread_mutex_lock(&d->lock);
	while (d->running && d->flush_done < wanted)
		pthread_cond_wait(&d->served, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

void hr_drain_stop(struct hr_drain *d, const char *state)
{
	if (!d->running)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop_state = state;
	pthread_mutex_unlock(&d->lock);
	ring_bell(d);
	pthread_join(d->thread, NULL);
	d->running = false;
}

void hr_drain_stats(struct hr_drain *d, struct hr_node_stats *ret)
{
	pthread_mutex_lock(&d->lock);
	*ret = d->stats;
	pthread_mutex_unlock(&d->lock);
	ret->stored_bytes = hr_appender_stored_bytes(d->c.appender);
	ret->store_error = hr_appender_error(d->c.appender);
}

uint32_t hr_drain_level(const struct hr_drain *d)
{
	return __atomic_load_n(&d->level, __ATOMIC_RELAXED);
}

void hr_drain_free(struct hr_drain *d)
{
	if (!d)
		return;
	while (d->inbox) {
		struct message *next = d->inbox->next;

		hr_session_free(d->inbox->session);
		hr_map_close(&d->inbox->map);
		free(d->inbox);
		d->inbox = next;
	}
	while (d->sessions) {
		struct hr_session *next = d->sessions->next;

		hr_session_free(d->sessions);
		d->sessions = next;
	}
	pthread_cond_destroy(&d->served);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
