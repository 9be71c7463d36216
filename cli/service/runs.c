/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service/runs.h"

#include <errno.h>

#include "cli/cli.h"
#include "cli/service/service_link.h"
#include "daemon/control/private.h"

struct runs_request {
	hr_run_answer *answer;
	void *arg;
	const char *socket;
	bool timed_out;
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

	q->socket = control;
	q->timed_out |= hr_service_status(control, HR_RUNS_ANSWER_MS, runs_answer, q) == -ETIMEDOUT;
}

bool hr_runs_request_status(hr_run_answer *answer, void *arg)
{
	struct runs_request q = {answer, arg, NULL, false};

	hr_private_each(request_status, &q);
	return !q.timed_out;
}

void hr_runs_report_missing(void)
{
	hr_report("a running job of yours may be missing here: a headraced did not answer within "
		  "%u s" HR_HINT "the machine is busy, or the process is stopped; ask again",
		  HR_RUNS_ANSWER_MS / 1000);
}
