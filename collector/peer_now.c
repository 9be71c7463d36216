/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs do now: takes Now from nodes, and answers Look (fleet.h). */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "collector/peers_internal.h"
#include "common/fnv.h"
#include "common/map64.h"
#include "common/now.h"
#include "net/wire.h"
#include "proto/now.h"

void hr__peer_now(struct hr__peer *p, const Headrace__Now *now)
{
	struct hr__chan *chan = hr__peer_chan(p, now->channel);

	if (!chan || !chan->live || chan->opening)
		return;
	if (hr_who_own_jobs(&p->who) && now->uid != p->who.uid) {
		hr__peer_complain(p, "now",
				  "user %u states that a job of user %u does I/O: ignored",
				  p->who.uid, now->uid);
		return;
	}
	if (hr_fleet_take(chan->live, now, uv_now(p->peers->loop)) == -EINVAL)
		hr__peer_complain(p, "now", "an interval of %llu ns: ignored",
				  (unsigned long long)now->interval_ns);
}

int hr_peers_fleet(const struct hr_peers *p, size_t max_jobs, size_t max_stuck,
		   struct hr_arena *memory, Headrace__Fleet *ret)
{
	const struct hr_fleet_view view = {
	    .all = true, .max_jobs = max_jobs, .max_stuck = max_stuck};
	const Headrace__Look all = HEADRACE__LOOK__INIT;

	return hr_fleet_look(&p->fleet, &all, &view, uv_now(p->loop), memory, ret);
}

/* A node has a connection for each job that it records. */
static void count_nodes(const struct hr_peers *peers, Headrace__Fleet *m)
{
	struct hr_map64 names = {0};

	for (const struct hr__peer *p = peers->first; p; p = p->next) {
		m->streams += (uint32_t)p->n_chans;
		if (p->n_chans > 0)
			(void)hr_map64_set(&names, hr_fnv(HR_FNV_BASIS, p->node, strlen(p->node)),
					   0);
	}
	m->nodes = names.used;
	hr_map64_done(&names);
}

/* Sends the answer with at most `max_jobs` jobs. -E2BIG: it is too large for a message. */
static int answer(struct hr__peer *p, const Headrace__Look *look, size_t max_jobs)
{
	const struct hr_fleet_view view = {.all = p->who.operator_,
					   .uid = p->who.uid,
					   .max_jobs = max_jobs,
					   .max_stuck = HR_FLEET_STUCK};
	Headrace__Fleet fleet;
	struct hr_arena memory = {0};
	int r =
	    hr_fleet_look(&p->peers->fleet, look, &view, uv_now(p->peers->loop), &memory, &fleet);

	if (r == 0) {
		fleet.software = "headrace-collector " HEADRACE_VERSION;
		fleet.real_ns = hr_now_ns(CLOCK_REALTIME);
		if (view.all)
			count_nodes(p->peers, &fleet);
		r = hr_conn_send_now(p->conn, HR_WIRE(FLEET, fleet, &fleet));
	}
	hr_arena_free(&memory);
	return r;
}

void hr__peer_look(struct hr__peer *p, const Headrace__Look *look)
{
	size_t jobs = HR_FLEET_JOBS;
	int r;

	p->asks = true;
	p->active_ms = uv_now(p->peers->loop);
	p->active_ping = p->ping_id;
	if (!p->who.user && !p->who.operator_) {
		hr__peer_refuse(p, "identity", HR_WHO_UNKNOWN);
		return;
	}
	do
		r = answer(p, look, jobs);
	while (r == -E2BIG && (jobs /= 2) > 0);
	if (r == -EINVAL)
		hr__peer_refuse(p, "malformed",
				"Look.by must be ops, metadata, bytes, waiting or stuck");
}
