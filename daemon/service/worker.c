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
#include "daemon/attach/attach.h"
#include "daemon/base/cgroup.h"
#include "common/fdstore.h"
#include "daemon/node/live_link.h"
#include "daemon/control/private.h"
#include "daemon/private/private_uplink.h"
#include "daemon/spool/spool.h"
#include "daemon/uplink/uplink.h"
#include "proto/abi.h"

#define TICK_MS	  1000u
#define HEARD_MS  20u /* until the end of a process that is gone is heard of */
#define ENDING_MS 5u  /* between looks at who is still there */

struct worker {
	uv_loop_t loop;
	uv_poll_t channel;
	uv_timer_t tick;
	struct hr_private_config config;
	struct hr_private_uplink *uplink; /* NULL: no collectors */
	struct hr_spool *spool;		  /* the uplink's, or ours */
	struct hr_node *node;
	struct hr_live_link live;
	int channel_fd;
	bool ending, draining, said_no_probes;
	char state[16];
	uint64_t end_at_ms, drain_ms;
	int status;
	struct hr_message in, out, told; /* told: the last stats */
};

/* ---- words ------------------------------------------------------------------------------------------ */

static void add_uplink(struct worker *w)
{
	struct hr_uplink_stats u = {0};
	struct hr_spool_stats spool;

	hr_spool_stats(w->spool, &spool);
	if (w->uplink)
		hr_private_uplink_stats(w->uplink, &u);
	hr_message_add_int(&w->out, "spool_bytes", (int64_t)spool.bytes);
	hr_message_add_int(&w->out, "given_up", (int64_t)spool.given_up);
	hr_message_add_int(&w->out, "connected", u.connected);
	hr_message_add(&w->out, "collector", u.collector);
	hr_message_add_int(&w->out, "unsent_frames", (int64_t)u.frames);
	hr_message_add_int(&w->out, "unsent_ms", (int64_t)(u.oldest_ns / 1000000));
}

static void make_stats(struct worker *w, const char *kind)
{
	struct hr_attach_use use;
	struct hr_node_stats s;

	hr_node_stats(w->node, &s);
	hr_node_use(w->node, &use);
	hr_message_init(&w->out, kind);
	hr_message_add_int(&w->out, "events", (int64_t)s.events);
	hr_message_add_int(&w->out, "bytes_moved", (int64_t)s.bytes_moved);
	hr_message_add_int(&w->out, "read_bytes", (int64_t)s.read_bytes);
	hr_message_add_int(&w->out, "written_bytes", (int64_t)s.written_bytes);
	hr_message_add_int(&w->out, "lost", (int64_t)(s.lost + s.torn));
	hr_message_add_int(&w->out, "ring_full", (int64_t)(s.lost - s.stray - s.detached));
	hr_message_add_int(&w->out, "stray", (int64_t)s.stray);
	hr_message_add_int(&w->out, "detached", (int64_t)s.detached);
	hr_message_add_int(&w->out, "torn", (int64_t)s.torn);
	hr_message_add_int(&w->out, "refused", (int64_t)s.refused);
	hr_message_add_int(&w->out, "hostile", (int64_t)s.hostile);
	hr_message_add_int(&w->out, "sessions", use.sessions);
	hr_message_add_int(&w->out, "ring_bytes", (int64_t)use.ring_bytes);
	hr_message_add_int(&w->out, "input_wait", s.input_wait);
	hr_message_add_int(&w->out, "steps", (int64_t)s.steps);
	hr_message_add_int(&w->out, "kernel_ops", (int64_t)s.kernel_ops);
	hr_message_add_int(&w->out, "kernel_added", (int64_t)s.kernel_added);
	hr_message_add_int(&w->out, "kernel_lost", (int64_t)s.kernel_lost);
	hr_message_add_int(&w->out, "served", (int64_t)use.served);
	hr_message_add_int(&w->out, "sessions_total", s.sessions_total);
	hr_message_add_int(&w->out, "stored_bytes", (int64_t)s.stored_bytes);
	hr_message_add_int(&w->out, "level", hr_node_level(w->node));
	hr_message_add_int(&w->out, "store_error", s.store_error);
	hr_message_add_int(&w->out, "counters_only", s.counters_only);
	hr_message_add_int(&w->out, "probes", hr_node_probes(w->node));
	if (hr_node_probes_error(w->node))
		hr_message_add(&w->out, "no_probes", hr_node_probes_error(w->node));
	add_uplink(w);
}

static void say_no_probes(struct worker *w)
{
	const char *error = hr_node_probes_error(w->node), *lack = hr_node_probes_lack(w->node);

	if (!w->said_no_probes && error)
		hr_log(HR_LOG_WARNING, "job %s: recorded without probes: %s", w->config.node.id.job,
		       error);
	else if (!w->said_no_probes && lack)
		hr_log(HR_LOG_INFO, "job %s: probes: %s", w->config.node.id.job, lack);
	w->said_no_probes = error != NULL || lack != NULL;
}

static void tell_stats(struct worker *w)
{
	say_no_probes(w);
	make_stats(w, "stats");
	if (w->out.bytes == w->told.bytes && memcmp(w->out.text, w->told.text, w->out.bytes) == 0)
		return;
	if (hr_control_send(w->channel_fd, &w->out) == 0)
		w->told = w->out;
}

/* ---- the end ---------------------------------------------------------------------------------------- */

static void worker_leave(struct worker *w, int status)
{
	w->status = status;
	uv_stop(&w->loop);
}

static void look_at_drain(struct worker *w)
{
	bool over = hr_private_uplink_drained(w->uplink, uv_now(&w->loop), &w->out);

	if (w->out.bytes > 0)
		hr_control_send(w->channel_fd, &w->out);
	if (over)
		worker_leave(w, EXIT_SUCCESS);
}

static void worker_end_job(struct worker *w)
{
	size_t attached = hr_node_attached(w->node, NULL, 0);
	int r = hr_node_stop(w->node,
			     &(struct hr_job_end){.state = w->state, .cut_short = attached > 0});

	make_stats(w, "ended");
	hr_message_add_int(&w->out, "attached", (int64_t)attached);
	hr_message_add_int(&w->out, "stop_error", r);
	hr_control_send(w->channel_fd, &w->out);
	if (!w->uplink) {
		hr_message_init(&w->out, "sent");
		hr_control_send(w->channel_fd, &w->out);
		worker_leave(w, EXIT_SUCCESS);
		return;
	}
	w->draining = true;
	hr_private_uplink_drain(w->uplink, uv_now(&w->loop) + w->drain_ms);
	look_at_drain(w); /* an epilog waits */
}

static void worker_on_tick(uv_timer_t *timer)
{
	struct worker *w = timer->data;

	if (w->draining) {
		look_at_drain(w);
	} else if (w->ending) {
		if (uv_now(&w->loop) >= w->end_at_ms || hr_node_attached(w->node, NULL, 0) == 0)
			worker_end_job(w);
	} else {
		tell_stats(w);
	}
}

/* ---- what the service says -------------------------------------------------------------------------- */

static void take_end(struct worker *w)
{
	uint64_t linger_ms;

	if (w->draining)
		return;
	if (hr_message_get(&w->in, "state", w->state, sizeof(w->state)) < 0)
		snprintf(w->state, sizeof(w->state), "ended");
	linger_ms = (uint64_t)hr_message_get_int(&w->in, "linger_ms", 0);
	w->end_at_ms = uv_now(&w->loop) + (linger_ms > HEARD_MS ? linger_ms : HEARD_MS);
	w->drain_ms = (uint64_t)hr_message_get_int(&w->in, "drain_ms", 0);
	w->ending = true;
	uv_timer_start(&w->tick, worker_on_tick, 0, ENDING_MS);
}

/* A message that brings a connection is answered there. */
static void take_client(struct worker *w, int fd)
{
	if (!hr_message_is(&w->in, "follow")) {
		hr_live_link_take(&w->live, w->node, &w->in, fd);
		return;
	}
	hr_node_root(w->node, (pid_t)hr_message_get_int(&w->in, "pid", 0), true);
	hr_message_init(&w->out, "over");
	hr_control_send(fd, &w->out);
	close(fd);
}

/* Who is in that cgroup is the job's, wherever it was started. */
static void take_cgroup(struct worker *w)
{
	char path[4096] = "", *error = NULL;
	uint64_t id;
	int r = hr_message_get(&w->in, "path", path, sizeof(path));

	if (r == 0)
		r = hr_cgroup_id(path, &id, &error);
	if (r == 0)
		r = hr_node_cgroup(w->node, id);
	if (r < 0)
		hr_log(HR_LOG_WARNING, "job %s: probes do not follow the cgroup %s: %s",
		       w->config.node.id.job, path, error ? error : strerrordesc_np(-r));
	free(error);
}

static void on_channel(uv_poll_t *poll, int status, int events)
{
	struct worker *w = poll->data;
	int client = -1;
	int r = status < 0 ? status : hr_control_recv_fd(w->channel_fd, &w->in, &client);

	(void)events;
	if (r == 0 && client >= 0)
		take_client(w, client);
	else if (client >= 0)
		close(client);
	if (r == -EAGAIN || r == -EBADMSG)
		return;
	if (r <
	    0) /* nobody keeps our descriptors any more: the next service goes on where we are */
		_exit(HR_WORKER_PAUSED);
	if (hr_message_is(&w->in, "level")) {
		hr_node_set_level(w->node,
				  (uint32_t)hr_message_get_int(&w->in, "level", HR_LEVEL_COUNTERS));
	} else if (hr_message_is(&w->in, "cgroup")) {
		if (!w->draining)
			take_cgroup(w);
	} else if (hr_message_is(&w->in, "refused")) {
		if (!w->draining)
			hr_node_refused(w->node,
					(uint64_t)hr_message_get_int(&w->in, "processes", 0));
	} else if (hr_message_is(&w->in, "end")) {
		take_end(w);
	} else if (hr_message_is(&w->in, "pause")) {
		if (!w->draining)
			hr_node_pause(w->node);
		_exit(HR_WORKER_PAUSED);
	}
}

/* ---- life ------------------------------------------------------------------------------------------- */

static int open_spool(struct worker *w, char **ret_error)
{
	int r;

	/* A job is recorded, whatever is wrong with the node's certificate. */
	w->config.tls_later = true;
	r = hr_private_uplink_open(&w->config, &w->uplink, ret_error);

	if (r == 0 && w->uplink) {
		hr_private_uplink_release(w->uplink);
		w->spool = hr_private_uplink_spool(w->uplink);
	} else if (r == 0) {
		r = hr_spool_new(w->config.node.store, w->config.spool_bytes, &w->spool);
	}
	return r;
}

/* The rules of the service, with the key of their file. */
static int open_privacy(struct worker *w)
{
	struct hr_privacy_rules *rules = &w->config.node.privacy;
	char *error = NULL;
	int r;

	if (rules->paths == HR_PATHS_FULL)
		return 0;
	r = hr_privacy_key(w->config.privacy_key, rules->key, &error);
	if (error)
		hr_log(HR_LOG_ERROR, "job %s: %s: pseudonyms of this job are its own",
		       w->config.node.id.job, error);
	free(error);
	return r;
}

/* Whoever announces the job, and the log. */
static void say_failed(struct worker *w, const char *why)
{
	const char *job = w->config.node.id.job ? w->config.node.id.job : "?";
	char text[HR_WORKER_WHY_BYTES];

	snprintf(text, sizeof(text), "%s", why);
	hr_log(HR_LOG_ERROR, "job %s: %s", job, text);
	hr_message_init(&w->out, "failed");
	hr_message_add(&w->out, "text", text);
	hr_control_send(w->channel_fd, &w->out);
}

static int start_node(struct worker *w, int config_fd, int handoff_fd)
{
	char *error = NULL;
	int r = hr_private_config_read(config_fd, &w->config);

	if (r == 0)
		r = open_privacy(w);
	if (r == 0)
		r = open_spool(w, &error);
	if (r == 0) {
		w->config.node.handoff_fd = handoff_fd;
		w->config.node.probes_later = true; /* a prolog waits for us */
		w->config.node.spool = w->spool;
		r = hr_node_new(&w->config.node, &w->node, &error);
	}
	if (r == 0)
		r = hr_node_start(w->node);
	if (r < 0 &&
	    r != -ESTALE) /* all but the last words were said: the spool's uplink ends it */
		say_failed(w, error ? error : strerrordesc_np(-r));
	free(error);
	return r;
}

static int worker_start_loop(struct worker *w)
{
	int r = uv_loop_init(&w->loop);

	if (r < 0)
		return r;
	w->channel.data = w->tick.data = w;
	hr_live_link_init(&w->live, &w->loop);
	uv_poll_init(&w->loop, &w->channel, w->channel_fd);
	uv_poll_start(&w->channel, UV_READABLE | UV_DISCONNECT, on_channel);
	uv_timer_init(&w->loop, &w->tick);
	uv_timer_start(&w->tick, worker_on_tick, 0, TICK_MS); /* limits count whom it took over */
	return 0;
}

static void stop_loop(struct worker *w)
{
	hr_live_link_done(&w->live);
	uv_close((uv_handle_t *)&w->channel, NULL);
	uv_close((uv_handle_t *)&w->tick, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	uv_loop_close(&w->loop);
}

int hr_service_worker(int config_fd, int channel_fd, int handoff_fd)
{
	struct worker *w = calloc(1, sizeof(*w));
	int status = EXIT_FAILURE, r;

	if (!w)
		return EXIT_FAILURE;
	w->channel_fd = channel_fd;
	fcntl(channel_fd, F_SETFD, FD_CLOEXEC);
	fcntl(handoff_fd, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN); /* of the service's group: it says `pause`, or `end` */
	signal(SIGXFSZ, SIG_IGN);
	r = start_node(w, config_fd, handoff_fd);
	if (r == 0 && worker_start_loop(w) == 0) {
		hr_fdstore_notify("READY=1");
		uv_run(&w->loop, UV_RUN_DEFAULT);
		stop_loop(w);
		status = w->status;
	} else if (r == -ESTALE) {
		status = EXIT_SUCCESS;
	}
	hr_node_free(w->node);
	if (!w->uplink)
		hr_spool_free(w->spool);
	hr_private_uplink_free(w->uplink);
	hr_private_config_done(&w->config);
	free(w);
	return status;
}
