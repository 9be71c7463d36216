/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - identifies the job: id, store, node and rank, from options and the scheduler's variables
 *
 * Purpose   The defaults of `headrace run`: STORE is ./headrace-<job> inside a scheduler's job,
 *           else ./headrace-<UTC time>-<pid>; the job id is the scheduler's ("123_4" for an array
 *           task), else the name of the store.
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
	int rank;		 /* rank of this run; -1: the run has several ranks or none */
};

/* If `store` or `id` is NULL, the default is used. */
void hr_job_find(const char *store, const char *id, struct hr_job *ret);

/* Returns whether a scheduler's variables identify a job. */
bool hr_job_scheduled(void);

#endif
