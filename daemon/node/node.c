/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/node_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/spool/appender.h"
#include "daemon/attach/attach.h"
#include "daemon/drain/drain.h"
#include "daemon/engine/engine.h"
#include "daemon/node/kept_maps.h"
#include "daemon/engine/live.h"
#include "common/ranks.h"
#include "common/text.h"
#include "daemon/spool/spool.h"

#define SESSIONS_MOST 65536u

/* ---- sessions from before a restart ---------------------------------------------------------- */

static void node_take_over(struct hr_node *n, const struct hr_engine_proc *p,
			   struct hr_inherited *list, size_t count)
{
	struct hr_session *s = NULL;
	struct hr_map map;

	if (hr_session_new(p->proc, p->token, p->pid, &s))
		return;
	s->deaf = !n->page.kept;
	s->asleep = p->deselected;
	while (s->n_maps < HR_SESSION_MAPS && hr_kept_map(list, count, p->proc, s->n_maps, &map))
		hr_session_add_map(s, &map);
	if (s->n_maps == 0) { /* the rings are lost, so the session ends */
		hr_session_free(s);
		if (p->came) /* otherwise, hr_drain_ended counts the process as unattached */
			hr_drain_lose(n->drain, HR_LOSS_RESTART, 1);
		hr_drain_ended(n->drain, p->proc, "");
		return;
	}
	for (uint32_t i = 0; i < hr_session_rings(s); i++)
		s->rings[i].tail =
		    hr_engine_ring_next(n->engine, p->proc, i / HR_MAP_RINGS, i % HR_MAP_RINGS);
	if (n->prober.probes &&
	    !hr_probes_cover(n->prober.probes, p->pid, p->covered ? &p->cover : NULL))
		s->probed.image = hr_probes_image(n->prober.probes, p->pid);
	/* The drain thread has not started, so `s` stays valid after this call. */
	hr_drain_add_session(n->drain, s, NULL, 0);
	/* If the process has ended, the drain thread reads the rings and ends the session. */
	hr_attach_adopt(n->attach, s, p->start_time);
}

static void take_over_all(struct hr_node *n, struct hr_inherited *list, size_t count)
{
	struct hr_engine_proc p;
	const void *at = NULL;

	while ((at = hr_engine_next_proc(n->engine, at, &p)))
		node_take_over(n, &p, list, count);
	hr_drain_lose(n->drain, HR_LOSS_RESTART, hr_engine_left_out(n->engine));
	hr_kept_maps_drop(list, count);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int make_threads(struct hr_node *n, bool continued)
{
	struct hr_drain_config dc = {
	    .node = &n->c,
	    .engine = n->engine,
	    .journal = n->journal,
	    .appender = n->appender,
	    .clock = &n->clock,
	    .page = n->page.at,
	    .journal_in_memory = n->journal_folder < 0,
	    .continued = continued,
	    .probes = n->prober.probes,
	    .last_proc = &n->last_proc,
	};
	struct hr_attach_config ac = {
	    .node = &n->c,
	    .last_proc = &n->last_proc,
	    .probes = n->prober.probes,
	    .takeover = n->page.kept && n->c.handoff_fd > 0,
	    .last = hr_engine_last_hello(n->engine),
	    .journal = n->journal,
	    .clock = &n->clock,
	    .page_fd = n->page.shared_fd,
	    .page = n->c.handoff_fd > 0 ? NULL : n->page.at,
	};
	int r;

	n->last_proc = hr_engine_last_proc(n->engine);
	r = hr_drain_new(&dc, &n->drain);
	if (r)
		return r;
	ac.drain = n->drain;
	return hr_attach_new(&ac, &n->attach);
}

static void use_probes(void *arg, struct hr_probes *probes)
{
	struct hr_node *n = arg;

	hr_attach_probes(n->attach, probes);
	hr_drain_probes(n->drain, probes); /* includes the processes that attached before */
}

int hr_node_new(const struct hr_node_config *config, struct hr_node **ret, char **ret_error)
{
	const char *failed = "cannot write to the store", *name = config->store;
	struct hr_node *n = calloc(1, sizeof(*n));
	struct hr_inherited *inherited = NULL;
	size_t n_inherited = 0;
	bool found = false;
	int r;

	*ret_error = NULL;
	if (!n)
		return -ENOMEM;
	n->c = *config;
	if (!n->c.max_sessions)
		n->c.max_sessions = SESSIONS_MOST;
	if (!n->c.max_ring_bytes)
		n->c.max_ring_bytes =
		    (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 8;
	n->journal_folder = -1;
	hr_page_init(&n->page);
	hr_prober_init(&n->prober);
	hr_clock_init(&n->clock);
	n->instance = hr_boot_ns();
	if ((config->ranks && !hr_ranks_valid(config->ranks)) ||
	    (config->local_ranks && !hr_ranks_valid(config->local_ranks))) {
		hr_node_free(n);
		return hr_text_fail(-EINVAL, ret_error,
				    "ranks must be a list, for example 0-47,64: %s",
				    strerrordesc_np(EINVAL));
	}
	r = hr__node_open_stream(n, &found);
	if (!r) {
		failed = "cannot begin or continue the stream in";
		if (hr_fdstore_inherit(&inherited, &n_inherited))
			n_inherited = 0;
		hr_clock_settle(&n->clock);
		r = hr__node_start_stream(n, &found, inherited, n_inherited);
	}
	if (!r)
		r = hr_page_open(&n->page, inherited, n_inherited);
	if (!r) {
		failed = "cannot listen at";
		name = config->shim_socket;
		if (n->c.probes && !n->c.probes_later)
			hr_prober_load(&n->prober);
		r = make_threads(n, found);
	}
	if (!r)
		take_over_all(n, inherited, n_inherited);
	if (!r && n->c.probes && n->c.probes_later)
		hr_prober_load_async(&n->prober, use_probes, n);
	hr_fdstore_inherited_free(inherited, n_inherited);
	if (r) {
		hr_node_free(n);
		return hr_text_fail(r, ret_error, "%s %s: %s", failed, name, strerrordesc_np(-r));
	}
	*ret = n;
	return 0;
}

int hr_node_start(struct hr_node *n)
{
	int r;

	hr_clock_settle(&n->clock); /* again: to load probes took time, and the line drifted */
	r = hr_drain_start(n->drain);
	return r ? r : hr_attach_start(n->attach);
}

void hr_node_stats(struct hr_node *n, struct hr_node_stats *ret)
{
	if (n->stopped)
		*ret = n->last;
	else
		hr_drain_stats(n->drain, ret);
}

void hr_node_use(struct hr_node *n, struct hr_attach_use *ret)
{
	hr_attach_use(n->attach, ret);
}

size_t hr_node_attached(struct hr_node *n, pid_t *pids, size_t max)
{
	return hr_attach_pids(n->attach, pids, max);
}

void hr_node_root(struct hr_node *n, pid_t pid, bool quiet)
{
	(void)hr_prober_root(&n->prober,
			     &(const struct hr_prober_root){.pid = pid, .quiet = quiet});
}

int hr_node_cgroup(struct hr_node *n, uint64_t id)
{
	return hr_prober_root(&n->prober, &(const struct hr_prober_root){.cgroup = id});
}

bool hr_node_probes(struct hr_node *n)
{
	return hr_prober_ready(&n->prober);
}

const char *hr_node_probes_error(const struct hr_node *n)
{
	return hr_prober_error(&n->prober);
}

const char *hr_node_probes_lack(struct hr_node *n)
{
	return hr_node_probes(n) ? hr_probes_lacks(n->prober.probes) : NULL;
}

void hr_node_set_level(struct hr_node *n, uint32_t level)
{
	hr_drain_set_level(n->drain, level);
}

void hr_node_refused(struct hr_node *n, uint64_t processes)
{
	hr_drain_lose(n->drain, HR_LOSS_LIMIT, processes);
}

uint32_t hr_node_level(struct hr_node *n)
{
	return hr_drain_level(n->drain);
}

int hr_node_picture(struct hr_node *n, uint64_t in_flight_ns, struct hr_live_picture **ret)
{
	struct hr_live_picture *p = NULL;
	int r = n->stopped ? -ESHUTDOWN : hr_drain_live(n->drain, in_flight_ns, &p);

	if (r)
		return r;
	p->m.job = (char *)(uintptr_t)n->c.id.job;
	p->m.attempt = n->c.id.attempt;
	p->m.node = (char *)(uintptr_t)n->c.id.node;
	p->m.uid = n->c.uid;
	p->m.instance = n->instance;
	*ret = p;
	return 0;
}

int hr_node_live(struct hr_node *n, uint64_t in_flight_ns, uint8_t **ret, size_t *ret_bytes)
{
	struct hr_live_picture *p = NULL;
	int r = hr_node_picture(n, in_flight_ns, &p);

	if (r)
		return r;
	r = hr_live_pack(p, ret, ret_bytes);
	hr_live_free(p);
	return r;
}

int hr_node_flush(struct hr_node *n)
{
	hr_drain_flush(n->drain);
	return hr_appender_wait(n->appender);
}

void hr_node_pause(struct hr_node *n)
{
	hr_attach_stop(n->attach);
	hr_node_flush(n);
}

static int close_writer(struct hr_node *n)
{
	uint64_t mark = hr_writer_mark(n->writer);
	int r = hr_writer_close(n->writer);

	n->writer = NULL;
	if (n->c.spool) { /* `mark` includes the Loss frame that a full disk requires */
		hr_spool_appended(n->c.spool, mark);
		hr_spool_closed(n->c.spool);
	}
	return r;
}

/* Ends the stream. Call it when the appender has all frames and no thread uses the journal. */
static int end_stream(struct hr_node *n)
{
	int r = hr_appender_stop(n->appender), closed;
	struct hr_given_up given_up;

	if (hr__node_disk_full(r)) {
		/* Removing the journal may free the space that the kept frames need. */
		hr__node_drop_journal(n);
		hr_appender_settle(n->appender, &given_up);
		n->last.given_up = given_up.count;
		n->last.given_up_bytes = given_up.bytes;
		n->last.unreported = !given_up.reported;
		r = given_up.count || !given_up.reported ? r : 0;
	}
	hr_appender_free(n->appender);
	n->appender = NULL;
	n->last.stored_bytes = hr_writer_bytes(n->writer);
	closed = close_writer(n);
	/* A full disk without room for the footer is no error: the segment stays readable. */
	return r || hr__node_disk_full(closed) ? r : closed;
}

int hr_node_stop(struct hr_node *n, const struct hr_job_end *end)
{
	int r;

	if (n->stopped)
		return 0;
	hr_prober_wait(&n->prober);
	hr_attach_stop(n->attach);
	hr_drain_stop(n->drain, end);
	hr_appender_wait(n->appender);
	hr_drain_stats(n->drain, &n->last);
	n->stopped = true;
	r = end_stream(n);
	hr_page_forget();
	if (r && n->journal) /* the journal stays, so that hr_store_recover can try again */
		return r;
	hr__node_drop_journal(n);
	return r;
}

void hr_node_free(struct hr_node *n)
{
	if (!n)
		return;
	hr_prober_wait(&n->prober);
	if (n->attach)
		hr_attach_stop(n->attach);
	hr_attach_free(n->attach);
	hr_drain_free(n->drain);
	hr__node_free_engine(n);
	hr_journal_close(n->journal);
	hr_writer_close(n->writer);
	hr_page_done(&n->page);
	hr__node_leave_folder(n, false);
	hr_prober_done(&n->prober);
	free(n);
}
