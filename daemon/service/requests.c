/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text.h"
#include "common/users.h"
#include "daemon/service/internal.h"

/* ---- connections ------------------------------------------------------------------------------------ */

static void client_freed(uv_handle_t *handle)
{
	free(handle->data);
}

static void client_close(struct client *a)
{
	struct client **link = &a->service->clients;

	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	a->service->n_clients--;
	uv_poll_stop(&a->poll);
	close(a->fd);
	uv_close((uv_handle_t *)&a->poll, client_freed);
}

static void over(struct client *a)
{
	hr_message_init(&a->service->out, "over");
	hr_control_send(a->fd, &a->service->out);
	client_close(a);
}

static void requests_refuse(struct client *a, int r, const char *text)
{
	hr_message_init(&a->service->out, "error");
	hr_message_add_int(&a->service->out, "code", -r);
	hr_message_add(&a->service->out, "text", text);
	hr_control_send(a->fd, &a->service->out);
	client_close(a);
}

void hr__service_clients_notify(struct job *job, const struct hr_message *m)
{
	for (struct client *a = job->service->clients; a; a = a->next)
		if (a->awaits_end == job)
			hr_control_send(a->fd, m);
}

void hr__service_clients_done(struct job *job, const char *error)
{
	for (struct client *a = job->service->clients, *next; a; a = next) {
		next = a->next;
		if (a->awaits_end != job)
			continue;
		if (error)
			requests_refuse(a, -EIO, error);
		else
			over(a);
	}
}

void hr__service_clients_begun(struct job *job, const char *error)
{
	for (struct client *a = job->service->clients, *next; a; a = next) {
		next = a->next;
		if (a->awaits_start != job)
			continue;
		if (error)
			requests_refuse(a, -EIO, error);
		else
			over(a);
	}
}

/* Who has connected and says nothing has had its place for long enough. */
void hr__service_clients_tick(struct service *s)
{
	for (struct client *a = s->clients, *next; a; a = next) {
		next = a->next;
		if (!a->awaits_end && !a->awaits_start &&
		    hr__service_now_ms(s) - a->since_ms >= ASKER_MS)
			client_close(a);
	}
}

void hr__service_clients_leave(struct service *s)
{
	while (s->clients)
		client_close(s->clients);
}

/* ---- what they ask ---------------------------------------------------------------------------------- */

static void add_job(struct hr_message *m, const struct job *job)
{
	uint64_t now = hr__service_now_ms(job->service);
	bool fresh = now - job->stats.at_ms <= STATS_FRESH_MS;

	hr_message_init(m, "job");
	hr_message_add(m, "id", job->id);
	hr_message_add_int(m, "attempt", job->attempt);
	hr_message_add_int(m, "uid", job->uid);
	hr_message_add(m, "name", job->name);
	hr_message_add(m, "state", hr__service_job_state(job->state));
	hr_message_add(m, "policy", hr_policy_name(job->policy));
	hr_message_add_int(m, "announced", job->registered);
	hr_message_add_int(m, "level", job->level);
	hr_message_add_int(m, "level_for_ms",
			   job->level_until_ms > now ? (int64_t)(job->level_until_ms - now) : 0);
	hr_message_add_int(m, "pid", job->pid);
	hr_message_add_int(m, "processes", (int64_t)job->stats.sessions);
	hr_message_add_int(m, "processes_total", (int64_t)job->counts.sessions_total);
	hr_message_add_int(m, "events", (int64_t)job->counts.events);
	hr_message_add_int(m, "bytes_moved", (int64_t)job->stats.bytes_moved);
	hr_message_add_int(m, "lost", (int64_t)job->stats.lost);
	hr_message_add_int(m, "refused", (int64_t)job->counts.refused);
	hr_message_add_int(m, "stored_bytes", (int64_t)job->counts.stored_bytes);
	hr_message_add_int(m, "events_per_s", fresh ? (int64_t)job->stats.events_per_s : 0);
	hr_message_add_int(m, "bytes_per_s", fresh ? (int64_t)job->stats.bytes_per_s : 0);
	hr_message_add_int(m, "input_wait", job->stats.at_ms ? job->stats.input_wait : -1);
	hr_message_add_int(m, "steps", (int64_t)job->stats.steps);
	hr_message_add_int(m, "kernel_ops", (int64_t)job->stats.kernel_ops);
	hr_message_add_int(m, "kernel_added", (int64_t)job->stats.kernel_added);
	hr_message_add_int(m, "kernel_lost", (int64_t)job->stats.kernel_lost);
	hr_message_add_int(m, "store_error", job->stats.store_error);
	hr_message_add_int(m, "unsent_frames", (int64_t)job->stats.unsent_frames);
	hr_message_add_int(m, "unsent_ms", (int64_t)job->stats.unsent_ms);
	hr_message_add_int(m, "connected", job->stats.connected);
	hr_message_add(m, "failing", job->why);
	hr_message_add_int(m, "probes", job->stats.probes);
	hr_message_add(m, "no_probes", job->stats.no_probes);
	hr_message_add(m, "collector", job->stats.collector);
}

static void do_status(struct client *a)
{
	struct service *s = a->service;
	struct hr_message *m = &s->out;
	bool all = hr_user_is_operator(a->uid, s->c->operators);

	hr_message_init(m, "status");
	hr_message_add_int(m, "version", HR_SERVICE_VERSION);
	hr_message_add_int(m, "pid", getpid());
	hr_message_add_int(m, "uptime_ms", (int64_t)(hr__service_now_ms(s) - s->started_ms));
	hr_message_add(m, "node", s->node);
	hr_message_add(m, "spool", s->c->spool);
	hr_message_add_int(m, "spool_bytes", (int64_t)s->spool_bytes);
	hr_message_add_int(m, "spool_limit_bytes", (int64_t)s->c->spool_bytes);
	hr_message_add(m, "collectors", s->c->collectors ? s->c->collectors : "");
	hr_message_add_int(m, "jobs", s->n_jobs);
	hr_message_add_int(m, "refused", (int64_t)s->refused);
	hr_message_add_int(m, "limited", (int64_t)s->limited);
	hr_message_add_int(m, "unplaced", (int64_t)s->unplaced);
	hr_control_send(a->fd, m);
	for (const struct job *job = s->jobs; job; job = job->next) {
		if (!all && job->uid != a->uid)
			continue;
		add_job(m, job);
		hr_control_send(a->fd, m);
	}
	over(a);
}

/* The text of `key`, or NULL. */
static const char *text(const struct hr_message *m, const char *key, char *out, size_t bytes)
{
	return hr_message_get(m, key, out, bytes) == 0 && out[0] != '\0' ? out : NULL;
}

/* Its processes were faster than the prolog, or it runs twice: the same job. NULL: it cannot have the cgroup. */
static struct job *again(struct job *job, const struct job_spec *spec, char **ret_error)
{
	struct job_spec same = *spec;

	job->registered = true;
	same.probes = job->probes;
	if (hr__service_cgroup_check(job->service, &same, ret_error) < 0)
		return NULL;
	return spec->cgroup && hr__service_cgroup_set(job, spec->cgroup, ret_error) < 0 ? NULL
											: job;
}

static void do_begin(struct client *a, const struct hr_message *m)
{
	char id[JOB_BYTES], scheduler[JOB_BYTES], name[JOB_BYTES];
	char account[JOB_BYTES], partition[JOB_BYTES];
	char ranks[1024], local_ranks[1024], cgroup[4096];
	struct service *s = a->service;
	struct job_spec spec = {
	    .id = text(m, "job", id, sizeof(id)),
	    .scheduler = text(m, "scheduler", scheduler, sizeof(scheduler)),
	    .name = text(m, "name", name, sizeof(name)),
	    .ranks = text(m, "ranks", ranks, sizeof(ranks)),
	    .local_ranks = text(m, "local_ranks", local_ranks, sizeof(local_ranks)),
	    .uid = (uint32_t)hr_message_get_int(m, "uid", -1),
	    .attempt = (uint32_t)hr_message_get_int(m, "attempt", 0),
	    .ranks_expected = (uint32_t)hr_message_get_int(m, "ranks_expected", 0),
	    .nodes_expected = (uint32_t)hr_message_get_int(m, "nodes_expected", 0),
	    .account = text(m, "account", account, sizeof(account)),
	    .partition = text(m, "partition", partition, sizeof(partition)),
	    .cgroup = text(m, "cgroup", cgroup, sizeof(cgroup)),
	    .level = (int)hr_message_get_int(m, "level", -1),
	    .probes = (int)hr_message_get_int(m, "probes", -1),
	    .registered = true,
	};
	char *error = NULL;
	struct job *job;

	if (!spec.id || spec.uid == UINT32_MAX || spec.level > HR_LEVEL_TRACE) {
		requests_refuse(a, -EINVAL, "begin needs job and uid");
		return;
	}
	if (!spec.scheduler)
		spec.scheduler = spec.id;
	job = hr__service_job_find(s, spec.id, spec.attempt);
	if (job && job->uid == spec.uid)
		job = again(job, &spec, &error);
	else
		job = hr__service_job_begin(s, &spec, &error);
	if (!job)
		requests_refuse(a, -EINVAL, error ? error : "no memory");
	else if (job->state == JOB_STARTING)
		a->awaits_start = job;
	else
		over(a);
	free(error);
}

/* The job that is meant, or what is recorded of it though nobody could announce it; NULL: refused. */
static struct job *meant(struct client *a, const struct hr_message *m)
{
	char id[JOB_BYTES] = "", words[JOB_BYTES + 64];
	int64_t attempt = hr_message_get_int(m, "attempt", ANY_ATTEMPT);
	int64_t uid = hr_message_get_int(m, "uid", -1);
	struct job *job;

	hr_message_get(m, "job", id, sizeof(id));
	job = hr__service_job_find(a->service, id, attempt);
	if (!job && uid >= 0)
		job = hr__service_job_named(a->service, id, (uint32_t)uid);
	if (job)
		return job;
	snprintf(words, sizeof(words), "no job %s is recorded here", id);
	requests_refuse(a, -ENOENT, words);
	return NULL;
}

static void do_end(struct client *a, const struct hr_message *m)
{
	struct job *job = meant(a, m);
	char state[16];

	if (!job)
		return;
	a->awaits_end = job;
	hr__service_job_end(job, text(m, "state", state, sizeof(state)) ? state : "ended",
			    (uint64_t)hr_message_get_int(m, "linger_ms", 0),
			    (uint64_t)hr_message_get_int(m, "drain_ms", 0));
}

static void do_killed(struct client *a, const struct hr_message *m)
{
	struct job *job = meant(a, m);

	if (!job)
		return;
	hr__service_job_killed(job);
	over(a);
}

/* Its owner, or who sees all, and it is recorded; else refused. */
static bool may(struct client *a, const struct job *job)
{
	if (a->uid != job->uid && !hr_user_is_operator(a->uid, a->service->c->operators))
		requests_refuse(a, -EPERM, "the job is another user's");
	else if (job->state == JOB_OFF)
		requests_refuse(a, -EPERM, "the job is not recorded: policy of the configuration");
	else
		return true;
	return false;
}

static void do_level(struct client *a, const struct hr_message *m)
{
	struct job *job = meant(a, m);
	int64_t level = hr_message_get_int(m, "level", -1);

	if (!job || !may(a, job))
		return;
	if (level < HR_LEVEL_COUNTERS || level > HR_LEVEL_TRACE) {
		requests_refuse(a, -EINVAL, "level is counters or trace");
		return;
	}
	hr__service_job_level(job, (uint32_t)level, (uint64_t)hr_message_get_int(m, "for_ms", 0));
	over(a);
}

/* Handed over: if the job's process hangs, only this client waits. */
static void hand_over(struct client *a, const struct job *job, const struct hr_message *m)
{
	if (job->channel < 0 || hr_control_send_fd(job->channel, m, a->fd) < 0)
		requests_refuse(a, -EBUSY,
				"the process that records this job does not listen: try again");
	else
		client_close(a);
}

static void do_live(struct client *a, const struct hr_message *m)
{
	struct job *job = meant(a, m);

	if (job && may(a, job))
		hand_over(a, job, m);
}

/* For probes, processes that the client starts from now on belong to the job; the client does not. */
static void do_follow(struct client *a, const struct hr_message *m)
{
	struct job *job = meant(a, m);
	struct hr_message *out = &a->service->out;

	if (!job || !may(a, job))
		return;
	hr_message_init(out, "follow");
	hr_message_add_int(out, "pid", a->pid);
	hand_over(a, job, out);
}

static void requests_take(struct client *a)
{
	const struct hr_message *m = &a->service->in;
	bool root = a->uid == 0;

	if (hr_message_is(m, "status"))
		do_status(a);
	else if (hr_message_is(m, "level"))
		do_level(a, m);
	else if (hr_message_is(m, "live"))
		do_live(a, m);
	else if (hr_message_is(m, "follow"))
		do_follow(a, m);
	else if (!hr_message_is(m, "begin") && !hr_message_is(m, "end") &&
		 !hr_message_is(m, "killed"))
		requests_refuse(a, -ENOSYS, "this headraced does not know that request");
	else if (!root)
		requests_refuse(a, -EPERM, "only root may do that: prolog and epilog");
	else if (hr_message_is(m, "begin"))
		do_begin(a, m);
	else if (hr_message_is(m, "killed"))
		do_killed(a, m);
	else
		do_end(a, m);
}

static void on_request(uv_poll_t *poll, int status, int events)
{
	struct client *a = poll->data;
	int r = status < 0 ? status : hr_control_recv(a->fd, &a->service->in);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r < 0 || a->awaits_end || a->awaits_start)
		client_close(a);
	else
		requests_take(a);
}

/* Prolog and epilog find a place whatever users do. */
static bool has_place(const struct service *s, uint32_t uid)
{
	unsigned own = 0;

	for (const struct client *a = s->clients; a; a = a->next)
		own += a->uid == uid;
	if (uid == 0)
		return own < ASKERS_MOST;
	if (own < ASKERS_EACH && s->n_clients < ASKERS_MOST)
		return true;
	hr_log_about(HR_LOG_WARNING, "askers", "user %u has %u of %u connections to control.sock",
		     uid, own, s->n_clients);
	return false;
}

void hr__service_on_client(uv_poll_t *poll, int status, int events)
{
	struct service *s = poll->data;
	int fd = accept4(s->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t bytes = sizeof(peer);
	struct client *a;

	(void)status;
	(void)events;
	if (fd < 0)
		return;
	a = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && has_place(s, peer.uid)
		? calloc(1, sizeof(*a))
		: NULL;
	if (!a) {
		close(fd);
		return;
	}
	*a = (struct client){.next = s->clients,
			     .service = s,
			     .fd = fd,
			     .uid = peer.uid,
			     .pid = peer.pid,
			     .since_ms = hr__service_now_ms(s)};
	a->poll.data = a;
	s->clients = a;
	s->n_clients++;
	uv_poll_init(&s->loop, &a->poll, fd);
	uv_poll_start(&a->poll, UV_READABLE | UV_DISCONNECT, on_request);
}
