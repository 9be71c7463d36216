/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/log.h"
#include "common/text.h"
#include "common/fdstore.h"
#include "daemon/service/internal.h"

#define IDLE_DRAIN_MS 30000u
#define SERVICE_PATH  256u /* maximum bytes of the path of a job's file */

/* ---- finding --------------------------------------------------------------------------------- */

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

static void count_unregistered(const struct service *s, uint32_t uid, unsigned *ret_all,
			       unsigned *ret_own)
{
	*ret_all = *ret_own = 0;
	for (const struct job *job = s->jobs; job; job = job->next) {
		*ret_all += !job->registered;
		*ret_own += !job->registered && job->uid == uid;
	}
}

/* ---- its file -------------------------------------------------------------------------------- */

static void job_conf(const struct job *job, const char *suffix, char ret[SERVICE_PATH])
{
	snprintf(ret, SERVICE_PATH, "%s/%016" PRIx64 ".conf%s", job->service->jobs_folder, job->key,
		 suffix);
}

void hr__service_job_prefix(const struct job *job, char ret[JOB_PREFIX])
{
	snprintf(ret, JOB_PREFIX, "%016" PRIx64 ".", job->key);
}

/* Replaces the file atomically: a kill leaves either the old or the new file. */
static int write_conf(struct job *job, const struct hr_private_config *config)
{
	char path[SERVICE_PATH], fresh[SERVICE_PATH];
	int fd, r;

	job_conf(job, "", path);
	job_conf(job, "~", fresh);
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

int hr__service_job_conf_open(const struct job *job)
{
	char path[SERVICE_PATH];
	int fd;

	job_conf(job, "", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_conf(const struct job *job, struct hr_private_config *ret)
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
	int r = read_conf(job, &config);

	if (r == 0) {
		config.end_state = job->end_state[0] != '\0' ? job->end_state : NULL;
		config.killed = job->killed;
		config.registered = job->registered;
		config.cgroup = job->cgroup;
		config.node.level = (int)job->level_base;
		r = write_conf(job, &config);
		hr_private_config_done(&config);
	}
	if (r < 0)
		hr_log(HR_LOG_WARNING,
		       "job %s: cannot save what has changed: %s; it is lost if headraced restarts",
		       job->id, strerrordesc_np(-r));
}

/* ---- beginning ------------------------------------------------------------------------------- */

/*
 * Returns the key in the names of a job's file and descriptors. It is a cryptographic hash, because
 * users choose a part of the id of an unregistered job, and must not find a collision with another
 * user's job.
 */
static uint64_t jobs_key_of(const char *id, uint32_t attempt)
{
	char text[JOB_BYTES + 16];
	uint8_t sum[32] = {0};
	uint64_t key;
	int n = snprintf(text, sizeof(text), "%u:%s", attempt, id);

	EVP_Digest(text, (size_t)n, sum, NULL, EVP_sha256(), NULL);
	memcpy(&key, sum, sizeof(key));
	return key;
}

static const struct job *job_of_key(const struct service *s, uint64_t key)
{
	for (const struct job *job = s->jobs; job; job = job->next)
		if (job->key == key)
			return job;
	return NULL;
}

static struct job *jobs_add(struct service *s, const char *id, const char *scheduler, uint32_t uid,
			    uint32_t attempt)
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
	job->key = jobs_key_of(id, attempt);
	s->jobs = job;
	s->n_jobs++;
	return job;
}

static void job_free(struct job *job)
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

void hr__service_jobs_free(struct service *s)
{
	while (s->jobs) {
		if (s->jobs->channel >= 0)
			close(s->jobs->channel);
		free(s->jobs->poll);
		job_free(s->jobs);
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
		other = job_of_key(s, jobs_key_of(spec->id, spec->attempt));
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
	return write_conf(job, &config);
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
	char path[SERVICE_PATH];
	int r = check_spec(s, spec, ret_error);

	if (r == 0)
		r = hr__service_cgroup_check(s, spec, ret_error);
	if (r < 0)
		return NULL;
	job = jobs_add(s, spec->id, spec->scheduler, spec->uid, spec->attempt);
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
		job_conf(job, "", path);
		unlink(path);
		job_free(job);
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
	r = read_conf(&named, &config);
	if (r == 0 && !config.node.id.job)
		r = -EBADMSG;
	if (r != 0) {
		hr_log(HR_LOG_WARNING, "cannot read the job file %s/%s: %s; headraced ignores it",
		       s->jobs_folder, name, strerrordesc_np(-r));
		return;
	}
	job = jobs_add(s, config.node.id.job, config.scheduler ? config.scheduler : "",
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

static void send_end(struct job *job)
{
	Headrace__JobRequest end = HEADRACE__JOB_REQUEST__INIT;

	job->state = JOB_ENDING;
	end.state = job->end_state;
	end.linger_ms = job->linger_ms;
	end.drain_ms = job->drain_ms;
	hr__service_worker_send(job, HR_CONTROL(END_JOB), &end.base);
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
	if (job->state == JOB_STARTING) /* hr__service_job_ready will send the end */
		return;
	send_refused(job);
	send_end(job);
}

static void send_level(struct job *job)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;

	request.has_level = true;
	request.level = job->level;
	hr__service_worker_send(job, HR_CONTROL(SET_LEVEL), &request.base);
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
		send_level(job);
}

void hr__service_job_ready(struct job *job)
{
	job->state = JOB_RUNNING;
	job->recorded = true;
	job->failed_ms = 0;
	job->why[0] = '\0';
	hr__service_clients_begun(job, NULL);
	send_level(job);
	hr__service_cgroup_send(job);
	if (job->end_state[0] != '\0')
		send_end(job);
}

void hr__service_job_forget(struct job *job, const char *error)
{
	char path[SERVICE_PATH], prefix[JOB_PREFIX], name[JOB_PREFIX + NAME_MAX];

	hr__service_handoff_close(job);
	hr__service_job_prefix(job, prefix);
	for (size_t i = 0; i < job->kept.n; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, job->kept.list[i].name);
		hr_fdstore_remove(name);
	}
	job_conf(job, "", path);
	unlink(path);
	hr__service_clients_begun(
	    job, "the job is not recorded: its recording process ended; see the log of headraced");
	hr__service_clients_done(job, error);
	hr_log(HR_LOG_INFO,
	       "job %s has ended: %" PRIu64 " operations recorded, %" PRIu64
	       " frames wait in the spool for a collector",
	       job->id, job->status->events, job->status->unsent_frames);
	job_free(job);
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
