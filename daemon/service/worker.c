/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "common/log.h"
#include "daemon/base/cgroup.h"
#include "daemon/base/loop.h"
#include "common/fdstore.h"
#include "daemon/node/live_link.h"
#include "daemon/private/job_status.h"
#include "daemon/spool/spool.h"
#include "proto/abi.h"

#define TICK_MS	  1000u
#define REAP_MS	  20u /* how long the node may need to notice the end of a process */
#define ENDING_MS 5u  /* time between two checks for remaining processes */

struct service_worker {
	uv_loop_t loop;
	uv_poll_t channel;
	uv_timer_t tick;
	struct hr_private_config config;
	struct hr_private_uplink *uplink; /* NULL: the job has no collectors */
	struct hr_spool *spool; /* the uplink owns the spool; without an uplink, this struct does */
	struct hr_node *node;
	struct hr_live_link live;
	struct hr_job_status status;
	uint8_t *sent; /* the last status, packed */
	size_t sent_bytes;
	int channel_fd;
	bool ending, draining, logged_no_probes;
	char state[16];
	uint64_t end_at_ms, drain_ms;
	int exit_status;
};

/* ---- status ---------------------------------------------------------------------------------- */

static void worker_fill(struct service_worker *w, Headrace__JobStatus *ret)
{
	struct hr_node_stats stats;
	struct hr_spool_stats spool;

	hr_node_stats(w->node, &stats);
	hr_job_status_measure(&w->status, &stats, uv_now(&w->loop));
	hr_job_status_fill(&w->status, &stats, ret);
	hr_spool_stats(w->spool, &spool);
	ret->spool_bytes = spool.bytes;
	ret->given_up = spool.given_up;
}

static void log_no_probes(struct service_worker *w)
{
	const char *error = hr_node_probes_error(w->node), *lack = hr_node_probes_lack(w->node);

	if (!w->logged_no_probes && error)
		hr_log(HR_LOG_WARNING, "job %s: recorded without probes: %s", w->config.node.id.job,
		       error);
	else if (!w->logged_no_probes && lack)
		hr_log(HR_LOG_INFO, "job %s: probes: %s", w->config.node.id.job, lack);
	w->logged_no_probes = error != NULL || lack != NULL;
}

/* Sends the status, unless it is unchanged. */
static void send_status(struct service_worker *w)
{
	Headrace__JobStatus status = HEADRACE__JOB_STATUS__INIT;
	uint8_t *packed;
	size_t bytes;

	worker_fill(w, &status);
	bytes = headrace__job_status__get_packed_size(&status);
	packed = malloc(bytes);
	if (packed && headrace__job_status__pack(&status, packed) == w->sent_bytes &&
	    memcmp(packed, w->sent, bytes) == 0) {
		free(packed);
		return;
	}
	if (hr_control_send(w->channel_fd, HR_CONTROL(JOB_STATUS), &status.base) < 0) {
		free(packed);
		return;
	}
	free(w->sent);
	w->sent = packed;
	w->sent_bytes = packed ? bytes : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void worker_leave(struct service_worker *w, int status)
{
	w->exit_status = status;
	uv_stop(&w->loop);
}

static void check_drain(struct service_worker *w)
{
	Headrace__Sending sending = HEADRACE__SENDING__INIT;

	if (!hr_private_uplink_progress(w->uplink, uv_now(&w->loop), &sending))
		return;
	hr_control_send(w->channel_fd, HR_CONTROL(SENDING), &sending.base);
	if (sending.finished)
		worker_leave(w, EXIT_SUCCESS);
}

static void worker_end_job(struct service_worker *w)
{
	Headrace__JobStatus status = HEADRACE__JOB_STATUS__INIT;
	Headrace__Sending nowhere = HEADRACE__SENDING__INIT;

	status.processes_left = (uint32_t)hr_node_attached(w->node, NULL, 0);
	hr_node_stop(w->node, &(struct hr_job_end){.state = w->state,
						   .cut_short = status.processes_left > 0});
	worker_fill(w, &status);
	hr_control_send(w->channel_fd, HR_CONTROL(JOB_ENDED), &status.base);
	if (!w->uplink) {
		nowhere.finished = true;
		hr_control_send(w->channel_fd, HR_CONTROL(SENDING), &nowhere.base);
		worker_leave(w, EXIT_SUCCESS);
		return;
	}
	w->draining = true;
	w->uplink->until_ms = uv_now(&w->loop) + w->drain_ms;
	check_drain(w); /* checks now, because an epilog may wait */
}

static void worker_on_tick(uv_timer_t *timer)
{
	struct service_worker *w = timer->data;

	if (w->draining) {
		check_drain(w);
	} else if (w->ending) {
		if (uv_now(&w->loop) >= w->end_at_ms || hr_node_attached(w->node, NULL, 0) == 0)
			worker_end_job(w);
	} else {
		log_no_probes(w);
		send_status(w);
		hr_private_uplink_show(w->uplink, w->node, uv_now(&w->loop));
	}
}

/* ---- messages of the service ----------------------------------------------------------------- */

static void take_end(struct service_worker *w, const Headrace__JobRequest *end)
{
	uint64_t linger_ms = end->linger_ms;

	snprintf(w->state, sizeof(w->state), "%s", end->state[0] != '\0' ? end->state : "ended");
	w->end_at_ms = uv_now(&w->loop) + (linger_ms > REAP_MS ? linger_ms : REAP_MS);
	w->drain_ms = end->drain_ms;
	w->ending = true;
	uv_timer_start(&w->tick, worker_on_tick, 0, ENDING_MS);
}

/* Handles a request that has the client's connection with it. */
static void take_client(struct service_worker *w, const Headrace__Control *m, int fd)
{
	if (m->kind_case == HR_CONTROL(GET_LIVE)) {
		hr_live_link_take(&w->live, w->node, m->get_live, fd);
		return;
	}
	if (m->kind_case == HR_CONTROL(FOLLOW)) {
		hr_node_root(w->node, m->follow->pid, true);
		hr_control_send(fd, HR_CONTROL(DONE), NULL);
	}
	close(fd);
}

static void take_cgroup(struct service_worker *w, const char *path)
{
	char *error = NULL;
	uint64_t id;
	int r = hr_cgroup_id(path, &id, &error);

	if (r == 0)
		r = hr_node_cgroup(w->node, id);
	if (r < 0)
		hr_log(HR_LOG_WARNING, "job %s: probes do not record the cgroup %s: %s",
		       w->config.node.id.job, path, error ? error : strerrordesc_np(-r));
	free(error);
}

static void take_message(struct service_worker *w, const Headrace__Control *m)
{
	if (m->kind_case == HR_CONTROL(PAUSE)) {
		if (!w->draining)
			hr_node_pause(w->node);
		_exit(HR_WORKER_PAUSED);
	}
	if (m->kind_case == HR_CONTROL(SET_LEVEL))
		hr_node_set_level(w->node, m->set_level->level);
	else if (w->draining)
		return;
	else if (m->kind_case == HR_CONTROL(SET_CGROUP))
		take_cgroup(w, m->set_cgroup->path);
	else if (m->kind_case == HR_CONTROL(COUNT_REFUSED))
		hr_node_refused(w->node, m->count_refused->processes);
	else if (m->kind_case == HR_CONTROL(END_JOB))
		take_end(w, m->end_job);
}

static void on_channel(uv_poll_t *poll, int status, int events)
{
	struct service_worker *w = poll->data;
	Headrace__Control *m = NULL;
	int client = -1;
	int r = status < 0 ? status : hr_control_recv_fd(w->channel_fd, &m, &client);

	(void)events;
	if (r == 0 && client >= 0)
		take_client(w, m, client);
	else if (r == 0)
		take_message(w, m);
	else if (client >= 0)
		close(client);
	hr_control_free(m);
	if (r < 0 && r != -EAGAIN && r != -EBADMSG)
		_exit(HR_WORKER_PAUSED); /* the next service continues the job */
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_spool(struct service_worker *w, char **ret_error)
{
	int r;

	w->config.tls_later = true; /* a bad certificate must not prevent recording */
	r = hr_private_uplink_open(&w->config, &w->uplink, ret_error);
	if (r == 0 && w->uplink) {
		hr_private_uplink_release(w->uplink);
		w->spool = w->uplink->spool;
	} else if (r == 0) {
		r = hr_spool_new(w->config.node.store, w->config.spool_bytes, &w->spool);
	}
	return r;
}

static int open_privacy(struct service_worker *w)
{
	struct hr_privacy_rules *rules = &w->config.node.privacy;
	char *error = NULL;
	int r;

	if (rules->paths == HR_PATHS_FULL)
		return 0;
	r = hr_privacy_key(w->config.privacy_key, rules->key, &error);
	if (error)
		hr_log(HR_LOG_ERROR, "job %s: %s; its pseudonyms differ from those of other jobs",
		       w->config.node.id.job, error);
	free(error);
	return r;
}

/* Reports a failure to the log and to the service, whose client (a prolog) may wait. */
static void report_failure(struct service_worker *w, const char *why)
{
	const char *job = w->config.node.id.job ? w->config.node.id.job : "?";
	Headrace__Error failed = HEADRACE__ERROR__INIT;
	char text[HR_WORKER_WHY_BYTES];

	snprintf(text, sizeof(text), "%s", why);
	failed.text = text;
	hr_log(HR_LOG_ERROR, "job %s: %s", job, text);
	hr_control_send(w->channel_fd, HR_CONTROL(FAILED), &failed.base);
}

static int start_node(struct service_worker *w, int config_fd, int handoff_fd)
{
	char *error = NULL;
	int r = hr_private_config_read(config_fd, &w->config);

	if (r == 0)
		r = open_privacy(w);
	if (r == 0)
		r = open_spool(w, &error);
	if (r == 0) {
		w->config.node.handoff_fd = handoff_fd;
		/* Loads probes later: this takes seconds, and a prolog may wait. */
		w->config.node.probes_later = true;
		w->config.node.spool = w->spool;
		r = hr_node_new(&w->config.node, &w->node, &error);
	}
	if (r == 0)
		r = hr_node_start(w->node);
	/*
	 * -ESTALE: the journal has the end of the job, so the spool's uplink recovers the stream.
	 */
	if (r < 0 && r != -ESTALE)
		report_failure(w, error ? error : strerrordesc_np(-r));
	free(error);
	return r;
}

static int worker_start_loop(struct service_worker *w)
{
	int r = uv_loop_init(&w->loop);

	if (r < 0)
		return r;
	w->channel.data = w->tick.data = w;
	w->status =
	    (struct hr_job_status){.config = &w->config, .node = w->node, .uplink = w->uplink};
	hr_live_link_init(&w->live, &w->loop);
	uv_poll_init(&w->loop, &w->channel, w->channel_fd);
	uv_poll_start(&w->channel, UV_READABLE | UV_DISCONNECT, on_channel);
	uv_timer_init(&w->loop, &w->tick);
	/* The first status is sent at once, because the service needs it for its limits. */
	uv_timer_start(&w->tick, worker_on_tick, 0, TICK_MS);
	return 0;
}

int hr_service_worker(int config_fd, int channel_fd, int handoff_fd)
{
	struct service_worker *w = calloc(1, sizeof(*w));
	int status = EXIT_FAILURE, r;

	if (!w)
		return EXIT_FAILURE;
	w->channel_fd = channel_fd;
	fcntl(channel_fd, F_SETFD, FD_CLOEXEC);
	fcntl(handoff_fd, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	/* systemd sends SIGTERM to all processes; the service then sends `pause` */
	signal(SIGTERM, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	r = start_node(w, config_fd, handoff_fd);
	if (r == 0 && worker_start_loop(w) == 0) {
		hr_fdstore_notify("READY=1");
		uv_run(&w->loop, UV_RUN_DEFAULT);
		hr_live_link_done(&w->live);
		hr_loop_close(&w->loop);
		status = w->exit_status;
	} else if (r == -ESTALE) {
		status = EXIT_SUCCESS;
	}
	hr_node_free(w->node);
	if (!w->uplink)
		hr_spool_free(w->spool);
	hr_private_uplink_free(w->uplink);
	hr_private_config_done(&w->config);
	free(w->sent);
	free(w);
	return status;
}
