/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <uv.h>

#include "common/text.h"
#include "common/fdstore.h"
#include "daemon/private/keeper.h"
#include "daemon/control/private.h"
#include "daemon/private/private_asked.h"
#include "daemon/private/private_health.h"
#include "daemon/private/private_uplink.h"
#include "daemon/private/stragglers.h"

#define TICK_MS	      10u
#define SLOW_TICK_MS  250u
#define MAX_OPEN_PIDS 64u

enum run_state { RUN_NEW, RUN_JOINED, RUN_LEAVING, RUN_VANISHED, RUN_DRAINING };

struct run {
	struct run *next;
	struct worker *worker;
	enum run_state state;
	int fd; /* -1 once vanished */
	uv_poll_t poll;
	int rank;      /* -1: not known */
	int cmd_pidfd; /* -1: no CMD yet, or not known */
	uint64_t leave_at_ms, linger_ms;
};

struct worker {
	uv_loop_t loop;
	uv_poll_t accept;
	uv_signal_t sigterm;
	uv_timer_t tick;
	struct hr_private_config config;
	struct hr_private_uplink *uplink; /* NULL: the store is no spool */
	struct hr_node *node;
	struct hr_private_asked asked;
	struct run *runs;
	int control_fd, shim_fd;
	uint64_t empty_since_ms; /* nobody is joined since */
	bool knows_rank, printed, vanished, killed, failed, over;
	bool draining;		   /* the job has ended, the uplink has not */
	struct hr_health told;	   /* to the runs */
	struct hr_message in, out; /* scratch */
};

static uint64_t now_ms(const struct worker *w)
{
	return uv_now(&w->loop);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void run_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Forgets the run; its memory goes when libuv has let go of the handle. */
static void run_free(struct run *run)
{
	struct run **link = &run->worker->runs;

	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	if (run->cmd_pidfd >= 0)
		close(run->cmd_pidfd);
	if (run->fd < 0) {
		free(run);
		return;
	}
	uv_poll_stop(&run->poll);
	close(run->fd);
	uv_close((uv_handle_t *)&run->poll, run_closed);
}

static bool pidfd_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static unsigned runs_in(const struct worker *w, enum run_state state)
{
	unsigned n = 0;

	for (const struct run *run = w->runs; run != NULL; run = run->next)
		n += run->state == state;
	return n;
}

/* Runs that will yet be answered, `but` left out. */
static unsigned runs_present(const struct worker *w, const struct run *but)
{
	return runs_in(w, RUN_JOINED) + runs_in(w, RUN_LEAVING) -
	       (but->state == RUN_JOINED || but->state == RUN_LEAVING);
}

static void private_worker_finish(struct worker *w)
{
	w->over = true;
	uv_stop(&w->loop);
}

/* Its connection ended: without `leave` it was killed, and its CMD may go on. */
static void run_lost(struct run *run)
{
	struct worker *w = run->worker;
	struct run *rest;

	if (run->state != RUN_JOINED) {
		if (run->state ==
		    RUN_DRAINING) /* nobody waits any more: the spool keeps the rest */
			private_worker_finish(w);
		run_free(run);
		return;
	}
	w->vanished = true;
	rest = calloc(1, sizeof(*rest));
	if (rest != NULL) {
		*rest = (struct run){.next = w->runs,
				     .worker = w,
				     .state = RUN_VANISHED,
				     .fd = -1,
				     .cmd_pidfd = run->cmd_pidfd};
		run->cmd_pidfd = -1;
		w->runs = rest;
	}
	run_free(run);
}

/* Vanished runs whose CMD has ended are history; returns how many are not. */
static unsigned reap_vanished(struct worker *w)
{
	unsigned alive = 0;

	for (struct run *run = w->runs, *next; run != NULL; run = next) {
		next = run->next;
		if (run->state != RUN_VANISHED)
			continue;
		if (run->cmd_pidfd < 0 || pidfd_ended(run->cmd_pidfd))
			run_free(run);
		else
			alive++;
	}
	return alive;
}

static void private_worker_on_tick(uv_timer_t *timer);

static void notice_all(struct worker *w, const char *text)
{
	hr_message_init(&w->out, "notice");
	hr_message_add(&w->out, "text", text);
	for (struct run *run = w->runs; run != NULL; run = run->next)
		if (run->state == RUN_JOINED || run->state == RUN_LEAVING)
			hr_control_send(run->fd, &w->out);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Processes that are recorded, or if there are none, those that still could be. */
static size_t open_processes(struct worker *w, pid_t *pids, size_t max)
{
	size_t n = hr_node_attached(w->node, pids, max);

	return n > 0 ? n : hr_stragglers(w->config.names.shim, pids, max);
}

/* Pids as "12 345", at most MAX_OPEN_PIDS; returns how many there are. */
static size_t open_pids(struct worker *w, char *text, size_t bytes)
{
	pid_t pids[MAX_OPEN_PIDS];
	size_t n = open_processes(w, pids, MAX_OPEN_PIDS), used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n && i < MAX_OPEN_PIDS; i++)
		used += (size_t)snprintf(text + used, bytes - used, "%s%d", i > 0 ? " " : "",
					 (int)pids[i]);
	return n;
}

static void make_done(struct worker *w, const struct run *run, bool print, int store_error)
{
	struct hr_node_stats s;

	hr_node_stats(w->node, &s);
	hr_message_init(&w->out, "done");
	hr_message_add_int(&w->out, "print", print);
	hr_message_add_int(&w->out, "runs", runs_present(w, run));
	hr_message_add_int(&w->out, "events", (int64_t)s.events);
	hr_message_add_int(&w->out, "bytes_moved", (int64_t)s.bytes_moved);
	hr_message_add_int(&w->out, "lost", (int64_t)s.lost);
	hr_message_add_int(&w->out, "torn", (int64_t)s.torn);
	hr_message_add_int(&w->out, "hostile", (int64_t)s.hostile);
	hr_message_add_int(&w->out, "processes", s.sessions_total);
	hr_message_add_int(&w->out, "stored_bytes", (int64_t)s.stored_bytes);
	hr_message_add_int(&w->out, "counters_only", s.counters_only);
	hr_message_add_int(&w->out, "store_error", store_error);
	hr_message_add_int(&w->out, "given_up", (int64_t)s.given_up);
	hr_message_add_int(&w->out, "given_up_bytes", (int64_t)s.given_up_bytes);
	hr_message_add_int(&w->out, "untold", s.unreported);
}

static const char *job_state(const struct worker *w)
{
	if (w->vanished || w->killed)
		return "killed";
	return w->failed ? "failed" : "ended";
}

/* `last`: the run that waits for it; without one, nothing is kept for a summary either. */
static void begin_to_drain(struct worker *w, struct run *last)
{
	w->draining = true;
	hr_private_uplink_drain(w->uplink, now_ms(w) + w->config.drain_ms);
	if (last != NULL)
		last->state = RUN_DRAINING;
	else
		hr_private_uplink_release(w->uplink);
	uv_timer_start(&w->tick, private_worker_on_tick, TICK_MS, TICK_MS);
}

/*
 * Ends the job, unless somebody is joining at this moment: who joins holds the lock from connect to
 * ready, so with the lock in our hands and the sockets gone nobody is half-way in.
 */
static bool private_worker_end_job(struct worker *w, struct run *last, bool print)
{
	char attached[MAX_OPEN_PIDS * 12];
	size_t n_attached;
	int lock, r = hr_private_trylock(&w->config.names, &lock), stopped;

	if (r == -EWOULDBLOCK)
		return false;
	n_attached = open_pids(w, attached, sizeof(attached));
	stopped = hr_node_stop(w->node, &(struct hr_job_end){.state = job_state(w)});
	/* Only now: were we killed before, runs would not find the next worker. */
	hr_private_remove(&w->config.names);
	if (r == 0)
		close(lock);
	if (last != NULL) {
		make_done(w, last, print, stopped);
		hr_message_add(&w->out, "attached", attached);
		hr_message_add_int(&w->out, "attached_count", (int64_t)n_attached);
		hr_message_add_int(&w->out, "drains", w->uplink != NULL);
		hr_control_send(last->fd, &w->out);
	}
	if (w->uplink != NULL) {
		begin_to_drain(w, last);
		return true;
	}
	if (last != NULL)
		run_free(last);
	private_worker_finish(w);
	return true;
}

/* One look at how far the uplink has come. */
static void go_on_draining(struct worker *w)
{
	bool over = hr_private_uplink_drained(w->uplink, now_ms(w), &w->out);

	for (struct run *run = w->runs; run != NULL && w->out.bytes > 0; run = run->next)
		if (run->state == RUN_DRAINING)
			hr_control_send(run->fd, &w->out);
	if (over)
		private_worker_finish(w);
}

/* Is this the run that prints, now that it is about to be answered? */
static bool prints(const struct worker *w, const struct run *run, bool last)
{
	if (w->printed)
		return false;
	return run->rank == 0 || (last && !w->knows_rank);
}

/* Answers a leaving run if it may go; false when it has to wait. */
static bool try_answer(struct worker *w, struct run *run)
{
	bool waited = now_ms(w) - run->leave_at_ms >= run->linger_ms;
	bool last = runs_present(w, run) == 0;
	bool print = prints(w, run, last);

	if (!last && run->rank == 0 && !waited)
		return false;
	if (last && !waited && (open_processes(w, NULL, 0) > 0 || reap_vanished(w) > 0))
		return false;
	if (last)
		return private_worker_end_job(w, run, print);
	w->printed = w->printed || print;
	make_done(w, run, print, hr_node_flush(w->node));
	hr_control_send(run->fd, &w->out);
	run_free(run);
	return true;
}

static void answer_leaving(struct worker *w)
{
	for (struct run *run = w->runs, *next; run != NULL && !w->over; run = next) {
		next = run->next;
		if (run->state == RUN_LEAVING && !w->draining)
			try_answer(w, run);
	}
}

/* Nobody will leave any more: end once nothing is being recorded. */
static void end_when_deserted(struct worker *w)
{
	unsigned vanished = reap_vanished(w);

	if (runs_in(w, RUN_NEW) + runs_in(w, RUN_JOINED) + runs_in(w, RUN_LEAVING) > 0) {
		w->empty_since_ms = now_ms(w);
		return;
	}
	if (vanished > 0 || hr_node_attached(w->node, NULL, 0) > 0)
		return;
	if (!w->vanished && now_ms(w) - w->empty_since_ms < HR_WORKER_GRACE_MS)
		return;
	w->killed = true; /* a run that is there says so: these were lost, or never came back */
	private_worker_end_job(w, NULL, false);
}

/* ---- what runs say --------------------------------------------------------------------------- */

static void handle_join(struct run *run, const struct hr_message *m)
{
	struct worker *w = run->worker;
	int64_t version = hr_message_get_int(m, "version", -1);

	if (version != HR_CONTROL_VERSION) {
		char text[160];

		snprintf(text, sizeof(text),
			 "this job's headraced speaks control version %u, this headrace %" PRId64
			 ": use the same headrace for all runs of a job",
			 HR_CONTROL_VERSION, version);
		hr_message_init(&w->out, "error");
		hr_message_add(&w->out, "text", text);
		hr_control_send(run->fd, &w->out);
		return;
	}
	run->rank = (int)hr_message_get_int(m, "rank", -1);
	w->knows_rank = w->knows_rank || run->rank >= 0;
	run->state = RUN_JOINED;
	/* What it starts from now on belongs to the job; it does not itself. */
	hr_node_root(w->node, (pid_t)hr_message_get_int(m, "pid", 0), true);
	hr_message_init(&w->out, "ready");
	hr_message_add_int(&w->out, "version", HR_CONTROL_VERSION);
	hr_message_add_int(&w->out, "pid", getpid());
	hr_message_add(&w->out, "shim", w->config.names.shim);
	hr_message_add_int(&w->out, "level", w->config.node.level);
	hr_message_add_int(&w->out, "max_bytes", (int64_t)w->config.node.max_bytes);
	hr_message_add_int(&w->out, "labels", hr_private_labels_id(w->config.node.labels));
	if (w->config.node.ranks != NULL)
		hr_message_add(&w->out, "ranks", w->config.node.ranks);
	if (w->config.node.local_ranks != NULL)
		hr_message_add(&w->out, "local_ranks", w->config.node.local_ranks);
	if (w->config.collectors != NULL)
		hr_message_add(&w->out, "collectors", w->config.collectors);
	if (hr_node_probes_error(w->node) != NULL)
		hr_message_add(&w->out, "no_probes", hr_node_probes_error(w->node));
	if (hr_node_probes_lack(w->node) != NULL)
		hr_message_add(&w->out, "probes_lack", hr_node_probes_lack(w->node));
	hr_control_send(run->fd, &w->out);
}

/* How a CMD ended, for the state of the job. */
static void take_status(struct worker *w, int signum, int status)
{
	w->killed = w->killed || signum == SIGKILL;
	w->failed = w->failed || signum != 0 || status != 0;
}

static void handle_message(struct run *run, const struct hr_message *m)
{
	struct worker *w = run->worker;

	if (run->state == RUN_NEW && hr_private_asked(&w->asked, m, run->fd)) {
		run_free(run);
	} else if (hr_message_is(m, "join") && run->state == RUN_NEW) {
		handle_join(run, m);
	} else if (hr_message_is(m, "started") && run->state == RUN_JOINED && run->cmd_pidfd < 0) {
		run->cmd_pidfd =
		    (int)syscall(SYS_pidfd_open, (pid_t)hr_message_get_int(m, "pid", 0), 0);
		if (run->cmd_pidfd >= 0)
			fcntl(run->cmd_pidfd, F_SETFD, FD_CLOEXEC);
	} else if (hr_message_is(m, "leave") &&
		   (run->state == RUN_JOINED || run->state == RUN_LEAVING)) {
		if (run->state == RUN_JOINED)
			run->leave_at_ms = now_ms(w);
		run->state = RUN_LEAVING; /* a second `leave` changes the linger */
		uv_timer_start(&w->tick, private_worker_on_tick, TICK_MS, TICK_MS);
		run->linger_ms = (uint64_t)hr_message_get_int(m, "linger_ns", 0) / 1000000u;
		take_status(w, (int)hr_message_get_int(m, "signal", 0),
			    (int)hr_message_get_int(m, "status", 0));
	} else if (hr_message_is(m, "released") && run->state == RUN_DRAINING) {
		hr_private_uplink_release(w->uplink);
	}
}

static void on_message(uv_poll_t *poll, int status, int events)
{
	struct run *run = poll->data;
	struct worker *w = run->worker;
	int r;

	(void)events;
	r = status < 0 ? status : hr_control_recv(run->fd, &w->in);
	if (r == -EAGAIN)
		return;
	if (r < 0 && r != -EBADMSG) {
		run_lost(run);
	} else if (r == 0) {
		handle_message(run, &w->in);
		answer_leaving(w);
	}
}

/* Only the owner of the job, and root, may join. */
static bool may_join(const struct worker *w, int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
	       (peer.uid == w->config.node.uid || peer.uid == 0);
}

static void private_worker_on_connection(uv_poll_t *poll, int status, int events)
{
	struct worker *w = poll->data;
	int fd = accept4(w->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct run *run;

	(void)status;
	(void)events;
	if (fd < 0)
		return;
	run = may_join(w, fd) ? calloc(1, sizeof(*run)) : NULL;
	if (run == NULL) {
		close(fd);
		return;
	}
	*run = (struct run){.next = w->runs, .worker = w, .fd = fd, .rank = -1, .cmd_pidfd = -1};
	run->poll.data = run;
	w->runs = run;
	uv_poll_init(&w->loop, &run->poll, fd);
	uv_poll_start(&run->poll, UV_READABLE | UV_DISCONNECT, on_message);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Tells the runs what they would want to know before the end. */
static void check_health(struct worker *w)
{
	struct hr_node_stats s;
	char text[2048];

	hr_node_stats(w->node, &s);
	hr_private_pace(&w->asked.pace, &s, now_ms(w));
	while (hr_health_news(&w->told, &s, w->uplink != NULL, text, sizeof(text)) ||
	       hr_private_uplink_news(w->uplink, text, sizeof(text)))
		notice_all(w, text);
}

static void private_worker_on_tick(uv_timer_t *timer)
{
	struct worker *w = timer->data;

	if (w->draining) {
		go_on_draining(w);
		return;
	}
	check_health(w);
	answer_leaving(w);
	if (w->over || w->draining)
		return;
	end_when_deserted(w);
	uv_timer_set_repeat(timer, runs_in(w, RUN_LEAVING) > 0 ? TICK_MS : SLOW_TICK_MS);
}

static void on_sigterm(uv_signal_t *handle, int signum)
{
	struct worker *w = handle->data;

	(void)signum;
	w->killed = true;
	notice_all(w, "headraced received SIGTERM and stopped recording; CMD continues");
	hr_private_remove(&w->config.names);
	hr_node_stop(w->node, &(struct hr_job_end){.state = "killed", .cut_short = true});
	w->over = true;
	uv_stop(&w->loop);
}

static int start_node(struct worker *w, int config_fd)
{
	char *error = NULL;
	int r = hr_private_config_read(config_fd, &w->config);

	if (r < 0) {
		fprintf(stderr, "headraced: bad configuration: %s\n", strerrordesc_np(-r));
		return r;
	}
	w->config.node.shim_fd = w->shim_fd;
	if (hr_private_uplink_ended(&w->config))
		return -ESTALE;
	r = hr_private_uplink_open(&w->config, &w->uplink, &error);
	w->config.node.spool = hr_private_uplink_spool(w->uplink);
	if (r == 0)
		r = hr_node_new(&w->config.node, &w->node, &error);
	if (r == 0)
		r = hr_node_start(w->node);
	/* -ESTALE: all but the last words of the job were said; who asks the store takes them over. */
	if (r < 0 && r != -ESTALE)
		fprintf(stderr, "headraced: %s\n", error != NULL ? error : strerrordesc_np(-r));
	free(error);
	return r;
}

static int private_worker_start_loop(struct worker *w)
{
	int r = uv_loop_init(&w->loop);

	if (r < 0)
		return r;
	w->accept.data = w->sigterm.data = w->tick.data = w;
	w->asked =
	    (struct hr_private_asked){.config = &w->config, .node = w->node, .uplink = w->uplink};
	hr_live_link_init(&w->asked.live, &w->loop);
	uv_poll_init(&w->loop, &w->accept, w->control_fd);
	uv_poll_start(&w->accept, UV_READABLE, private_worker_on_connection);
	uv_signal_init(&w->loop, &w->sigterm);
	uv_signal_start(&w->sigterm, on_sigterm, SIGTERM);
	uv_timer_init(&w->loop, &w->tick);
	uv_timer_start(&w->tick, private_worker_on_tick, SLOW_TICK_MS, SLOW_TICK_MS);
	w->empty_since_ms = now_ms(w);
	return 0;
}

static void private_worker_close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void stop_loop(struct worker *w)
{
	for (struct run *run = w->runs, *next; run != NULL; run = next) {
		next = run->next;
		run_free(run);
	}
	hr_live_link_done(&w->asked.live);
	uv_walk(&w->loop, private_worker_close_handle, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	uv_loop_close(&w->loop);
}

int hr_private_worker(int config_fd, int control_fd, int shim_fd)
{
	struct worker *w = calloc(1, sizeof(*w));
	int status = EXIT_FAILURE;

	if (w == NULL)
		return EXIT_FAILURE;
	w->control_fd = control_fd;
	w->shim_fd = shim_fd;
	fcntl(control_fd, F_SETFD, FD_CLOEXEC);
	fcntl(shim_fd, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	if (start_node(w, config_fd) == 0 && private_worker_start_loop(w) == 0) {
		hr_fdstore_notify("READY=1");
		hr_keeper_quiet();
		uv_run(&w->loop, UV_RUN_DEFAULT);
		stop_loop(w);
		status = EXIT_SUCCESS;
	}
	hr_node_free(w->node);
	hr_private_uplink_free(w->uplink);
	hr_private_config_done(&w->config);
	free(w);
	return status;
}
