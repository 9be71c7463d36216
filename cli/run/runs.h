/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - the `headrace run`s of this user that go on here
 *
 * Purpose   Each run has a private daemon, which answers for its job; the service of the node has no record of them.
 * Owner     The caller. Threads: one.
 */
#ifndef HEADRACE_CLI_RUN_RUNS_H
#define HEADRACE_CLI_RUN_RUNS_H

#include "daemon/control/control.h"

/* One daemon's `job_status`; it may keep the body (hr_control_keep). */
typedef void hr_run_answer(void *arg, const char *socket, Headrace__Control *m);

/* Asks each for its status; waits a few seconds for each that does not answer. One may be asked twice (hr_private_each). */
void hr_runs_ask(hr_run_answer *answer, void *arg);

#endif
