/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - identifies the job: id, store, node and rank, from options and the scheduler's variables
 *
 * Defaults in a job of a scheduler: the store is ./headrace-JOB, and JOB is the scheduler's id
 * ("123_4" for an array task). Otherwise: the store is ./headrace-TIME-PID (UTC), and the job id is
 * the name of the store.
 */
#ifndef HEADRACE_CLI_RUN_JOB_H
#define HEADRACE_CLI_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/host.h"

#define HR_JOB_ID_BYTES 256u

struct hr_job {
	char id[HR_JOB_ID_BYTES];
	char store[4096]; /* value of --store, or the default; may be relative */
	char node[HR_HOST_NAME_BYTES];
	char boot_id[HR_HOST_BOOT_BYTES];
	uint32_t attempt;	 /* how often the scheduler requeued the job */
	uint32_t ranks_expected; /* 0: unknown */
	/* rank of this `headrace run`; -1: it starts several ranks, or none */
	int rank;
};

/* If `store` or `id` is NULL, the default is used. */
void hr_job_find(const char *store, const char *id, struct hr_job *ret);

/* Returns whether a scheduler's variables identify a job. */
bool hr_job_scheduled(void);

/* ---- the jobs of a store (job_reuse.c) ------------------------------------------------------- */

/*
 * Without a scheduler and --job, the jobs of a store are named after it: STORE, STORE.2, STORE.3...
 * A run joins the last of these jobs if this job is running on any node, or lacks the rank of the
 * run. Otherwise the run starts a new job.
 */

/* Sets job->id. ret_former: the id of the last job if the run starts a new job, else "". */
int hr_job_reuse(const char *store, struct hr_job *job, char ret_former[HR_JOB_ID_BYTES]);

/*
 * Returns true if a recording process still writes a stream of the job on `node` (NULL: any node),
 * or if the job lacks the rank of `rank`, which has one (NULL: not checked).
 */
bool hr_job_is_open(const char *store, const char *id, const char *node, const struct hr_job *rank);

#endif
