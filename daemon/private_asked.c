/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private_asked.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void answer_status(const struct hr_private_config *config, struct hr_node *n, int fd)
{
	struct hr_message *m = malloc(sizeof(*m));
	struct hr_node_stats s;

	if (!m)
		return;
	hr_node_stats(n, &s);
	hr_message_init(m, "job");
	hr_message_add(m, "id", config->node.id.job);
	hr_message_add_int(m, "attempt", config->node.id.attempt);
	hr_message_add_int(m, "uid", config->node.uid);
	hr_message_add(m, "name", config->node.job_name ? config->node.job_name : "");
	hr_message_add(m, "state", "running");
	hr_message_add(m, "store", config->node.store);
	hr_message_add_int(m, "pid", getpid());
	hr_message_add_int(m, "level", hr_node_level(n));
	hr_message_add_int(m, "processes", (int64_t)hr_node_attached(n, NULL, 0));
	hr_message_add_int(m, "processes_total", s.sessions_total);
	hr_message_add_int(m, "events", (int64_t)s.events);
	hr_message_add_int(m, "bytes_moved", (int64_t)s.bytes_moved);
	hr_message_add_int(m, "lost", (int64_t)(s.lost + s.torn));
	hr_message_add_int(m, "input_wait", s.input_wait);
	hr_message_add_int(m, "steps", (int64_t)s.steps);
	hr_control_send(fd, m);
	hr_message_init(m, "over");
	hr_control_send(fd, m);
	free(m);
}

bool hr_private_asked(struct hr_live_link *live, const struct hr_private_config *config,
		      struct hr_node *n, const struct hr_message *m, int fd)
{
	int own;

	if (hr_message_is(m, "status")) {
		answer_status(config, n, fd);
		return true;
	}
	if (!hr_message_is(m, "live"))
		return false;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own >= 0)
		hr_live_link_take(live, n, m, own);
	return true;
}
