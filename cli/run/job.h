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

#endif
