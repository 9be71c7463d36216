/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_reuse.h - finds the job of a run in a store that already has jobs
 *
 * Without a scheduler and --job, the jobs of a store are named after it: STORE, STORE.2, STORE.3...
 * A run joins the last of these jobs if this job is running on any node, or lacks the rank of the
 * run. Otherwise the run starts a new job.
 */
#ifndef HEADRACE_CLI_RUN_JOB_REUSE_H
#define HEADRACE_CLI_RUN_JOB_REUSE_H

#include "cli/run/job.h"

/* Sets job->id. ret_former: the id of the last job if the run starts a new job, else "". */
int hr_job_reuse(const char *store, struct hr_job *job, char ret_former[HR_JOB_ID_BYTES]);

/*
 * Returns true if a recording process still writes a stream of the job on `node` (NULL: any node),
 * or if the job lacks the rank of `rank`, which has one (NULL: not checked).
 */
bool hr_job_is_open(const char *store, const char *id, const char *node, const struct hr_job *rank);

#endif
