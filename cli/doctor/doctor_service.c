/* SPDX-License-Identifier: Apache-2.0 */
/* Is there a headraced for all jobs of this node, and does it do what it is there for? */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/service/service_link.h"

#define ANSWER_MS 2000u

struct status {
	char node[256];
	int64_t jobs;
};

static void doctor_service_take(void *arg, const struct hr_message *m)
{
	struct status *s = arg;

	if (!hr_message_is(m, "status"))
		return;
	hr_message_get(m, "node", s->node, sizeof(s->node));
	s->jobs = hr_message_get_int(m, "jobs", 0);
}

static int doctor_service_ask(const char *socket, struct status *ret)
{
	static struct hr_message m;
	int fd = -1, r = hr_control_connect_within(socket, ANSWER_MS, &fd);

	if (r < 0)
		return r;
	hr_message_init(&m, "status");
	r = hr_control_ask(fd, ANSWER_MS, &m, doctor_service_take, ret);
	close(fd);
	return r;
}

void hr_check_service(const struct hr_doctor *d, struct hr_check *c)
{
	const char *socket = hr_service_socket(NULL);
	struct status status = {.node = "?"};
	int r = doctor_service_ask(socket, &status);

	(void)d;
	if (r == -ENOENT) {
		hr_check_set(c, HR_HEALTH_OK, NULL, "none on this node: `headrace run` needs none");
	} else if (r == -ECONNREFUSED) {
		hr_check_set(c, HR_HEALTH_WARN, "systemctl start headraced",
			     "the service of this node is not running (%s)", socket);
	} else if (r < 0) {
		hr_check_set(c, HR_HEALTH_WARN, "journalctl -u headraced",
			     "the service of this node does not answer at %s: %s", socket,
			     strerrordesc_np(-r));
	} else {
		hr_check_set(c, HR_HEALTH_OK, NULL,
			     "node %s, %lld jobs now: `headrace status` says how they are",
			     status.node, (long long)status.jobs);
	}
}
