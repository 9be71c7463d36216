/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_requests.h"

#include <fcntl.h>

static void answer_status(struct hr_job_status *s, int fd)
{
	Headrace__JobStatus status = HEADRACE__JOB_STATUS__INIT;
	struct hr_node_stats stats;

	hr_node_stats(s->node, &stats);
	hr_job_status_fill(s, &stats, &status);
	status.state = (char[]){"running"};
	status.store = hr_control_text(s->config->node.store);
	hr_control_send(fd, HR_CONTROL(JOB_STATUS), &status.base);
	hr_control_send(fd, HR_CONTROL(DONE), NULL);
}

bool hr_private_answer(struct hr_job_status *s, struct hr_live_link *live,
		       const Headrace__Control *m, int fd)
{
	int copy;

	if (m->kind_case == HR_CONTROL(GET_STATUS)) {
		answer_status(s, fd);
		return true;
	}
	if (m->kind_case != HR_CONTROL(GET_LIVE))
		return false;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		hr_live_link_take(live, s->node, m->get_live, copy);
	return true;
}
