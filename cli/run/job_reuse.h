/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_reuse.h - finds the job of a run in a store that already has jobs
 *
 * Without a scheduler and --job, a run belongs to a job with the name of its store. It joins the
 * last such job if that job is running on any node, or lacks the rank of this run. Otherwise it
 * starts a new job: STORE.2, STORE.3...
 */
#ifndef HEADRACE_CLI_RUN_JOB_REUSE_H
#define HEADRACE_CLI_RUN_JOB_REUSE_H

#include "cli/run/job.h"

/* Sets job->id. ret_former: the id of the last job if this run starts a new one, else "". */
int hr_job_reuse(const char *store, struct hr_job *job, char ret_former[HR_JOB_ID_BYTES]);

/*
 * Returns true if a recording process still writes a stream of the job on `node` (NULL: on any
 * node), or the job lacks the rank of the run `rank` (NULL: not checked).
 */
bool hr_job_is_open(const char *store, const char *id, const char *node, const struct hr_job *rank);

#endif
