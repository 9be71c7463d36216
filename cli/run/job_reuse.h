/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_reuse.h - finds the job of a run in a store that already has jobs
 *
 * Purpose   A run that neither a scheduler nor --job assigns to a job belongs to a job named like
 *           its store. It joins the last such job if that job is running, on this node or another,
 *           or if the run is a rank that the job lacks. Otherwise it is a new job: STORE.2,
 *           STORE.3...
 * Threads   One.
 */
#ifndef HEADRACE_CLI_RUN_JOB_REUSE_H
#define HEADRACE_CLI_RUN_JOB_REUSE_H

#include "cli/run/job.h"

/* Sets job->id. ret_former: the id of the last job if this run starts a new one, else "". */
int hr_job_reuse(const char *store, struct hr_job *job, char ret_former[HR_JOB_ID_BYTES]);

/*
 * True: a recording process still writes a stream of the job on this node (NULL: on any node), or
 * the job lacks the rank of the run `rank` (NULL: not checked).
 */
bool hr_job_is_open(const char *store, const char *id, const char *node, const struct hr_job *rank);

#endif
