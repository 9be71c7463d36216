/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/job.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/ranks.h"
#include "common/text.h"

/* Sets "ID", or "ID_TASK" for an array task. */
static void set_id(char *out, size_t bytes, const char *id, const char *task)
{
	snprintf(out, bytes, task != NULL ? "%s_%s" : "%s", id, task);
}

/* Sets the id for PBS: 123 for "123.server", and 123_4 for the array task "123[4].server". */
static void set_pbs_id(char *out, size_t bytes, const char *id)
{
	size_t digits = strspn(id, "0123456789");
	size_t task = id[digits] == '[' ? strcspn(id + digits + 1, "].") : 0;

	if (digits == 0)
		snprintf(out, bytes, "%s", id);
	else if (task > 0)
		snprintf(out, bytes, "%.*s_%.*s", (int)digits, id, (int)task, id + digits + 1);
	else
		snprintf(out, bytes, "%.*s", (int)digits, id);
}

/* Sets the scheduler's id of this job. Returns false if the job has no scheduler. */
static bool scheduler_id(char *out, size_t bytes)
{
	static const char *const plain[] = {"SLURM_JOB_ID", "FLUX_JOB_ID", "COBALT_JOBID"};
	const char *id, *task;

	id = hr_getenv("SLURM_ARRAY_JOB_ID");
	task = hr_getenv("SLURM_ARRAY_TASK_ID");
	if (id != NULL && task != NULL) {
		set_id(out, bytes, id, task);
		return true;
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if ((id = hr_getenv(plain[i])) != NULL) {
			set_id(out, bytes, id, NULL);
			return true;
		}
	}
	if ((id = hr_getenv("PBS_JOBID")) != NULL) {
		set_pbs_id(out, bytes, id);
		return true;
	}
	if ((id = hr_getenv("LSB_JOBID")) != NULL) {
		task = hr_getenv("LSB_JOBINDEX");
		set_id(out, bytes, id, task != NULL && strcmp(task, "0") != 0 ? task : NULL);
		return true;
	}
	if ((id = hr_getenv("JOB_ID")) != NULL && (task = hr_getenv("SGE_TASK_ID")) != NULL) {
		set_id(out, bytes, id, strcmp(task, "undefined") != 0 ? task : NULL);
		return true;
	}
	return false;
}

bool hr_job_scheduled(void)
{
	char id[256];

	return scheduler_id(id, sizeof(id));
}

/* Sets the name of the store's folder, which is the id of a job without a scheduler. */
static void name_of_store(char *out, size_t bytes, const char *store)
{
	size_t end = strlen(store), start;

	while (end > 1 && store[end - 1] == '/')
		end--;
	for (start = end; start > 0 && store[start - 1] != '/'; start--)
		;
	snprintf(out, bytes, "%.*s", (int)(end - start), store + start);
	if (out[0] == '\0' || strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
		snprintf(out, bytes, "job");
}

static void default_store(struct hr_job *job, bool scheduled)
{
	time_t now = time(NULL);
	struct tm utc;

	if (scheduled) {
		snprintf(job->store, sizeof(job->store), "./headrace-%s", job->id);
		return;
	}
	gmtime_r(&now, &utc);
	snprintf(job->store, sizeof(job->store), "./headrace-%04d%02d%02dT%02d%02d%02dZ-%d",
		 utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
		 utc.tm_sec, (int)getpid());
}

/* Sets the rank of this `headrace run`. If the world size is 1, CMD may start more ranks. */
static void find_rank(struct hr_job *job)
{
	struct hr_rank rank = {0};

	for (char **v = environ; *v != NULL; v++)
		hr_rank_env(&rank, *v, strlen(*v));
	job->rank = (int)rank.rank_plus1 - 1;
	job->ranks_expected = job->rank >= 0 && rank.world > 1 ? rank.world : 0;
}

void hr_job_find(const char *store, const char *id, struct hr_job *ret)
{
	bool scheduled = scheduler_id(ret->id, sizeof(ret->id));
	/* Prologs have only the second variable; in epilogs, it counts the next attempt. */
	const char *restarts = hr_getenv("SLURM_RESTART_COUNT")
				   ? hr_getenv("SLURM_RESTART_COUNT")
				   : hr_getenv("SLURM_JOB_RESTART_COUNT");
	const char *node = hr_getenv("SLURMD_NODENAME");
	uint64_t value;

	if (store != NULL)
		snprintf(ret->store, sizeof(ret->store), "%s", store);
	else
		default_store(ret, scheduled);
	if (id != NULL)
		snprintf(ret->id, sizeof(ret->id), "%s", id);
	else if (!scheduled)
		name_of_store(ret->id, sizeof(ret->id), ret->store);
	ret->attempt = 0;
	if (restarts != NULL && hr_text_parse_uint(restarts, UINT32_MAX, &value) == 0)
		ret->attempt = (uint32_t)value;
	if (node != NULL)
		snprintf(ret->node, sizeof(ret->node), "%s", node);
	else
		hr_host_name(ret->node);
	hr_host_boot_id(ret->boot_id);
	ret->ranks_expected = 0;
	find_rank(ret);
}
