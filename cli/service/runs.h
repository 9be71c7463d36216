/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - the active `headrace run`s of this user on this machine
 *
 * The private headraced of each run answers. The node service has no information on these jobs.
 */
#ifndef HEADRACE_CLI_SERVICE_RUNS_H
#define HEADRACE_CLI_SERVICE_RUNS_H

#include <stdbool.h>

#include "daemon/control/control.h"

#define HR_RUNS_ANSWER_MS 3000u /* how long a command waits for the answer of a headraced */

/* Called with the `job_status` of a run. It can keep the body (hr_control_keep). */
typedef void hr_run_answer(void *arg, const char *socket, Headrace__Control *m);

/*
 * Requests the status of each run, with a time limit. A run may answer twice (hr_private_each).
 * False: a headraced did not answer in time.
 */
bool hr_runs_request_status(hr_run_answer *answer, void *arg);

/* Reports that a running job may be missing in what a command shows. */
void hr_runs_report_missing(void);

#endif
