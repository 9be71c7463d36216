/* SPDX-License-Identifier: Apache-2.0 */
/* Shims that knock: which job is theirs, and on to its worker, unread. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/hello.h"
#include "daemon/service/internal.h"

#define ACCEPT_MOST 256u /* in one turn of the loop */

/* What a hello says of its job. */
struct named {
	char job[JOB_BYTES];	   /* HEADRACE_JOB */
	char scheduler[JOB_BYTES]; /* SLURM_JOB_ID and its like */
	bool asked;		   /* HEADRACE=on */
};

/* In order of preference; the first that is set counts. */
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

/*
 * The job of a line of /proc/PID/cgroup, "4:cpuset:/slurm/uid_5/job_127/step_0" or
 * "0::/system.slice/slurmstepd.scope/job_127/step_0". Below other folders users can make cgroups of any name.
 */
static bool line_job(const char *line, char ret[JOB_BYTES])
{
	const char *path = strchr(line, '/'), *end = strchrnul(line, '\n'), *job;
	size_t n;

	if (!path || path >= end ||
	    (strncmp(path, "/slurm", 6) != 0 && strncmp(path, "/system.slice/", 14) != 0))
		return false;
	job = strstr(path, "/job_");
	n = job && job < end ? strspn(job + 5, "0123456789") : 0;
	if (n == 0 || (job[5 + n] != '/' && job[5 + n] != '\n' && job[5 + n] != '\0'))
		return false;
	snprintf(ret, JOB_BYTES, "%.*s", (int)n, job + 5);
	return true;
}

/* Slurm's cgroup of a process names its job, and no process can leave it. */
static bool cgroup_job(pid_t pid, char ret[JOB_BYTES])
{
	char path[64], text[4096];
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line_job(line, ret))
			return true;
	}
	return false;
}

/* ---- whose ------------------------------------------------------------------------------------------ */

/* Once a minute for each user. */
static void say_refused(const struct ucred *peer, const char *why)
{
	char key[32];

	snprintf(key, sizeof(key), "refused %u", peer->uid);
	hr_log_about(HR_LOG_WARNING, key, "process %d of user %u is not recorded: %s",
		     (int)peer->pid, peer->uid, why);
}

/* A name that the process could choose itself is one among its user's own: nobody takes another's id, here or at a collector. */
static struct job *begin_unannounced(struct service *s, const char *name, bool certain,
				     const struct ucred *peer)
{
	char own[JOB_BYTES + 16];
	struct job_spec spec = {
	    .id = certain ? name : own, .scheduler = name, .uid = peer->uid, .level = -1};
	char *error = NULL;
	struct job *job;

	snprintf(own, sizeof(own), "u%u-%s", peer->uid, name);
	job = sv__job_begin(s, &spec, &error);

	if (!job) {
		s->refused++;
		say_refused(peer, error ? error : "no memory");
	}
	free(error);
	return job;
}

static void refuse_other(struct service *s, const struct job *job, const struct ucred *peer)
{
	char why[JOB_BYTES + 64];

	s->refused++;
	snprintf(why, sizeof(why), "it names job %s of user %u", job->id, job->uid);
	say_refused(peer, why);
}

/* Of a job that nobody has announced. */
static bool may_record(const struct service *s, const struct ucred *peer, const struct named *named)
{
	const struct hr_policy_rules rules = sv__policy(s);
	enum hr_policy policy = hr_policy_decide(&rules, peer->uid, NULL).policy;

	return policy == HR_POLICY_RECORD || (policy == HR_POLICY_ASKED && named->asked);
}

/* NULL: it is not to be recorded. */
static struct job *job_of_peer(struct service *s, const struct ucred *peer,
			       const struct named *named)
{
	char cgroup[JOB_BYTES];
	bool certain = cgroup_job(peer->pid, cgroup);
	const char *name = named->job[0] != '\0' ? named->job : named->scheduler;
	struct job *job;

	if (certain)
		name = cgroup;
	if (name[0] == '\0') {
		s->unplaced++;
		return NULL;
	}
	job = sv__job_named(s, name, peer->uid);
	if (!job)
		return s->c->unregistered == HR_UNREGISTERED_RECORD && may_record(s, peer, named)
			   ? begin_unannounced(s, name, certain, peer)
			   : NULL;
	if (job->uid != peer->uid && peer->uid != 0) {
		refuse_other(s, job, peer);
		return NULL;
	}
	if (job->policy == HR_POLICY_ASKED && !named->asked)
		return NULL;
	return job->state == JOB_DRAINING || job->state == JOB_OFF ? NULL : job;
}

/* ---- on --------------------------------------------------------------------------------------------- */

static bool pass(struct job *job, int fd)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {(char[]){"c"}, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(job->door, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* So that the shim does not wait for us: it goes on without, and says so where it can. */
static void answer(int fd, int status)
{
	const struct hr_ack ack = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .status = status};

	(void)send(fd, &ack, sizeof(ack), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The hello lies in the socket's queue, and stays there for the worker. False: it has not come yet. */
static bool route(struct service *s, int fd)
{
	static uint8_t message[HR_HELLO_MAX_BYTES];
	ssize_t n = recv(fd, message, sizeof(message), MSG_PEEK | MSG_DONTWAIT);
	socklen_t bytes;
	struct hr_hello hello;
	struct named named;
	struct ucred peer;
	struct job *job;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	bytes = sizeof(peer);
	if (n <= 0 || hr_hello_check(message, (size_t)n, &hello) == -EBADMSG ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0 || peer.pid <= 0)
		return true;
	read_names(message, (size_t)n, &named);
	job = job_of_peer(s, &peer, &named);
	if (!job || !pass(job, fd))
		answer(fd, job ? -EAGAIN : -EACCES);
	return true;
}

/* ---- guests: the hello has not come with the connection ----------------------------------------------- */

static void guest_freed(uv_handle_t *handle)
{
	free(handle->data);
}

static void guest_leave(struct guest *g)
{
	struct guest **link = &g->service->guests;

	while (*link != g)
		link = &(*link)->next;
	*link = g->next;
	g->service->n_guests--;
	uv_poll_stop(&g->poll);
	close(g->fd);
	uv_close((uv_handle_t *)&g->poll, guest_freed);
}

static void on_guest(uv_poll_t *poll, int status, int events)
{
	struct guest *g = poll->data;

	(void)events;
	if (status < 0 || route(g->service, g->fd))
		guest_leave(g);
}

static void guest_enter(struct service *s, int fd)
{
	struct guest *g;

	if (s->n_guests >= GUESTS_MOST) { /* the oldest stands last */
		for (g = s->guests; g->next;)
			g = g->next;
		guest_leave(g);
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		close(fd);
		return;
	}
	*g = (struct guest){.next = s->guests, .service = s, .fd = fd, .since_ms = sv__now_ms(s)};
	g->poll.data = g;
	s->guests = g;
	s->n_guests++;
	uv_poll_init(&s->loop, &g->poll, fd);
	uv_poll_start(&g->poll, UV_READABLE, on_guest);
}

void sv__guests_tick(struct service *s)
{
	for (struct guest *g = s->guests, *next; g; g = next) {
		next = g->next;
		if (sv__now_ms(s) - g->since_ms >= GUEST_MS)
			guest_leave(g);
	}
}

void sv__guests_leave(struct service *s)
{
	while (s->guests)
		guest_leave(s->guests);
}

void sv__on_shim(uv_poll_t *poll, int status, int events)
{
	struct service *s = poll->data;

	(void)status;
	(void)events;
	for (unsigned i = 0; i < ACCEPT_MOST; i++) {
		int fd = accept4(s->shim_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (route(s, fd))
			close(fd);
		else
			guest_enter(s, fd);
	}
}
