/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_reuse.h - which job of a store that is used again a run belongs to
 *
 * Purpose   For runs that neither a scheduler nor --job assigns to a job: these are named like their store.
 *           A run joins the last such job of its store while that job is running, on this node or
 *           another, or when the run is a rank that the job lacks. Otherwise it is a job of its own:
 *           STORE.2, STORE.3...
 * Threads   One.
 */
#ifndef HEADRACE_CLI_RUN_JOB_REUSE_H
#define HEADRACE_CLI_RUN_JOB_REUSE_H

#include "cli/run/job.h"

/* Sets job->id; *ret_former gets the last job's id where the run starts a new one, else it is empty. 0 or -errno. */
int hr_job_reuse(const char *store, struct hr_job *job, char ret_former[HR_JOB_ID_BYTES]);

#endif
