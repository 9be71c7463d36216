/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - one job in the table: finding it, its file, and messages to its recording process */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/log.h"
#include "daemon/service/internal.h"

#define SERVICE_PATH 256u /* maximum bytes of the path of a job's file */

/* ---- the table ------------------------------------------------------------------------------- */

/* The list begins with the newest job, so the first match is the latest attempt. */
struct job *hr__service_job_find(struct service *s, const char *id, int64_t attempt)
{
	for (struct job *job = s->jobs; job; job = job->next)
		if (strcmp(job->id, id) == 0 && (attempt == ANY_ATTEMPT || job->attempt == attempt))
			return job;
	return NULL;
}

const char *hr__service_job_state(enum job_state state)
{
	static const char *const names[JOB_STATES] = {"starting", "running", "ending",
						      "draining", "failing", "off"};

	return names[state];
}

static bool has_name(const struct job *job, const char *name)
{
	return strcmp(job->id, name) == 0 || strcmp(job->scheduler, name) == 0;
}

struct job *hr__service_job_named(struct service *s, const char *name, uint32_t uid)
{
	struct job *own = NULL;

	for (struct job *job = s->jobs; job; job = job->next) {
		if (!has_name(job, name))
			continue;
		if (job->registered)
			return job;
		if (!own && job->uid == uid)
			own = job;
	}
	return own;
}

/*
 * Returns the key in the names of a job's file and descriptors. It is a cryptographic hash, because
 * users choose a part of the id of an unregistered job, and must not find a collision with another
 * user's job.
 */
uint64_t hr__service_job_key(const char *id, uint32_t attempt)
{
	char text[JOB_BYTES + 16];
	uint8_t sum[32] = {0};
	uint64_t key;
	int n = snprintf(text, sizeof(text), "%u:%s", attempt, id);

	EVP_Digest(text, (size_t)n, sum, NULL, EVP_sha256(), NULL);
	memcpy(&key, sum, sizeof(key));
	return key;
}

struct job *hr__service_job_add(struct service *s, const char *id, const char *scheduler,
				uint32_t uid, uint32_t attempt)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	*job = (struct job){.next = s->jobs,
			    .service = s,
			    .status = headrace__job_status__unpack(NULL, 0, NULL),
			    .uid = uid,
			    .attempt = attempt,
			    .channel = -1,
			    .handoff = -1,
			    .idle_since_ms = hr__service_now_ms(s)};
	if (!job->status) {
		free(job);
		return NULL;
	}
	snprintf(job->id, sizeof(job->id), "%s", id);
	snprintf(job->scheduler, sizeof(job->scheduler), "%s", scheduler);
	job->key = hr__service_job_key(id, attempt);
	s->jobs = job;
	s->n_jobs++;
	return job;
}

void hr__service_job_free(struct job *job)
{
	struct service *s = job->service;
	struct job **link = &s->jobs;

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	s->n_jobs--;
	hr_kept_done(&job->kept);
	headrace__job_status__free_unpacked(job->status, NULL);
	free(job->cgroup);
	free(job);
}

/* ---- its file -------------------------------------------------------------------------------- */

static void job_path(const struct job *job, const char *suffix, char ret[SERVICE_PATH])
{
	snprintf(ret, SERVICE_PATH, "%s/%016" PRIx64 ".conf%s", job->service->jobs_folder, job->key,
		 suffix);
}

void hr__service_job_prefix(const struct job *job, char ret[JOB_PREFIX])
{
	snprintf(ret, JOB_PREFIX, "%016" PRIx64 ".", job->key);
}

int hr__service_job_write(struct job *job, const struct hr_private_config *config)
{
	char path[SERVICE_PATH], fresh[SERVICE_PATH];
	int fd, r;

	job_path(job, "", path);
	job_path(job, "~", fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = hr_private_config_write(config, fd);
	close(fd);
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(fresh);
	return r;
}

void hr__service_job_unlink(const struct job *job)
{
	char path[SERVICE_PATH];

	job_path(job, "", path);
	unlink(path);
}

int hr__service_job_conf_open(const struct job *job)
{
	char path[SERVICE_PATH];
	int fd;

	job_path(job, "", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int hr__service_job_read(const struct job *job, struct hr_private_config *ret)
{
	int fd = hr__service_job_conf_open(job), r;

	if (fd < 0)
		return fd;
	r = hr_private_config_read(fd, ret);
	close(fd);
	return r;
}

void hr__service_job_note(struct job *job)
{
	struct hr_private_config config = {0};
	int r = hr__service_job_read(job, &config);

	if (r == 0) {
		config.end_state = job->end_state[0] != '\0' ? job->end_state : NULL;
		config.killed = job->killed;
		config.registered = job->registered;
		config.cgroup = job->cgroup;
		config.node.level = (int)job->level_base;
		r = hr__service_job_write(job, &config);
		hr_private_config_done(&config);
	}
	if (r < 0)
		hr_log(HR_LOG_WARNING,
		       "job %s: cannot save what has changed: %s; it is lost if headraced restarts",
		       job->id, strerrordesc_np(-r));
}

/* ---- its recording process ------------------------------------------------------------------- */

void hr__service_worker_send(struct job *job, hr_control_kind kind, const ProtobufCMessage *body)
{
	int r = job->channel >= 0 ? hr_control_send(job->channel, kind, body) : 0;

	if (r < 0)
		hr_log(HR_LOG_WARNING, "job %s: cannot send to its recording process: %s", job->id,
		       strerrordesc_np(-r));
}
