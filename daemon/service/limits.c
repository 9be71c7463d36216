/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits for all jobs of a user, and for all jobs of the node. A recording process reports how many
 * sessions it has, and how many connections it has served. Connections that were passed to it since
 * then count as sessions, so no limit is ever exceeded. When a process has just ended near a limit,
 * the next one may be refused.
 */
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/base/passfd.h"
#include "daemon/service/internal.h"

#define MAP_BYTES hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2)

struct use {
	uint64_t sessions, ring_bytes;
};

static void limits_add_use(struct use *u, const struct job *job)
{
	uint64_t coming = job->passed > job->status->connections_served
			      ? job->passed - job->status->connections_served
			      : 0;

	u->sessions += job->status->processes + coming;
	u->ring_bytes += job->status->ring_bytes + coming * MAP_BYTES;
}

static bool limit_exceeded(const struct use *u, uint64_t sessions, uint64_t ring_bytes,
			   bool new_session, const char *whose, char ret_why[WHY_BYTES])
{
	if (new_session && u->sessions >= sessions)
		snprintf(ret_why, WHY_BYTES, "max_sessions_per_%s (%llu) is reached", whose,
			 (unsigned long long)sessions);
	else if (u->ring_bytes + MAP_BYTES > ring_bytes)
		snprintf(ret_why, WHY_BYTES, "max_ring_memory_per_%s (%s) is reached", whose,
			 hr_text_size(ring_bytes).s);
	else
		return false;
	return true;
}

bool hr__service_limit_reached(const struct job *job, bool new_session, char ret_why[WHY_BYTES])
{
	const struct hr_service_config *c = job->service->c;
	struct use user = {0}, node = {0};

	for (const struct job *other = job->service->jobs; other; other = other->next) {
		limits_add_use(&node, other);
		if (other->uid == job->uid)
			limits_add_use(&user, other);
	}
	return limit_exceeded(&user, c->max_user_sessions, c->max_user_ring_bytes, new_session,
			      "user", ret_why) ||
	       limit_exceeded(&node, c->max_node_sessions, c->max_node_ring_bytes, new_session,
			      "node", ret_why);
}

void hr__service_limit_start(struct job *job, int handoff)
{
	int bytes = 0;

	if (ioctl(handoff, FIONREAD, &bytes) < 0)
		bytes = 0;
	job->passed = (uint64_t)bytes / HR_PASSFD_BYTES;
	job->status->connections_served = 0;
}
