/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/runs.h"

#include <unistd.h>

#include "daemon/control/private.h"

#define ANSWER_MS 3000

struct runs_request {
	hr_run_answer *answer;
	void *arg;
	const char *socket;
};

static void runs_answer(void *arg, Headrace__Control *m)
{
	const struct runs_request *q = arg;

	if (m->kind_case == HR_CONTROL(JOB_STATUS))
		q->answer(q->arg, q->socket, m);
}

/* Ignores a socket that a killed headraced has left. */
static void request_status(void *arg, const char *control)
{
	struct runs_request *q = arg;
	int fd = -1;

	if (hr_control_connect(control, &fd) < 0)
		return;
	q->socket = control;
	hr_control_request(fd, ANSWER_MS, HR_CONTROL(GET_STATUS), NULL, runs_answer, q, NULL);
	close(fd);
}

void hr_runs_request_status(hr_run_answer *answer, void *arg)
{
	struct runs_request q = {answer, arg, NULL};

	hr_private_each(request_status, &q);
}
