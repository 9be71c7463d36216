/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_asked.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/uplink/uplink.h"

#define PACE_MS 1000u

void hr_private_pace(struct hr_private_pace *p, const struct hr_node_stats *now, uint64_t now_ms)
{
	uint64_t ms = now_ms - p->at_ms;

	if (p->at_ms != 0 && ms < PACE_MS)
		return;
	if (p->at_ms != 0) {
		p->events_per_s = (now->events - p->events) * 1000 / ms;
		p->bytes_per_s = (now->bytes_moved - p->bytes) * 1000 / ms;
	}
	p->at_ms = now_ms;
	p->events = now->events;
	p->bytes = now->bytes_moved;
}

static void add_counts(struct hr_message *m, const struct hr_private_asked *a)
{
	struct hr_node_stats s;

	hr_node_stats(a->node, &s);
	hr_message_add_int(m, "processes_total", s.sessions_total);
	hr_message_add_int(m, "events", (int64_t)s.events);
	hr_message_add_int(m, "events_per_s", (int64_t)a->pace.events_per_s);
	hr_message_add_int(m, "bytes_moved", (int64_t)s.bytes_moved);
	hr_message_add_int(m, "bytes_per_s", (int64_t)a->pace.bytes_per_s);
	hr_message_add_int(m, "lost", (int64_t)(s.lost + s.torn));
	hr_message_add_int(m, "refused", (int64_t)s.refused);
	hr_message_add_int(m, "store_error", s.store_error);
	hr_message_add_int(m, "stored_bytes", (int64_t)s.stored_bytes);
	hr_message_add_int(m, "input_wait", s.input_wait);
	hr_message_add_int(m, "steps", (int64_t)s.steps);
	hr_message_add_int(m, "kernel_ops", (int64_t)s.kernel_ops);
	hr_message_add_int(m, "kernel_added", (int64_t)s.kernel_added);
	hr_message_add_int(m, "kernel_lost", (int64_t)s.kernel_lost);
}

static void add_uplink(struct hr_message *m, const struct hr_private_asked *a)
{
	struct hr_uplink_stats u = {0};

	if (a->uplink == NULL)
		return;
	hr_private_uplink_stats(a->uplink, &u);
	hr_message_add(m, "collectors", a->config->collectors);
	hr_message_add(m, "collector", u.collector);
	hr_message_add_int(m, "connected", u.connected);
	hr_message_add_int(m, "unsent_frames", (int64_t)u.frames);
	hr_message_add_int(m, "unsent_ms", (int64_t)(u.oldest_ns / 1000000));
}

static void answer_status(const struct hr_private_asked *a, int fd)
{
	const struct hr_node_config *config = &a->config->node;
	struct hr_message *m = malloc(sizeof(*m));

	if (!m)
		return;
	hr_message_init(m, "job");
	hr_message_add(m, "id", config->id.job);
	hr_message_add_int(m, "attempt", config->id.attempt);
	hr_message_add_int(m, "uid", config->uid);
	hr_message_add(m, "name", config->job_name ? config->job_name : "");
	hr_message_add(m, "state", "running");
	hr_message_add(m, "store", config->store);
	hr_message_add_int(m, "pid", getpid());
	hr_message_add_int(m, "level", hr_node_level(a->node));
	hr_message_add_int(m, "processes", (int64_t)hr_node_attached(a->node, NULL, 0));
	hr_message_add_int(m, "probes", hr_node_probes(a->node));
	if (hr_node_probes_error(a->node))
		hr_message_add(m, "no_probes", hr_node_probes_error(a->node));
	add_counts(m, a);
	add_uplink(m, a);
	hr_control_send(fd, m);
	hr_message_init(m, "over");
	hr_control_send(fd, m);
	free(m);
}

bool hr_private_asked(struct hr_private_asked *a, const struct hr_message *m, int fd)
{
	int own;

	if (hr_message_is(m, "status")) {
		answer_status(a, fd);
		return true;
	}
	if (!hr_message_is(m, "live"))
		return false;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own >= 0)
		hr_live_link_take(&a->live, a->node, m, own);
	return true;
}
