/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/runs.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/control/private.h"

#define ANSWER_MS 3000

struct asking {
	hr_run_answer *answer;
	void *arg;
	const char *socket;
};

static void runs_take(void *arg, Headrace__Control *m)
{
	struct asking *a = arg;

	if (m->kind_case == HR_CONTROL(JOB_STATUS))
		a->answer(a->arg, a->socket, m);
}

/* One that was killed leaves its socket, and nobody answers there. */
static void runs_ask(void *arg, const char *control)
{
	struct asking *a = arg;
	int fd = -1;

	if (hr_control_connect(control, &fd) < 0)
		return;
	a->socket = control;
	hr_control_ask(fd, ANSWER_MS, HR_CONTROL(GET_STATUS), NULL, runs_take, a, NULL);
	close(fd);
}

void hr_runs_ask(hr_run_answer *answer, void *arg)
{
	struct asking *a = calloc(1, sizeof(*a));

	if (!a)
		return;
	a->answer = answer;
	a->arg = arg;
	hr_private_each(runs_ask, a);
	free(a);
}
