/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text.h"
#include "common/fdstore.h"
#include "daemon/service/internal.h"

#define IDLE_DRAIN_MS 30000u

static void count_unregistered(const struct service *s, uint32_t uid, unsigned *ret_all,
			       unsigned *ret_own)
{
	*ret_all = *ret_own = 0;
	for (const struct job *job = s->jobs; job; job = job->next) {
		*ret_all += !job->registered;
		*ret_own += !job->registered && job->uid == uid;
	}
}

/* ---- beginning ------------------------------------------------------------------------------- */

static const struct job *job_of_key(const struct service *s, uint64_t key)
{
	for (const struct job *job = s->jobs; job; job = job->next)
		if (job->key == key)
			return job;
	return NULL;
}

void hr__service_jobs_free(struct service *s)
{
	while (s->jobs) {
		if (s->jobs->channel >= 0)
			close(s->jobs->channel);
		free(s->jobs->poll);
		hr__service_job_free(s->jobs);
	}
}

static int check_spec(struct service *s, const struct job_spec *spec, char **ret_error)
{
	const struct job *other = hr__service_job_find(s, spec->id, spec->attempt);
	unsigned all, own;

	if (spec->id[0] == '\0' || strlen(spec->id) >= JOB_BYTES ||
	    strlen(spec->scheduler) >= JOB_BYTES)
		return hr_text_fail(-EINVAL, ret_error, "a job id must have 1 to %u bytes",
				    JOB_BYTES - 1);
	if (!other)
		other = job_of_key(s, hr__service_job_key(spec->id, spec->attempt));
	if (other)
		return hr_text_fail(-EEXIST, ret_error,
				    "job %s of user %u already exists on this node", other->id,
				    other->uid);
	if (s->stopping)
		return hr_text_fail(-ESHUTDOWN, ret_error,
				    "headraced is stopping: try again when it has restarted");
	if (s->n_jobs >= s->c->max_jobs)
		return hr_text_fail(-ENOSPC, ret_error,
				    "this node has %u jobs, the limit of max_jobs", s->n_jobs);
	if (spec->registered)
		return 0;
	count_unregistered(s, spec->uid, &all, &own);
	if (all >= (s->c->max_jobs + 1) / 2) /* registered jobs may use the other half */
		return hr_text_fail(-ENOSPC, ret_error,
				    "this node has %u unregistered jobs, the limit of max_jobs / 2",
				    all);
	if (own >= s->c->max_jobs_per_user)
		return hr_text_fail(
		    -ENOSPC, ret_error,
		    "user %u has %u unregistered jobs, the limit of max_jobs_per_user", spec->uid,
		    own);
	return 0;
}

static int write_first(struct job *job, const struct job_spec *spec)
{
	const struct service *s = job->service;
	struct hr_private_config config = {
	    .node = {.store = s->c->spool,
		     .id = {.cluster = s->c->cluster,
			    .job = job->id,
			    .node = s->node,
			    .boot_id = s->boot_id,
			    .attempt = job->attempt},
		     .uid = job->uid,
		     .job_name = spec->name,
		     .account = spec->account,
		     .partition = spec->partition,
		     .level = (int)job->level,
		     .max_bytes = s->c->max_size_bytes,
		     .ranks = spec->ranks,
		     .local_ranks = spec->local_ranks,
		     .probes = job->probes,
		     .ranks_expected = spec->ranks_expected,
		     .nodes_expected = spec->nodes_expected,
		     .max_sessions = (uint32_t)s->c->max_sessions,
		     .max_ring_bytes = s->c->max_ring_bytes,
		     .privacy = {.paths = s->c->paths,
				 .keep = (uint32_t)s->c->paths_keep,
				 .commands = s->c->command_lines}},
	    .collectors = s->c->collectors,
	    .tls_cert = s->c->tls_cert,
	    .tls_key = s->c->tls_key,
	    .tls_ca = s->c->tls_ca,
	    .spool_bytes = s->c->spool_bytes,
	    .scheduler = job->scheduler,
	    .cgroup = spec->cgroup,
	    .registered = spec->registered,
	    .policy = job->policy,
	    .privacy_key = s->c->privacy_key,
	};

	if (getrandom(&config.node.id.instance, sizeof(config.node.id.instance), 0) < 0)
		return -errno;
	return hr__service_job_write(job, &config);
}

/* Decides policy, level and probes of a job, from the request, the rules and the configuration. */
static void jobs_decide(struct job *job, const struct job_spec *spec)
{
	const struct hr_policy_rules rules = hr__service_policy(job->service);
	struct hr_decision d = hr_policy_decide(&rules, spec->uid, spec->partition);
	int level = spec->level >= 0 ? spec->level : d.level;

	job->policy = d.policy;
	if (level < 0)
		level = HR_LEVEL_COUNTERS + (int)job->service->c->level;
	job->level = job->level_base = (uint32_t)level;
	job->probes = spec->probes < 0 ? job->service->c->probes != 0 : spec->probes != 0;
}

static int jobs_start(struct job *job)
{
	if (job->policy != HR_POLICY_OFF)
		return hr__service_worker_start(job);
	job->state = JOB_OFF;
	return 0;
}

struct job *hr__service_job_begin(struct service *s, const struct job_spec *spec, char **ret_error)
{
	struct job *job;
	int r = check_spec(s, spec, ret_error);

	if (r == 0)
		r = hr__service_cgroup_check(s, spec, ret_error);
	if (r < 0)
		return NULL;
	job = hr__service_job_add(s, spec->id, spec->scheduler, spec->uid, spec->attempt);
	if (!job) {
		hr_text_fail(-ENOMEM, ret_error, "no memory");
		return NULL;
	}
	job->registered = spec->registered;
	snprintf(job->name, sizeof(job->name), "%s", spec->name ? spec->name : "");
	job->cgroup = spec->cgroup ? strdup(spec->cgroup) : NULL;
	jobs_decide(job, spec);
	r = write_first(job, spec);
	if (r == 0)
		r = jobs_start(job);
	if (r < 0) {
		hr_text_fail(r, ret_error, "cannot record job %s: %s", spec->id,
			     strerrordesc_np(-r));
		hr__service_job_unlink(job);
		hr__service_job_free(job);
		return NULL;
	}
	hr_log(HR_LOG_INFO, "job %s of user %u begins%s%s", job->id, job->uid,
	       job->registered ? "" : " (unregistered)",
	       job->policy == HR_POLICY_OFF ? ": not recorded, by policy" : "");
	return job;
}

/* ---- after a restart ------------------------------------------------------------------------- */

static void take_descriptors(struct job *job, struct hr_inherited *list, size_t n)
{
	char prefix[JOB_PREFIX];

	hr__service_job_prefix(job, prefix);
	for (size_t i = 0; i < n; i++) {
		if (list[i].fd < 0 || strncmp(list[i].name, prefix, strlen(prefix)) != 0)
			continue;
		hr_kept_add(&job->kept, list[i].name + strlen(prefix), list[i].fd);
		list[i].fd = -1;
	}
}

static void job_resume(struct service *s, const char *name, struct hr_inherited *list, size_t n)
{
	struct job named = {.service = s}, *job;
	struct hr_private_config config = {0};
	int r;

	named.key = strtoull(name, NULL, 16);
	r = hr__service_job_read(&named, &config);
	if (r == 0 && !config.node.id.job)
		r = -EBADMSG;
	if (r != 0) {
		hr_log(HR_LOG_WARNING, "cannot read the job file %s/%s: %s; headraced ignores it",
		       s->jobs_folder, name, strerrordesc_np(-r));
		return;
	}
	job = hr__service_job_add(s, config.node.id.job, config.scheduler ? config.scheduler : "",
				  config.node.uid, config.node.id.attempt);
	if (job) {
		job->key = named.key;
		job->resumed = job->recorded = true;
		job->registered = config.registered;
		job->killed = config.killed;
		snprintf(job->name, sizeof(job->name), "%s",
			 config.node.job_name ? config.node.job_name : "");
		job->level = job->level_base = (uint32_t)config.node.level;
		job->probes = config.node.probes;
		job->cgroup = config.cgroup ? strdup(config.cgroup) : NULL;
		job->policy =
		    config.policy <= HR_POLICY_OFF ? (enum hr_policy)config.policy : HR_POLICY_OFF;
		take_descriptors(job, list, n);
		r = jobs_start(job);
		if (job->policy == HR_POLICY_OFF)
			hr_log(HR_LOG_INFO, "job %s continues: not recorded, by policy", job->id);
		else
			hr_log(HR_LOG_INFO,
			       "job %s: recording continues after the restart (%zu descriptors "
			       "kept by systemd)",
			       job->id, job->kept.n);
		if (r < 0)
			hr__service_worker_failed(job, strerrordesc_np(-r));
		if (config.end_state)
			hr__service_job_end(job, config.end_state, 0, IDLE_DRAIN_MS);
	}
	hr_private_config_done(&config);
}

void hr__service_jobs_resume(struct service *s, struct hr_inherited *list, size_t n)
{
	DIR *folder = opendir(s->jobs_folder);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)) != NULL)
		if (strspn(entry->d_name, "0123456789abcdef") == 16 &&
		    strcmp(entry->d_name + 16, ".conf") == 0)
			job_resume(s, entry->d_name, list, n);
	if (folder)
		closedir(folder);
	/* The descriptors that are left belong to jobs without a file. */
	for (size_t i = 0; i < n; i++)
		if (list[i].fd >= 0)
			hr_fdstore_remove(list[i].name);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Sends how many processes a limit refused. The recording process stores this number as a loss. */
static void send_refused(struct job *job)
{
	Headrace__Refused refused = HEADRACE__REFUSED__INIT;

	if (job->limited == 0 || job->state == JOB_STARTING || job->channel < 0)
		return;
	refused.processes = job->limited;
	hr__service_worker_send(job, HR_CONTROL(COUNT_REFUSED), &refused.base);
	job->service->limited_reported += job->limited;
	job->limited = 0;
}

void hr__service_job_end(struct job *job, const char *state, uint64_t linger_ms, uint64_t drain_ms)
{
	bool noted = job->end_state[0] != '\0';

	if (job->killed && strcmp(state, "ended") == 0)
		state = "killed";
	snprintf(job->end_state, sizeof(job->end_state), "%s", state);
	job->linger_ms = linger_ms;
	job->drain_ms = drain_ms;
	if (job->state == JOB_OFF) {
		hr__service_job_forget(job, NULL);
		return;
	}
	if (!noted)
		hr__service_job_note(job);
	if (job->state == JOB_FAILING) {
		hr__service_worker_retry(job);
		return;
	}
	if (job->state == JOB_STARTING) /* job_ready (workers.c) will send the end */
		return;
	send_refused(job);
	hr__service_send_end(job);
}

void hr__service_job_level(struct job *job, uint32_t level, uint64_t for_ms)
{
	job->level = level;
	job->level_until_ms = for_ms != 0 ? hr__service_now_ms(job->service) + for_ms : 0;
	if (for_ms == 0 && level != job->level_base) {
		job->level_base = level;
		hr__service_job_note(job);
	}
	if (job->state == JOB_RUNNING)
		hr__service_send_level(job);
}

void hr__service_jobs_tick(struct service *s)
{
	uint64_t now = hr__service_now_ms(s);

	for (struct job *job = s->jobs, *next; job; job = next) {
		next = job->next;
		send_refused(job);
		if (job->level_until_ms != 0 && now >= job->level_until_ms)
			hr__service_job_level(job, job->level_base, 0);
		if (!job->registered && (job->state == JOB_RUNNING || job->state == JOB_FAILING) &&
		    job->idle_since_ms != 0 && now - job->idle_since_ms >= s->c->idle_end_ms)
			hr__service_job_end(job, "ended", 0, IDLE_DRAIN_MS);
		else if (job->state == JOB_FAILING && now >= job->retry_ms)
			hr__service_worker_retry(job);
	}
}
