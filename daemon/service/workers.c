/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and restarts recording processes, one for each job, and receives their messages. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/now.h"
#include "common/text.h"
#include "common/fdstore.h"
#include "daemon/base/hello.h"
#include "daemon/base/loop.h"
#include "daemon/base/passfd.h"
#include "daemon/service/internal.h"
#include "daemon/service/worker.h"

#define RESTARTS_MOST 5u
#define RESTARTS_MS   10000u /* also the pause before a failing job is tried again */
/* How long recording processes may flush before they are killed. A kill loses no record. */
#define PAUSE_MS 5000

/* ---- messages of workers --------------------------------------------------------------------- */

static void take_status(struct job *job, Headrace__JobStatus *status)
{
	uint64_t now = hr__service_now_ms(job->service);
	char *newline = strchr(status->no_probes, '\n');

	hr__service_metrics_count(job, status);
	job->service->spool_bytes = status->spool_bytes;
	if (newline)
		*newline = '\0'; /* only the log has the other lines, from the BPF verifier */
	headrace__job_status__free_unpacked(job->status, NULL);
	job->status = status;
	job->status_ms = now;
	if (status->processes > 0)
		job->idle_since_ms = 0;
	else if (job->idle_since_ms == 0)
		job->idle_since_ms = now;
}

static void take_failure(struct job *job, const char *why)
{
	char text[JOB_BYTES + sizeof(job->why) + 16];

	snprintf(job->why, sizeof(job->why), "%s", why);
	snprintf(text, sizeof(text), "job %s: %s", job->id, job->why);
	hr__service_clients_begun(job, text);
}

static void take_message(struct job *job, Headrace__Control *m)
{
	switch (m->kind_case) {
	case HR_CONTROL(JOB_ENDED):
		job->state = JOB_DRAINING;
		hr__service_clients_notify(job, m);
		/* fall through */
	case HR_CONTROL(JOB_STATUS):
		take_status(job, m->job_status);
		hr_control_keep(m);
		break;
	case HR_CONTROL(FAILED):
		take_failure(job, m->failed->text);
		break;
	case HR_CONTROL(SENDING):
		job->status->unsent_frames = m->sending->left;
		hr__service_clients_notify(job, m);
		break;
	default:
		break;
	}
}

static int receive(struct job *job)
{
	Headrace__Control *m;
	int r = hr_control_recv(job->channel, &m);

	if (r == 0)
		take_message(job, m);
	hr_control_free(m);
	return r;
}

static void on_channel(uv_poll_t *poll, int status, int events)
{
	int r = status < 0 ? status : receive(poll->data);

	(void)events;
	if (r < 0 && r != -EAGAIN && r != -EBADMSG)
		uv_poll_stop(poll); /* the recording process has ended; SIGCHLD follows */
}

/* ---- messages to workers --------------------------------------------------------------------- */

void hr__service_send_end(struct job *job)
{
	Headrace__JobRequest end = HEADRACE__JOB_REQUEST__INIT;

	job->state = JOB_ENDING;
	end.state = job->end_state;
	end.linger_ms = job->linger_ms;
	end.drain_ms = job->drain_ms;
	hr__service_worker_send(job, HR_CONTROL(END_JOB), &end.base);
}

void hr__service_send_level(struct job *job)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;

	request.has_level = true;
	request.level = job->level;
	hr__service_worker_send(job, HR_CONTROL(SET_LEVEL), &request.base);
}

/* Call it when the recording process is ready. Sends what has changed since its start. */
static void job_ready(struct job *job)
{
	job->state = JOB_RUNNING;
	job->recorded = true;
	job->failed_ms = 0;
	job->why[0] = '\0';
	hr__service_clients_begun(job, NULL);
	hr__service_send_level(job);
	hr__service_cgroup_send(job);
	if (job->end_state[0] != '\0')
		hr__service_send_end(job);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static struct job *job_of(struct service *s, pid_t pid)
{
	for (struct job *job = s->jobs; job; job = job->next)
		if (job->pid == pid)
			return job;
	return NULL;
}

/* Keeps a descriptor here and, with the job's prefix, in systemd's descriptor store. */
static void keep_descriptor(struct job *job, const char *name, int fd)
{
	char prefix[JOB_PREFIX], full[JOB_PREFIX + 16];

	hr__service_job_prefix(job, prefix);
	snprintf(full, sizeof(full), "%s%s", prefix, name);
	hr_fdstore_push(full, fd);
	hr_kept_add(&job->kept, name, fd);
}

static bool read_notice(struct service *s)
{
	struct hr_notice notice;
	struct job *job;

	if (hr_notify_read(&s->notify, &notice) < 0)
		return false;
	job = notice.from > 0 ? job_of(s, notice.from) : NULL;
	if (!job) {
		if (notice.fd >= 0)
			close(notice.fd);
		return true;
	}
	hr_kept_take(&job->kept, &notice); /* systemd has got the notice, too */
	if (job->state == JOB_STARTING && hr_notice_has(&notice, "READY", "1"))
		job_ready(job);
	return true;
}

void hr__service_on_notice(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	while (read_notice(poll->data))
		;
}

/* ---- starting -------------------------------------------------------------------------------- */

static void forget_process(struct job *job)
{
	if (job->poll)
		uv_close((uv_handle_t *)job->poll, hr_handle_free);
	job->poll = NULL;
	if (job->channel >= 0)
		close(job->channel);
	job->channel = -1;
	job->pid = 0;
}

static void become_worker(struct job *job, int conf, int channel, int handoff)
{
	struct service *s = job->service;
	char *argv[] = {(char[]){"headraced"}, (char[]){"job"}, job->id, NULL};
	const char *systemd = getenv("NOTIFY_SOCKET");
	int sockets[] = {channel, handoff};
	char prefix[JOB_PREFIX];

	hr__service_job_prefix(job, prefix);
	/* NOLINTBEGIN(concurrency-mt-unsafe): parent and child have one thread each */
	if (dup2(conf, STDIN_FILENO) < 0 || setenv("HEADRACE_FDSTORE_PREFIX", prefix, 1) < 0 ||
	    (systemd && setenv("HEADRACE_FDSTORE", systemd, 1) < 0))
		_exit(HR_KEPT_FAILED);
	/* NOLINTEND(concurrency-mt-unsafe) */
	hr_kept_exec(&job->kept, &s->notify, s->exe, argv, sockets, 2);
}

/* Makes the hand-off queue, which the service and systemd retain for the next recording process. */
static int open_handoff(struct job *job, int *ret_theirs)
{
	int pair[2], r;

	job->handoff = hr_kept_find(&job->kept, "ours");
	*ret_theirs = hr_kept_find(&job->kept, "door");
	if (job->handoff >= 0 && *ret_theirs >= 0)
		return 0;
	r = hr_passfd_open(pair);
	if (r < 0)
		return r;
	keep_descriptor(job, "door", pair[0]);
	keep_descriptor(job, "ours", pair[1]);
	job->handoff = hr_kept_find(&job->kept, "ours");
	*ret_theirs = hr_kept_find(&job->kept, "door");
	return job->handoff >= 0 && *ret_theirs >= 0 ? 0 : -ENOMEM;
}

static int workers_start(struct job *job, int conf)
{
	struct service *s = job->service;
	int pair[2], theirs = -1, r = open_handoff(job, &theirs);

	if (r < 0)
		return r;
	hr__service_limit_start(job, theirs);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	job->poll = calloc(1, sizeof(*job->poll));
	job->pid = job->poll ? fork() : -1;
	if (job->pid == 0)
		become_worker(job, conf, pair[1], theirs);
	close(pair[1]);
	if (job->pid < 0) {
		close(pair[0]);
		free(job->poll);
		job->poll = NULL;
		job->pid = 0;
		return -ENOMEM;
	}
	job->channel = pair[0];
	job->state = JOB_STARTING;
	job->poll->data = job;
	uv_poll_init(&s->loop, job->poll, job->channel);
	uv_poll_start(job->poll, UV_READABLE | UV_DISCONNECT, on_channel);
	return 0;
}

int hr__service_worker_start(struct job *job)
{
	int conf = hr__service_job_conf_open(job), r;

	if (conf < 0)
		return conf;
	r = workers_start(job, conf);
	close(conf);
	return r;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Empties the hand-off queue. Counts the connections whose process will not connect again. */
static void handoff_close(struct job *job)
{
	int handoff = hr_kept_find(&job->kept, "door"), fd;
	uint32_t word;

	while (handoff >= 0 && hr_passfd_peek(handoff, &word, &fd) == 0) {
		if (fd >= 0) {
			job->service->unplaced += hr_hello_discard(fd);
			close(fd);
		}
		hr_passfd_drop(handoff);
	}
}

void hr__service_job_forget(struct job *job, const char *error)
{
	char prefix[JOB_PREFIX], name[JOB_PREFIX + NAME_MAX];

	handoff_close(job);
	hr__service_job_prefix(job, prefix);
	for (size_t i = 0; i < job->kept.n; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, job->kept.list[i].name);
		hr_fdstore_remove(name);
	}
	hr__service_job_unlink(job);
	hr__service_clients_begun(
	    job, "the job is not recorded: its recording process ended; see the log of headraced");
	hr__service_clients_done(job, error);
	hr_log(HR_LOG_INFO,
	       "job %s has ended: %" PRIu64 " operations recorded, %" PRIu64
	       " frames wait in the spool for a collector",
	       job->id, job->status->events, job->status->unsent_frames);
	hr__service_job_free(job);
}

static bool restarts_used_up(struct job *job)
{
	uint64_t now = hr__service_now_ms(job->service);

	if (now - job->restarted_ms > RESTARTS_MS) {
		job->restarted_ms = now;
		job->restarts = 0;
	}
	return ++job->restarts > RESTARTS_MOST;
}

/* Gives the job up. Its journal stays: the uplink or a query of the spool recovers the stream. */
static void workers_give_up(struct job *job)
{
	char text[sizeof(job->why) + 256];
	int n = snprintf(text, sizeof(text), "the recording process failed (%s)", job->why);

	if (job->recorded)
		snprintf(
		    text + n, sizeof(text) - (size_t)n,
		    ": the last %s are not recorded; what was recorded before is in the spool",
		    hr_text_duration((hr__service_now_ms(job->service) - job->failed_ms) * 1000000)
			.s);
	hr_log(HR_LOG_ERROR, "job %s: %s", job->id, text);
	hr__service_job_forget(job, text);
}

void hr__service_worker_failed(struct job *job, const char *why)
{
	uint64_t now = hr__service_now_ms(job->service);

	if (why != job->why)
		snprintf(job->why, sizeof(job->why), "%s", why);
	if (job->failed_ms == 0)
		job->failed_ms = now;
	if (!job->recorded || job->end_state[0] != '\0') {
		workers_give_up(job);
		return;
	}
	hr_log(
	    HR_LOG_ERROR,
	    "job %s is not recorded: its recording process failed (%s); headraced starts another "
	    "in %u s",
	    job->id, job->why, RESTARTS_MS / 1000);
	job->state = JOB_FAILING;
	job->retry_ms = now + RESTARTS_MS;
	if (job->idle_since_ms == 0)
		job->idle_since_ms = now;
}

static void start_again(struct job *job)
{
	int r = hr__service_worker_start(job);

	if (r < 0)
		hr__service_worker_failed(job, strerrordesc_np(-r));
}

void hr__service_worker_retry(struct job *job)
{
	job->restarts = 0;
	start_again(job);
}

static void worker_killed(struct job *job, int signum)
{
	char why[64];

	snprintf(why, sizeof(why), "killed by signal %d", signum);
	if (restarts_used_up(job)) {
		hr__service_worker_failed(job, why);
		return;
	}
	hr_log(HR_LOG_WARNING,
	       "job %s: signal %d killed its recording process; a new one continues", job->id,
	       signum);
	job->service->restarts++;
	start_again(job);
}

static void worker_ended(struct job *job, int status)
{
	struct service *s = job->service;
	char why[64];

	while (read_notice(s))
		; /* reads the notices from before the end */
	while (job->channel >= 0 && receive(job) == 0)
		;
	forget_process(job);
	if (s->stopping)
		return;
	snprintf(why, sizeof(why), "exit status %d", WEXITSTATUS(status));
	if (WIFSIGNALED(status))
		worker_killed(job, WTERMSIG(status));
	else if (WEXITSTATUS(status) == 0)
		hr__service_job_forget(job, NULL);
	else
		hr__service_worker_failed(job, job->why[0] != '\0' ? job->why : why);
}

void hr__service_workers_reap(struct service *s)
{
	struct job *job;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->uplink)
			s->uplink = 0;
		job = job_of(s, pid);
		if (job)
			worker_ended(job, status);
	}
}

void hr__service_workers_pause(struct service *s)
{
	uint64_t until = hr_now_ns(CLOCK_MONOTONIC) + PAUSE_MS * UINT64_C(1000000);
	unsigned alive;

	for (struct job *job = s->jobs; job; job = job->next)
		hr__service_worker_send(job, HR_CONTROL(PAUSE), NULL);
	do {
		usleep(2000);
		hr__service_workers_reap(s);
		alive = 0;
		for (struct job *job = s->jobs; job; job = job->next)
			alive += job->pid != 0;
		while (read_notice(s))
			;
	} while (alive > 0 && hr_now_ns(CLOCK_MONOTONIC) < until);
	for (struct job *job = s->jobs; job; job = job->next)
		if (job->pid != 0)
			kill(job->pid, SIGKILL);
	if (s->uplink != 0)
		kill(s->uplink, SIGTERM);
}
