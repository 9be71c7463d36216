/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - the active `headrace run`s of this user on this machine
 *
 * Each run has a private headraced, which answers for its job. The node service does not have
 * these jobs.
 */
#ifndef HEADRACE_CLI_RUN_RUNS_H
#define HEADRACE_CLI_RUN_RUNS_H

#include "daemon/control/control.h"

/* Called with the `job_status` of a run; may keep the body (hr_control_keep). */
typedef void hr_run_answer(void *arg, const char *socket, Headrace__Control *m);

/*
 * Requests the status of each run, and waits a few seconds for a run that does not answer. A run
 * may answer twice (hr_private_each).
 */
void hr_runs_request_status(hr_run_answer *answer, void *arg);

#endif
