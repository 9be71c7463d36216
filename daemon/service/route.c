/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the job of a shim's connection, and passes the connection to the recording process. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/base/loop.h"
#include "daemon/base/hello.h"
#include "daemon/base/passfd.h"
#include "daemon/service/internal.h"

#define ACCEPT_MOST 256u

struct named {
	char job[JOB_BYTES];	   /* value of HEADRACE_JOB */
	char scheduler[JOB_BYTES]; /* value of SLURM_JOB_ID or another of scheduler_names */
	bool asked;		   /* HEADRACE=on is set */
	struct cgroup_of cgroup;   /* Slurm's cgroup, which processes cannot leave */
};

/* The first variable that is set counts. */
static const char *const scheduler_names[] = {
    "SLURM_JOB_ID=", "SLURM_JOBID=",  "PBS_JOBID=", "FLUX_JOB_ID=",
    "LSB_JOBID=",    "COBALT_JOBID=", "JOB_ID="};

static void take_value(const struct hr_hello_item *item, size_t skip, char ret[JOB_BYTES])
{
	size_t n = item->bytes - skip;

	if (n >= JOB_BYTES || memchr(item->value + skip, '\0', n))
		return;
	memcpy(ret, item->value + skip, n);
	ret[n] = '\0';
}

static void read_names(const uint8_t *message, size_t bytes, struct named *ret)
{
	size_t rank = sizeof(scheduler_names) / sizeof(scheduler_names[0]), at = 0;
	struct hr_hello_item item;

	*ret = (struct named){.asked = false};
	while (hr_hello_next(message, bytes, &at, &item)) {
		if (item.kind != HR_ITEM_ENV)
			continue;
		if (item.bytes > 13 && memcmp(item.value, "HEADRACE_JOB=", 13) == 0)
			take_value(&item, 13, ret->job);
		if (item.bytes == 11 && memcmp(item.value, "HEADRACE=on", 11) == 0)
			ret->asked = true;
		for (size_t i = 0; i < rank; i++) {
			size_t n = strlen(scheduler_names[i]);

			if (item.bytes <= n || memcmp(item.value, scheduler_names[i], n) != 0)
				continue;
			take_value(&item, n, ret->scheduler);
			rank = i;
		}
	}
}

/* ---- the job --------------------------------------------------------------------------------- */

/* Counts a refused process, and logs it at most once a minute per user. */
__attribute__((format(printf, 3, 4))) static void
count_refused(struct service *s, const struct ucred *peer, const char *why, ...)
{
	char key[32], text[512];
	va_list args;

	va_start(args, why);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is one line above
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	s->refused++;
	snprintf(key, sizeof(key), "refused %u", peer->uid);
	hr_log_about(HR_LOG_WARNING, key, "process %d of user %u is not recorded: %s",
		     (int)peer->pid, peer->uid, text);
}

/*
 * Begins an unregistered job. `certain`: the name comes from the cgroup. Otherwise, a user could
 * have forged the name, so the id gets a prefix.
 */
static struct job *begin_unregistered(struct service *s, const char *name, bool certain,
				      const struct ucred *peer)
{
	char own[JOB_BYTES + 16];
	struct job_spec spec = {.id = certain ? name : own,
				.scheduler = name,
				.uid = peer->uid,
				.level = -1,
				.probes = -1};
	char *error = NULL;
	struct job *job;

	snprintf(own, sizeof(own), "u%u-%s", peer->uid, name);
	job = hr__service_job_begin(s, &spec, &error);
	if (!job)
		count_refused(s, peer, "%s", error ? error : "no memory");
	free(error);
	return job;
}

/* Returns whether the policy allows an unregistered job of this process. */
static bool may_record(const struct service *s, const struct ucred *peer, const struct named *named)
{
	const struct hr_policy_rules rules = hr__service_policy(s);
	enum hr_policy policy = hr_policy_decide(&rules, peer->uid, NULL).policy;

	return policy == HR_POLICY_RECORD || (policy == HR_POLICY_ASKED && named->asked);
}

/*
 * Finds or begins the job of a process. -ECANCELED: the policy excludes the process; -EACCES: the
 * process has no job now.
 */
static int job_of_peer(struct service *s, const struct ucred *peer, const struct named *named,
		       struct job **ret)
{
	bool certain = named->cgroup.job[0] != '\0';
	const char *name = named->job[0] != '\0' ? named->job : named->scheduler;
	struct job *job;

	*ret = NULL;
	if (certain)
		name = named->cgroup.job;
	if (name[0] == '\0') {
		s->unplaced++;
		return -EACCES;
	}
	job = hr__service_job_named(s, name, peer->uid);
	if (!job) {
		if (s->c->unregistered != HR_UNREGISTERED_RECORD)
			return -EACCES; /* a prolog may still register the job */
		if (!may_record(s, peer, named))
			return -ECANCELED;
		*ret = begin_unregistered(s, name, certain, peer);
		return *ret ? 0 : -EACCES;
	}
	if (job->uid != peer->uid && peer->uid != 0) {
		count_refused(s, peer, "it names job %s of user %u", job->id, job->uid);
		return -EACCES;
	}
	if (job->state == JOB_OFF || (job->policy == HR_POLICY_ASKED && !named->asked))
		return -ECANCELED;
	if (job->state == JOB_DRAINING) { /* the end of the job is already stored */
		s->unplaced++;
		return -EACCES;
	}
	*ret = job;
	return 0;
}

static void follow_cgroup(struct job *job, const char *folder)
{
	char *error = NULL;
	int r = hr__service_cgroup_set(job, folder, &error);

	if (r < 0)
		hr_log_about(HR_LOG_WARNING, folder, "job %s: probes do not record its cgroup: %s",
			     job->id, error ? error : strerrordesc_np(-r));
	free(error);
}

/* ---- to the worker --------------------------------------------------------------------------- */

/* Sends a refusal, because the shim waits for an answer. */
static void route_refuse(int fd, uint32_t abi, int status)
{
	const struct hr_ack ack = {.magic = HR_ABI_MAGIC, .abi = abi, .status = status};

	(void)send(fd, &ack, sizeof(ack), MSG_DONTWAIT | MSG_NOSIGNAL);
	hr_hello_discard(fd);
}

/* Passes a connection to the recording process of a job. Returns false if a limit is reached. */
static bool pass_to_worker(struct job *job, int fd, bool new_session, const struct ucred *peer)
{
	struct service *s = job->service;
	char why[WHY_BYTES] = "the hand-off queue of its job is full";
	bool limited = hr__service_limit_reached(job, new_session, why);

	if (!limited && hr_passfd_send(job->handoff, 0, fd) == 0) {
		job->passed++;
		return true;
	}
	s->limited += limited;
	job->limited += new_session;
	count_refused(s, peer, "%s", why);
	return false;
}

/* Reads the hello of a connection, and passes the connection on. False: no hello has arrived. */
static bool route_connection(struct service *s, int fd)
{
	static uint8_t message[HR_HELLO_MAX_BYTES];
	ssize_t n = recv(fd, message, sizeof(message), MSG_PEEK | MSG_DONTWAIT);
	socklen_t bytes;
	struct hr_hello hello;
	struct named named;
	struct ucred peer;
	struct job *job;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	bytes = sizeof(peer);
	r = n > 0 ? hr_hello_check(message, (size_t)n, &hello) : -EBADMSG;
	if (r == -EBADMSG || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0 ||
	    peer.pid <= 0)
		return true;
	if (r < 0) {
		count_refused(s, &peer,
			      "its libheadrace.so has ABI version %u, which this headraced "
			      "(version %u) does not support",
			      hello.abi, HR_ABI_VERSION);
		route_refuse(fd, HR_ABI_VERSION, r);
		return true;
	}
	read_names(message, (size_t)n, &named);
	hr__service_cgroup_of(peer.pid, &named.cgroup);
	r = job_of_peer(s, &peer, &named, &job);
	if (r == 0 && named.cgroup.folder[0] != '\0')
		follow_cgroup(job, named.cgroup.folder);
	if (r < 0)
		route_refuse(fd, hello.abi, r);
	else if (!pass_to_worker(job, fd, hello.kind == HR_HELLO_ATTACH, &peer))
		route_refuse(fd, hello.abi, -ENOSPC);
	return true;
}

/* ---- accepted connections, until the hand-off queue of a worker has them --------------------- */

/*
 * An accepted connection is no longer in the kernel's backlog. So it stays in the accept queue,
 * which systemd retains, until it is handled. The list `pending` has the same order as the queue.
 * After a kill, the next service may find a connection that was already handled. The hello of this
 * connection is gone, so the service drops the connection.
 */
static void accept_queue_trim(struct service *s)
{
	while (s->pending && s->pending->fd < 0) {
		struct pending *g = s->pending;

		if (g->queued)
			hr_passfd_drop(s->accept_queue[0]);
		s->pending = g->next;
		if (!s->pending)
			s->pending_last = &s->pending;
		free(g);
	}
}

static void pending_done(struct pending *g)
{
	if (g->poll) /* stop before close(): a new file may get the number afterwards */
		uv_close((uv_handle_t *)g->poll, hr_handle_free);
	g->poll = NULL;
	close(g->fd);
	g->fd = -1;
	g->service->n_pending--;
}

static void on_pending(uv_poll_t *poll, int status, int events)
{
	struct pending *g = poll->data;
	struct service *s = g->service;

	(void)events;
	if (status == 0 && !route_connection(s, g->fd))
		return;
	pending_done(g);
	accept_queue_trim(s);
}

static void pending_check(struct pending *g)
{
	bool done = route_connection(g->service, g->fd);

	if (!done)
		g->poll = calloc(1, sizeof(*g->poll));
	if (done || !g->poll) {
		pending_done(g);
		return;
	}
	g->poll->data = g;
	uv_poll_init(&g->service->loop, g->poll, g->fd);
	uv_poll_start(g->poll, UV_READABLE, on_pending);
}

/*
 * Routes earlier connections of this user that have a hello, because later ones may refer to them:
 * the second connection of a process refers to the first, and a child's hello to its parent's. Many
 * silent connections of a user delay only this user.
 */
static void read_earlier(struct service *s, const struct pending *last)
{
	struct pollfd p[PENDING_MOST + 1];
	nfds_t n = 0, i = 0;

	for (const struct pending *g = s->pending; g != last; g = g->next)
		if (g->fd >= 0 && g->uid == last->uid)
			p[n++] = (struct pollfd){.fd = g->fd, .events = POLLIN};
	if (n == 0 || poll(p, n, 0) <= 0)
		return;
	for (struct pending *g = s->pending; g != last; g = g->next)
		if (g->fd >= 0 && g->uid == last->uid && p[i++].revents != 0 &&
		    route_connection(s, g->fd))
			pending_done(g);
}

static struct pending *pending_new(struct service *s, int fd)
{
	bool queued = hr_passfd_send(s->accept_queue[1], (uint32_t)getpid(), fd) == 0;
	struct pending *g = calloc(1, sizeof(*g));
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(peer);

	if (!g) {
		close(fd);
		return NULL;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
	*g = (struct pending){.service = s,
			      .fd = fd,
			      .queued = queued,
			      .uid = peer.uid,
			      .since_ms = hr__service_now_ms(s)};
	*s->pending_last = g;
	s->pending_last = &g->next;
	s->n_pending++;
	return g;
}

static void pending_open(struct service *s, int fd)
{
	struct pending *g = pending_new(s, fd), *oldest = s->pending;

	if (g && s->n_pending > PENDING_MOST) {
		while (oldest->fd < 0)
			oldest = oldest->next;
		pending_done(oldest);
	}
	if (g) {
		read_earlier(s, g);
		pending_check(g);
	}
	accept_queue_trim(s);
}

void hr__service_pending_tick(struct service *s)
{
	for (struct pending *g = s->pending; g; g = g->next)
		if (g->fd >= 0 && hr__service_now_ms(s) - g->since_ms >= HELLO_MS)
			pending_done(g);
	accept_queue_trim(s);
}

void hr__service_pending_leave(struct service *s)
{
	for (struct pending *g = s->pending, *next; g; g = next) {
		next = g->next;
		if (g->fd >= 0)
			pending_done(g);
		free(g);
	}
	s->pending = NULL;
	s->pending_last = &s->pending;
}

/* Processes the connections that an earlier service left in the accept queue. */
void hr__service_pending_resume(struct service *s)
{
	uint32_t by;
	int fd;

	while (hr_passfd_peek(s->accept_queue[0], &by, &fd) == 0) {
		if (by == (uint32_t)getpid()) {
			close(fd);
			break;
		}
		if (fd >= 0)
			pending_new(s, fd);
		hr_passfd_drop(s->accept_queue[0]);
	}
	for (struct pending *g = s->pending; g; g = g->next)
		pending_check(g);
	accept_queue_trim(s);
}

void hr__service_on_shim(uv_poll_t *poll, int status, int events)
{
	struct service *s = poll->data;

	(void)status;
	(void)events;
	for (unsigned i = 0; i < ACCEPT_MOST; i++) {
		int fd = hr_accept(poll, s->shim_fd);

		if (fd < 0)
			return;
		pending_open(s, fd);
	}
}
