/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - the state of a `headrace run`, which the files of this folder share */
#ifndef HEADRACE_CLI_RUN_RUN_H
#define HEADRACE_CLI_RUN_RUN_H

#include <limits.h>

#include "cli/run/child.h"
#include "cli/run/job.h"
#include "cli/run/link.h"
#include "cli/run/run_options.h"
#include "cli/run/run_uplink.h"

struct hr_run_state {
	struct hr_run_options options;
	struct hr_job job;
	struct hr_private_config config;
	struct hr_link link;
	struct hr_child child;
	char store[PATH_MAX]; /* absolute path; if there are collectors, path of the spool */
	int store_fd;	      /* of this folder, opened with O_PATH; 0: none */
	struct hr_run_uplink uplink;
	char *library, *headraced;
	char *python; /* folder of the start-up module; NULL: not installed */
	char **environment;
	char *exclude[HR_RUN_FILTERS + 1]; /* values of --exclude, made absolute */
	char *include[HR_RUN_FILTERS + 1];
};

/* Call it when CMD has ended: ends the recording, reports problems, and prints the summary. */
void hr_run_finish(struct hr_run_state *run);

/*
 * For --attach: prints how programs attach, and waits until standard input has a byte or ends, the
 * parent process ends, or a signal arrives.
 */
int hr_run_attach(struct hr_run_state *run);

#endif
