/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - the `headrace run`s of this user that go on here
 *
 * Purpose   Where there is no service, their daemons are whom to ask (daemon/private/private_asked.h); where there is one, it does not know them.
 * Owner     The caller. Threads: one.
 */
#ifndef HEADRACE_CLI_RUN_RUNS_H
#define HEADRACE_CLI_RUN_RUNS_H

#include "daemon/control/control.h"

/* One daemon's answer: a `job` message. */
typedef void hr_run_answer(void *arg, const char *socket, const struct hr_message *m);

/* Asks each for its status; waits a few seconds for each that does not answer. One may be asked twice (hr_private_each). */
void hr_runs_ask(hr_run_answer *answer, void *arg);

#endif
