/* SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "daemon/base/exit.h"
#include "daemon/drain/drain_internal.h"
#include "daemon/drain/feed.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OOM_NS	      UINT64_C(5000000000) /* time between two looks at hr_oom_kills() */
#define SLEEP_MIN_NS  UINT64_C(1000000)
#define SLEEP_BUSY_NS UINT64_C(20000000) /* longest sleep after a sweep that took records */
/* Each ring adds this time to a sleep, because a check of a ring costs two cache misses. */
#define SLEEP_RING_NS UINT64_C(20000)
/* Longest sleep if a ring fills whose owner has no node page, and so cannot ring the doorbell. */
#define SLEEP_DEAF_NS UINT64_C(2000000)
#define SLEEP_IDLE_NS UINT64_C(100000000)
/* If no records come, a sleep takes this many times the CPU time of a sweep: 1/2000 of a core. */
#define REST_TIMES    2000u
#define SLEEP_REST_NS UINT64_C(2000000000)
/* Longest sleep with probes, because probes cannot ring the doorbell. */
#define REST_FEED_NS UINT64_C(300000000)
/*
 * If a sweep takes more slots than this, the next sweep follows soon. With many rings, the limit is
 * higher: each ring's owner rings the doorbell when the ring is half full.
 */
#define BUSY_SLOTS	1024u
#define BUSY_RING_SLOTS 32u

/* ---- requests -------------------------------------------------------------------------------- */

static struct hr_session *session_of(struct hr_drain *d, uint64_t proc)
{
	struct hr_session *s = d->sessions;

	while (s && s->proc != proc)
		s = s->next;
	return s;
}

/*
 * Passes a session to the feed of probe records. If no probes were loaded when the process
 * attached, adds the process to the probes now.
 */
static void follow(struct hr_drain *d, struct hr_session *s)
{
	struct hr_engine_proc p = {0};
	const void *at = NULL;

	while (!s->probed.image && (at = hr_engine_next_proc(d->c.engine, at, &p))) {
		if (p.proc != s->proc)
			continue;
		if (hr_probes_cover(d->c.probes, p.pid, p.covered ? &p.cover : NULL) == 0)
			s->probed.image = hr_probes_image(d->c.probes, p.pid);
		break;
	}
	hr_feed_session(d->feed, s);
}

static void add_probes(struct hr_drain *d, struct hr_probes *probes)
{
	if (d->feed || hr_feed_new(d, probes, &d->feed))
		return;
	d->c.probes = probes;
	for (struct hr_session *s = d->sessions; s; s = s->next)
		follow(d, s);
}

static void init_map(struct hr_drain *d, struct hr_session *s)
{
	hr_session_set_level(s, d->level);
	hr_session_set_short(s, hr_ns_ticks(&d->c.clock->line, HR_SHORT_NS));
}

static void serve(struct hr_drain *d, struct message *m)
{
	struct hr_session *s;

	switch (m->kind) {
	case NEW_SESSION:
		for (s = d->sessions; s && !m->session->later; s = s->next)
			m->session->later = s->dead;
		m->session->next = d->sessions;
		d->sessions = m->session;
		init_map(d, m->session);
		if (d->feed)
			follow(d, m->session);
		break;
	case NEW_MAP:
		s = session_of(d, m->proc);
		if (!s || hr_session_add_map(s, &m->map))
			hr_map_close(&m->map);
		else
			init_map(d, s);
		break;
	case ENDED:
		s = session_of(d, m->proc);
		if (s) {
			s->dead = true;
			memcpy(s->exit, m->exit, sizeof(s->exit));
		} else {
			hr__drain_end(d, m->proc, m->exit);
		}
		break;
	case PROBES:
		add_probes(d, m->probes);
		break;
	case LEVEL: /* after max_bytes was reached, the level cannot be trace */
		if (m->level != d->level && !(d->counters_only && m->level == HR_LEVEL_TRACE))
			hr__drain_set_level(d, m->level, false);
		break;
	}
	free(m);
}

static void take_inbox(struct hr_drain *d)
{
	struct message *m;

	pthread_mutex_lock(&d->lock);
	m = d->inbox;
	if (m) {
		d->inbox = NULL;
		d->inbox_last = &d->inbox;
	}
	pthread_mutex_unlock(&d->lock);
	if (m)
		hr__drain_catch_up(d); /* the engine needs their ATTACH entries first */
	if (m && hr_boot_ns() - d->last_tick_ns >= HR__TICK_NS)
		hr__drain_tick(d, hr_boot_ns()); /* an exact line, for what probes saw before */
	while (m) {
		struct message *next = m->next;

		serve(d, m);
		m = next;
	}
}

/*
 * Returns the share of input wait, also of a current one that takes much longer than usual, in
 * 1/1000 of the time since each process first waited. -1: no process has waited.
 */
static int input_wait(const struct hr_node_stats *s, uint64_t now_ns)
{
	const struct hr_engine_stats *e = &s->engine;
	uint64_t lived = e->waiters * now_ns, waited = e->waited_ns + s->hang.wait_ns, all;

	if (lived <= e->waiting_since_ns)
		return -1;
	all = lived - e->waiting_since_ns;
	return waited < all ? (int)(waited * 1000 / all) : 1000;
}

static void publish(struct hr_drain *d)
{
	pthread_mutex_lock(&d->lock);
	hr_engine_stats_get(d->c.engine, &d->stats.engine);
	hr_engine_hang(d->c.engine, &d->stats.hang);
	d->stats.input_wait = input_wait(&d->stats, hr_engine_now(d->c.engine));
	d->stats.counters_only = d->counters_only;
	d->stats.refused = d->lost_noted[HR_LOSS_LIMIT];
	d->stats.journal_in_memory = d->c.journal_in_memory;
	pthread_mutex_unlock(&d->lock);
}

static void drain_flush(struct hr_drain *d, uint64_t wanted)
{
	hr__drain_sweep_out(d);
	hr__drain_tick(d, hr_boot_ns());
	hr__drain_seal(d);
	publish(d);
	pthread_mutex_lock(&d->lock);
	d->flush_done = wanted;
	pthread_cond_broadcast(&d->served);
	pthread_mutex_unlock(&d->lock);
}

static void drain_show(struct hr_drain *d, struct live_request *live)
{
	live->r = hr__drain_live(d, live->in_flight_ns, &live->picture);
	pthread_mutex_lock(&d->lock);
	d->live = NULL;
	pthread_cond_broadcast(&d->served);
	pthread_mutex_unlock(&d->lock);
}

static void drain_stop(struct hr_drain *d, const struct hr_job_end *end)
{
	struct hr_entry_stop *in;
	struct hr_session *s;

	hr__drain_sweep_out(d);
	for (s = d->sessions; s; s = s->next) {
		hr_session_set_level(s, HR_LEVEL_OFF);
		hr__drain_leave_cells(d, s, hr_clock_ticks(d->c.clock));
	}
	hr__drain_tick(d, hr_boot_ns());
	in = hr__drain_begin(d, sizeof(*in));
	if (in) {
		in->now_ns = hr_boot_ns();
		memset(in->state, 0, sizeof(in->state));
		memcpy(in->state, end->state, strnlen(end->state, sizeof(in->state) - 1));
		in->cut_short = end->cut_short;
		hr__drain_commit(d, HR_ENTRY_STOP, sizeof(*in));
	}
	publish(d);
}

/* A process may end some time after the kernel has killed it, so an older number is kept, too. */
static void count_oom_kills(struct hr_drain *d)
{
	uint64_t now_ns = hr_boot_ns();

	if (now_ns - d->oom_ns < OOM_NS)
		return;
	d->oom_ns = now_ns;
	d->oom_kills[1] = d->oom_kills[0];
	d->oom_kills[0] = hr_oom_kills();
}

/* Lowers the level to counters when the stream has reached max_bytes. */
static void check_size(struct hr_drain *d)
{
	if (d->counters_only || !d->c.node->max_bytes ||
	    hr_appender_stored_bytes(d->c.appender) < d->c.node->max_bytes)
		return;
	d->counters_only = true;
	if (hr_engine_level(d->c.engine) == HR_LEVEL_TRACE)
		hr__drain_set_level(d, HR_LEVEL_COUNTERS, true);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static bool pressed(const struct hr_drain *d)
{
	for (const struct hr_session *s = d->sessions; s; s = s->next)
		for (uint32_t i = 0; i < hr_session_rings(s); i++)
			if (hr_ring_half_full(&s->rings[i]))
				return true;
	return false;
}

static bool requested(struct hr_drain *d)
{
	bool yes;

	pthread_mutex_lock(&d->lock);
	yes = d->inbox || d->flush_wanted > d->flush_done || d->end || d->live;
	pthread_mutex_unlock(&d->lock);
	return yes;
}

static uint64_t drain_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns how long to sleep if no records come, from the CPU time used since the last sleep. */
static uint64_t idle_ns(struct hr_drain *d)
{
	uint64_t most = d->feed ? REST_FEED_NS : SLEEP_REST_NS;
	uint64_t cpu_ns = hr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t ns = drain_least((cpu_ns - d->rested_cpu_ns) * REST_TIMES, most);

	d->rested_cpu_ns = cpu_ns;
	return ns > SLEEP_IDLE_NS ? ns : SLEEP_IDLE_NS;
}

static void drain_sleep(struct hr_drain *d, uint64_t found)
{
	uint32_t bell = __atomic_load_n(&d->c.page->bell, __ATOMIC_ACQUIRE);
	uint64_t busy_ns = d->deaf_full ? SLEEP_DEAF_NS : SLEEP_BUSY_NS + d->rings * SLEEP_RING_NS;
	struct timespec t = {0};

	if (found > BUSY_SLOTS + (uint64_t)d->rings * BUSY_RING_SLOTS)
		d->sleep_ns = SLEEP_MIN_NS;
	else if (found)
		d->sleep_ns = drain_least(d->sleep_ns * 3 / 2, drain_least(busy_ns, SLEEP_IDLE_NS));
	else
		d->sleep_ns = drain_least(d->sleep_ns * 2, idle_ns(d));
	/*
	 * The shim commits, then reads `sleeping`. So either the shim reads 1, or `pressed` finds
	 * the commit.
	 */
	__atomic_store_n(&d->c.page->sleeping, 1, __ATOMIC_SEQ_CST);
	if (!requested(d) && !pressed(d)) {
		t.tv_sec = (time_t)(d->sleep_ns / 1000000000);
		t.tv_nsec = (long)(d->sleep_ns % 1000000000);
		if (syscall(SYS_futex, &d->c.page->bell, FUTEX_WAIT, bell, &t, NULL, 0) != 0 &&
		    errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
			nanosleep(&t, NULL); /* a seccomp filter forbids the wait */
	}
	__atomic_store_n(&d->c.page->sleeping, 0, __ATOMIC_RELEASE);
}

static void ring_bell(struct hr_drain *d)
{
	__atomic_add_fetch(&d->c.page->bell, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &d->c.page->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *drain_run(void *arg)
{
	struct hr_drain *d = arg;

	for (;;) {
		const struct hr_job_end *end;
		struct live_request *live;
		uint64_t wanted, found;

		take_inbox(d);
		found = hr__drain_sweep(d);
		check_size(d);
		count_oom_kills(d);
		publish(d);
		pthread_mutex_lock(&d->lock);
		wanted = d->flush_wanted > d->flush_done ? d->flush_wanted : 0;
		end = d->end;
		live = d->live;
		pthread_mutex_unlock(&d->lock);
		if (wanted)
			drain_flush(d, wanted);
		if (live)
			drain_show(d, live);
		if (end) {
			take_inbox(d);
			drain_stop(d, end);
			return NULL;
		}
		drain_sleep(d, found);
	}
}

/* ---- functions that other threads call ------------------------------------------------------- */

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
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->served, NULL);
	if (config->probes && hr_feed_new(d, config->probes, &d->feed)) {
		hr_drain_free(d);
		return -ENOMEM;
	}
	d->oom_kills[0] = d->oom_kills[1] = hr_oom_kills();
	d->oom_ns = hr_boot_ns();
	publish(d);
	*ret = d;
	return 0;
}

int hr_drain_start(struct hr_drain *d)
{
	int r;

	hr__drain_tick(d, hr_boot_ns()); /* the line, before the first process attaches */
	r = pthread_create(&d->thread, NULL, drain_run, d);
	d->running = r == 0;
	return -r;
}

/*
 * Sends messages, which the drain thread gets together. The thread is not woken for a new session
 * with a node page: its client rings the doorbell when a ring fills. It is also not woken for the
 * end of a session by exec, because another session has replaced that one.
 */
static void send(struct hr_drain *d, struct message *messages, size_t n)
{
	bool wake = false;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < n; i++) {
		struct message *m = malloc(sizeof(*m));

		/* Without memory, the rings stay unread: the client counts lost records. */
		if (!m) {
			hr_session_free(messages[i].session);
			hr_map_close(&messages[i].map);
			continue;
		}
		*m = messages[i];
		*d->inbox_last = m;
		d->inbox_last = &m->next;
		wake |= (m->kind == ENDED && strcmp(m->exit, "exec") != 0) || m->kind == LEVEL ||
			(m->session && m->session->deaf);
	}
	pthread_mutex_unlock(&d->lock);
	if (wake)
		ring_bell(d);
}

static struct message end_message(uint64_t proc, const char *exit)
{
	struct message m = {.kind = ENDED, .proc = proc};

	memcpy(m.exit, exit, strnlen(exit, sizeof(m.exit) - 1));
	return m;
}

void hr_drain_add_session(struct hr_drain *d, struct hr_session *s, const struct hr_drain_end *ends,
			  size_t n)
{
	struct message m[HR_DRAIN_ENDS + 1];

	for (size_t i = 0; i < n; i++)
		m[i] = end_message(ends[i].proc, ends[i].exit);
	m[n] = (struct message){.kind = NEW_SESSION, .session = s};
	send(d, m, n + 1);
}

void hr_drain_add_map(struct hr_drain *d, uint64_t proc, const struct hr_map *map)
{
	send(d, &(struct message){.kind = NEW_MAP, .proc = proc, .map = *map}, 1);
}

void hr_drain_ended(struct hr_drain *d, uint64_t proc, const char *exit)
{
	struct message m = end_message(proc, exit);

	send(d, &m, 1);
}

void hr_drain_probes(struct hr_drain *d, struct hr_probes *probes)
{
	send(d, &(struct message){.kind = PROBES, .probes = probes}, 1);
}

void hr_drain_set_level(struct hr_drain *d, uint32_t level)
{
	send(d, &(struct message){.kind = LEVEL, .level = level}, 1);
}

void hr_drain_lose(struct hr_drain *d, enum hr_loss_reason reason, uint64_t n)
{
	__atomic_add_fetch(&d->lost[reason], n, __ATOMIC_RELAXED);
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

int hr_drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret)
{
	struct live_request live = {.in_flight_ns = in_flight_ns};

	if (!d->running)
		return -ESHUTDOWN;
	pthread_mutex_lock(&d->lock);
	d->live = &live;
	pthread_mutex_unlock(&d->lock);
	ring_bell(d);
	pthread_mutex_lock(&d->lock);
	while (d->live)
		pthread_cond_wait(&d->served, &d->lock);
	pthread_mutex_unlock(&d->lock);
	*ret = live.picture;
	return live.r;
}

void hr_drain_stop(struct hr_drain *d, const struct hr_job_end *end)
{
	if (!d->running)
		return;
	pthread_mutex_lock(&d->lock);
	d->end = end;
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
	hr_feed_free(d->feed);
	pthread_cond_destroy(&d->served);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
