/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the requests of clients at control.sock (proto/control.proto). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text.h"
#include "common/users.h"
#include "daemon/base/loop.h"
#include "daemon/service/internal.h"

/* ---- status ---------------------------------------------------------------------------------- */

/* Sends the last status of a job, with the fields that the service sets. */
static void send_job(struct client *a, const struct job *job)
{
	uint64_t now = hr__service_now_ms(job->service);
	Headrace__JobStatus status = *job->status;

	status.id = hr_control_text(job->id);
	status.attempt = job->attempt;
	status.uid = job->uid;
	status.name = hr_control_text(job->name);
	status.state = hr_control_text(hr__service_job_state(job->state));
	status.policy = hr_control_text(hr_policy_name(job->policy));
	status.announced = job->registered;
	status.level = job->level;
	status.level_for_ms = job->level_until_ms > now ? job->level_until_ms - now : 0;
	status.pid = job->pid;
	status.failing = hr_control_text(job->why);
	status.collectors = hr_control_text(job->service->c->collectors);
	if (now - job->status_ms > STATUS_FRESH_MS)
		status.events_per_s = status.bytes_per_s = status.steps_per_ks = 0;
	hr_control_send(a->fd, HR_CONTROL(JOB_STATUS), &status.base);
}

static void do_status(struct client *a)
{
	struct service *s = a->service;
	Headrace__NodeStatus node = HEADRACE__NODE_STATUS__INIT;
	bool all = hr_user_is_operator(a->uid, s->c->operators);

	node.node = s->node;
	node.pid = getpid();
	node.uptime_ms = hr__service_now_ms(s) - s->started_ms;
	node.spool = hr_control_text(s->c->spool);
	node.spool_bytes = s->spool_bytes;
	node.spool_limit_bytes = s->c->spool_bytes;
	node.collectors = hr_control_text(s->c->collectors);
	node.jobs = s->n_jobs;
	node.refused = s->refused;
	node.limited = s->limited;
	node.unplaced = s->unplaced;
	hr_control_send(a->fd, HR_CONTROL(NODE_STATUS), &node.base);
	for (const struct job *job = s->jobs; job; job = job->next)
		if (all || job->uid == a->uid)
			send_job(a, job);
	hr__service_client_done(a);
}

/* ---- jobs begin and end ---------------------------------------------------------------------- */

/* Registers a job that its processes or an earlier prolog began. NULL: its cgroup is refused. */
static struct job *register_again(struct job *job, const struct job_spec *spec, char **ret_error)
{
	struct job_spec same = *spec;

	same.probes = job->probes;
	if (hr__service_cgroup_check(job->service, &same, ret_error) < 0)
		return NULL;
	if (spec->cgroup && hr__service_cgroup_set(job, spec->cgroup, ret_error) < 0)
		return NULL;
	if (!job->registered) {
		job->registered = true;
		hr__service_job_note(job);
	}
	return job;
}

static void do_begin(struct client *a, const Headrace__BeginJob *b)
{
	struct service *s = a->service;
	const struct job_spec spec = {
	    .id = b->job,
	    .scheduler = b->scheduler_id[0] != '\0' ? b->scheduler_id : b->job,
	    .name = hr_text_or_null(b->name),
	    .ranks = hr_text_or_null(b->ranks),
	    .local_ranks = hr_text_or_null(b->local_ranks),
	    .uid = b->uid,
	    .attempt = b->attempt,
	    .ranks_expected = b->ranks_expected,
	    .nodes_expected = b->nodes_expected,
	    .account = hr_text_or_null(b->account),
	    .partition = hr_text_or_null(b->partition),
	    .cgroup = hr_text_or_null(b->cgroup),
	    .level = b->has_level ? (int)b->level : -1,
	    .probes = b->has_probes ? b->probes : -1,
	    .registered = true,
	};
	char *error = NULL;
	struct job *job;

	if (b->job[0] == '\0' || !b->has_uid || b->uid == UINT32_MAX ||
	    spec.level > HR_LEVEL_TRACE) {
		hr__service_client_refuse(a, -EINVAL,
					  "begin_job needs a job id, a uid and a valid level");
		return;
	}
	job = hr__service_job_find(s, spec.id, spec.attempt);
	if (job && job->uid == spec.uid)
		job = register_again(job, &spec, &error);
	else
		job = hr__service_job_begin(s, &spec, &error);
	if (!job)
		hr__service_client_refuse(a, -EINVAL, error ? error : "no memory");
	else if (job->state == JOB_STARTING)
		a->awaits_start = job;
	else
		hr__service_client_done(a);
	free(error);
}

/* Finds the requested job, or an unregistered one of the user. NULL: the client got an error. */
static struct job *find_job(struct client *a, const Headrace__JobRequest *q)
{
	char text[JOB_BYTES + 64];
	struct job *job = hr__service_job_find(a->service, q->job,
					       q->has_attempt ? (int64_t)q->attempt : ANY_ATTEMPT);

	if (!job && q->has_uid)
		job = hr__service_job_named(a->service, q->job, q->uid);
	if (!job) {
		snprintf(text, sizeof(text), "this node has no job %.*s", (int)JOB_BYTES, q->job);
		hr__service_client_refuse(a, -ENOENT, text);
	}
	return job;
}

static void do_end(struct client *a, const Headrace__JobRequest *q)
{
	struct job *job = find_job(a, q);

	if (!job)
		return;
	a->awaits_end = job;
	hr__service_job_end(job, q->state[0] != '\0' ? q->state : "ended", q->linger_ms,
			    q->drain_ms);
}

static void do_killed(struct client *a, const Headrace__JobRequest *q)
{
	struct job *job = find_job(a, q);

	if (!job)
		return;
	job->killed = true;
	hr__service_job_note(job);
	hr__service_client_done(a);
}

/* ---- requests of owners ---------------------------------------------------------------------- */

/* Finds a recorded job that the client may change. NULL: an error was sent to the client. */
static struct job *find_own_job(struct client *a, const Headrace__JobRequest *q)
{
	struct job *job = find_job(a, q);

	if (!job)
		return NULL;
	if (a->uid != job->uid && !hr_user_is_operator(a->uid, a->service->c->operators))
		hr__service_client_refuse(a, -EPERM, "the job belongs to another user");
	else if (job->state == JOB_OFF)
		hr__service_client_refuse(a, -EPERM, "the job is not recorded, by policy");
	else
		return job;
	return NULL;
}

static void do_level(struct client *a, const Headrace__JobRequest *q)
{
	struct job *job = find_own_job(a, q);

	if (!job)
		return;
	if (!q->has_level || q->level < HR_LEVEL_COUNTERS || q->level > HR_LEVEL_TRACE) {
		hr__service_client_refuse(a, -EINVAL, "the level must be counters or trace");
		return;
	}
	hr__service_job_level(job, q->level, q->for_ms);
	hr__service_client_done(a);
}

/* Passes the connection to the recording process. If that hangs, only this client waits. */
static void pass_to_worker(struct client *a, hr_control_kind kind, const Headrace__JobRequest *q)
{
	const struct job *job = find_own_job(a, q);

	if (!job)
		return;
	if (job->channel < 0 || hr_control_send_fd(job->channel, kind, &q->base, a->fd) < 0)
		hr__service_client_refuse(
		    a, -EBUSY, "the recording process of this job accepts no messages: try again");
	else
		hr__service_client_close(a);
}

static void take_owners_request(struct client *a, Headrace__Control *m)
{
	switch (m->kind_case) {
	case HR_CONTROL(GET_STATUS):
		do_status(a);
		break;
	case HR_CONTROL(SET_LEVEL):
		do_level(a, m->set_level);
		break;
	case HR_CONTROL(FOLLOW):
		/* Probes record the processes that the client starts, but not the client. */
		m->follow->pid = a->pid;
		/* fall through */
	case HR_CONTROL(GET_LIVE):
		pass_to_worker(a, m->kind_case, m->get_live);
		break;
	default:
		hr__service_client_refuse(a, -ENOSYS,
					  "this headraced does not support that request");
	}
}

static void requests_take(struct client *a, Headrace__Control *m)
{
	bool for_root = m->kind_case == HR_CONTROL(BEGIN_JOB) ||
			m->kind_case == HR_CONTROL(END_JOB) ||
			m->kind_case == HR_CONTROL(JOB_KILLED);

	if (for_root && a->uid != 0)
		hr__service_client_refuse(a, -EPERM, "only root may do that (prolog and epilog)");
	else if (m->kind_case == HR_CONTROL(BEGIN_JOB))
		do_begin(a, m->begin_job);
	else if (m->kind_case == HR_CONTROL(END_JOB))
		do_end(a, m->end_job);
	else if (m->kind_case == HR_CONTROL(JOB_KILLED))
		do_killed(a, m->job_killed);
	else
		take_owners_request(a, m);
}

/* ---- connections arrive ---------------------------------------------------------------------- */

static void on_request(uv_poll_t *poll, int status, int events)
{
	struct client *a = poll->data;
	Headrace__Control *m = NULL;
	int r = status < 0 ? status : hr_control_recv(a->fd, &m);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r < 0 || a->awaits_end || a->awaits_start)
		hr__service_client_close(a);
	else
		requests_take(a, m);
	hr_control_free(m);
}

/* Returns whether another client is accepted. Users cannot block root's prolog and epilog. */
static bool has_place(const struct service *s, uint32_t uid)
{
	unsigned own = 0;

	for (const struct client *a = s->clients; a; a = a->next)
		own += a->uid == uid;
	if (uid == 0)
		return own < CLIENTS_MOST;
	if (own < CLIENTS_EACH && s->n_clients < CLIENTS_MOST)
		return true;
	hr_log_about(HR_LOG_WARNING, "clients",
		     "user %u has %u of %u connections to control.sock: no more are accepted now",
		     uid, own, s->n_clients);
	return false;
}

void hr__service_on_client(uv_poll_t *poll, int status, int events)
{
	struct service *s = poll->data;
	int fd = hr_accept(poll, s->control_fd);
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
