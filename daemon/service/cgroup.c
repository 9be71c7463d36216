/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the job of a process by its cgroup, and sets the cgroup whose processes probes record. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/procfs.h"
#include "common/text.h"
#include "daemon/base/cgroup.h"
#include "daemon/service/internal.h"

/* ---- the cgroup of a process ----------------------------------------------------------------- */

/*
 * Finds the job in a line of /proc/PID/cgroup: "4:cpuset:/slurm/uid_5/job_127/step_0" or
 * "0::/system.slice/slurmstepd.scope/job_127/step_0". Users can make cgroups of any name in other
 * folders, so those do not count. Returns the end of the job's folder in `line`; NULL: no job.
 */
static const char *line_job(const char *line, char ret[JOB_BYTES])
{
	const char *path = strchr(line, '/'), *end = strchrnul(line, '\n'), *job;
	size_t n;

	if (!path || path >= end ||
	    (strncmp(path, "/slurm", 6) != 0 && strncmp(path, "/system.slice/", 14) != 0))
		return NULL;
	job = strstr(path, "/job_");
	n = job && job < end ? strspn(job + 5, "0123456789") : 0;
	if (n == 0 || (job[5 + n] != '/' && job[5 + n] != '\n' && job[5 + n] != '\0'))
		return NULL;
	snprintf(ret, JOB_BYTES, "%.*s", (int)n, job + 5);
	return job + 5 + n;
}

bool hr__service_cgroup_of(pid_t pid, struct cgroup_of *ret)
{
	char path[64], text[4096], job[JOB_BYTES];
	const char *mount, *end;

	ret->job[0] = ret->folder[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (!hr_procfs_text(path, text, sizeof(text)))
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		end = line_job(line, job);
		if (!end)
			continue;
		if (ret->job[0] == '\0')
			memcpy(ret->job, job, sizeof(job));
		mount = strncmp(line, "0::", 3) == 0 ? hr_cgroup_mount() : NULL;
		if (mount && strcmp(job, ret->job) == 0 &&
		    snprintf(ret->folder, sizeof(ret->folder), "%s%.*s", mount,
			     (int)(end - line - 3), line + 3) >= (int)sizeof(ret->folder))
			ret->folder[0] = '\0';
	}
	return ret->job[0] != '\0';
}

/* ---- the cgroup of a job --------------------------------------------------------------------- */

int hr__service_cgroup_check(const struct service *s, const struct job_spec *spec, char **ret_error)
{
	uint64_t id;

	if (!spec->cgroup)
		return 0;
	if (spec->probes < 0 ? !s->c->probes : !spec->probes)
		return hr_text_fail(-EINVAL, ret_error,
				    "a cgroup needs probes, which are off for this job: set probes "
				    "in the configuration, or use --probes on");
	return hr_cgroup_id(spec->cgroup, &id, ret_error);
}

void hr__service_cgroup_send(struct job *job)
{
	Headrace__Cgroup cgroup = HEADRACE__CGROUP__INIT;

	if (!job->cgroup)
		return;
	cgroup.path = job->cgroup;
	hr__service_worker_send(job, HR_CONTROL(SET_CGROUP), &cgroup.base);
}

int hr__service_cgroup_set(struct job *job, const char *path, char **ret_error)
{
	uint64_t id;
	char *copy;
	int r;

	if (!job->probes || (job->cgroup && strcmp(job->cgroup, path) != 0))
		return 0;
	r = hr_cgroup_id(path, &id, ret_error);
	if (r < 0 || (job->cgroup && id == job->cgroup_id))
		return r;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	free(job->cgroup);
	job->cgroup = copy;
	job->cgroup_id = id;
	hr__service_job_note(job);
	if (job->state == JOB_RUNNING)
		hr__service_cgroup_send(job);
	return 0;
}
