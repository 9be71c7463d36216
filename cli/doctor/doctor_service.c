/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a headraced serves all jobs of this node, and can record them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/service/service_link.h"

#define ANSWER_MS 2000u

struct service_answer {
	char node[256];
	unsigned jobs;
};

static void doctor_service_take(void *arg, Headrace__Control *m)
{
	struct service_answer *s = arg;

	if (m->kind_case != HR_CONTROL(NODE_STATUS))
		return;
	snprintf(s->node, sizeof(s->node), "%s", m->node_status->node);
	s->jobs = m->node_status->jobs;
}

static int doctor_service_ask(const char *socket, struct service_answer *ret)
{
	int fd = -1, r = hr_control_connect_within(socket, ANSWER_MS, &fd);

	if (r < 0)
		return r;
	r = hr_control_request(fd, ANSWER_MS, HR_CONTROL(GET_STATUS), NULL, doctor_service_take,
			       ret, NULL);
	close(fd);
	return r;
}

void hr_check_service(const struct hr_doctor *d, struct hr_check *c)
{
	const char *socket = hr_service_socket(NULL);
	struct service_answer status = {.node = "?"};
	int r = doctor_service_ask(socket, &status);

	(void)d;
	if (r == -ENOENT) {
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "no service on this node: `headrace run` does not need it");
	} else if (r == -ECONNREFUSED) {
		hr_check_set(c, HR_HEALTH_WARN, "systemctl start headraced",
			     "the headraced service is not running (%s)", socket);
	} else if (r < 0) {
		hr_check_set(c, HR_HEALTH_WARN, "journalctl -u headraced",
			     "the headraced service does not answer at %s: %s", socket,
			     strerrordesc_np(-r));
	} else {
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "node %s, %u jobs now: `headrace status` shows them", status.node,
			     status.jobs);
	}
}
