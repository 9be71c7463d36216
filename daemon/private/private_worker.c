/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <uv.h>

#include "common/fdstore.h"
#include "daemon/base/loop.h"
#include "daemon/base/exit.h"
#include "daemon/private/job_status.h"
#include "daemon/private/keeper.h"
#include "daemon/control/private.h"
#include "daemon/private/private_uplink.h"
#include "daemon/private/stragglers.h"

#define TICK_MS	      10u
#define SLOW_TICK_MS  250u
#define MAX_OPEN_PIDS 64u

enum run_state { RUN_NEW, RUN_JOINED, RUN_LEAVING, RUN_VANISHED, RUN_DRAINING };

struct private_run {
	struct private_run *next;
	struct private_worker *worker;
	enum run_state state;
	int fd; /* -1: the run was killed */
	uv_poll_t poll;
	int rank;      /* -1: unknown */
	int cmd_pidfd; /* the process of CMD; -1: not started, or unknown */
	uint64_t leave_at_ms, linger_ms;
};

struct private_worker {
	uv_loop_t loop;
	uv_poll_t accept;
	uv_signal_t sigterm;
	uv_timer_t tick;
	struct hr_private_config config;
	struct hr_private_uplink *uplink; /* NULL: node.store is not a spool */
	struct hr_node *node;
	struct hr_job_status status;
	struct hr_live_link live;
	struct private_run *runs;
	int control_fd, shim_fd;
	uint64_t empty_since_ms; /* since when no run has been connected */
	bool has_ranks;
	bool printed, vanished, killed, failed, over;
	bool draining;		     /* the job has ended, but the uplink still sends */
	struct hr_reported reported; /* what notices have already reported to the runs */
};

static uint64_t now_ms(const struct private_worker *w)
{
	return uv_now(&w->loop);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Removes a run. Its memory is freed when libuv has closed the handle. */
static void run_free(struct private_run *run)
{
	struct private_run **link = &run->worker->runs;

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
	uv_close((uv_handle_t *)&run->poll, hr_handle_free_data);
}

static unsigned runs_in(const struct private_worker *w, enum run_state state)
{
	unsigned n = 0;

	for (const struct private_run *run = w->runs; run != NULL; run = run->next)
		n += run->state == state;
	return n;
}

/* Returns the number of runs other than `but` that have joined and have no answer yet. */
static unsigned runs_present(const struct private_worker *w, const struct private_run *but)
{
	return runs_in(w, RUN_JOINED) + runs_in(w, RUN_LEAVING) -
	       (but->state == RUN_JOINED || but->state == RUN_LEAVING);
}

static void private_worker_finish(struct private_worker *w)
{
	w->over = true;
	uv_stop(&w->loop);
}

/*
 * Handles a connection that ended without `leave`. The run was killed, but its CMD may still run.
 */
static void run_lost(struct private_run *run)
{
	struct private_worker *w = run->worker;
	struct private_run *rest;

	if (run->state != RUN_JOINED) {
		/* no run waits, so headraced ends; the spool keeps the frames that were not sent */
		if (run->state == RUN_DRAINING)
			private_worker_finish(w);
		run_free(run);
		return;
	}
	w->vanished = true;
	rest = calloc(1, sizeof(*rest));
	if (rest != NULL) {
		*rest = (struct private_run){.next = w->runs,
					     .worker = w,
					     .state = RUN_VANISHED,
					     .fd = -1,
					     .cmd_pidfd = run->cmd_pidfd};
		run->cmd_pidfd = -1;
		w->runs = rest;
	}
	run_free(run);
}

/* Frees vanished runs whose CMD has ended. Returns the number of the other vanished runs. */
static unsigned reap_vanished(struct private_worker *w)
{
	unsigned alive = 0;

	for (struct private_run *run = w->runs, *next; run != NULL; run = next) {
		next = run->next;
		if (run->state != RUN_VANISHED)
			continue;
		if (run->cmd_pidfd < 0 || hr_pidfd_ended(run->cmd_pidfd))
			run_free(run);
		else
			alive++;
	}
	return alive;
}

static void private_worker_on_tick(uv_timer_t *timer);

static void notice_all(struct private_worker *w, const char *text)
{
	Headrace__Notice notice = HEADRACE__NOTICE__INIT;

	notice.text = hr_control_text(text);
	for (struct private_run *run = w->runs; run != NULL; run = run->next)
		if (run->state == RUN_JOINED || run->state == RUN_LEAVING)
			hr_control_send(run->fd, HR_CONTROL(NOTICE), &notice.base);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Lists the attached processes. If there are none, lists the processes that could still attach. */
static size_t remaining_processes(struct private_worker *w, pid_t *pids, size_t max)
{
	size_t n = hr_node_attached(w->node, pids, max);

	return n > 0 ? n : hr_stragglers(w->config.names.shim, pids, max);
}

static void fill_left(struct private_worker *w, const struct private_run *run, bool print,
		      int store_error, Headrace__Left *ret)
{
	struct hr_node_stats s;

	hr_node_stats(w->node, &s);
	ret->print = print;
	ret->runs = runs_present(w, run);
	ret->events = s.engine.records;
	ret->store_error = store_error;
	ret->given_up = s.given_up;
	ret->given_up_bytes = s.given_up_bytes;
	ret->unreported = s.unreported;
}

/* `last`: NULL: the runs were killed, or have not connected again. */
static const char *job_state(const struct private_worker *w, const struct private_run *last)
{
	if (w->vanished || w->killed || last == NULL)
		return "killed";
	return w->failed ? "failed" : "ended";
}

/*
 * Begins to send the rest of the spool. `last`: the run that waits for this. NULL: no run will
 * print a summary from the spool, so frames may be removed from it.
 */
static void begin_to_drain(struct private_worker *w, struct private_run *last)
{
	w->draining = true;
	w->uplink->until_ms = now_ms(w) + w->config.drain_ms;
	if (last != NULL)
		last->state = RUN_DRAINING;
	else
		hr_private_uplink_release(w->uplink);
	uv_timer_start(&w->tick, private_worker_on_tick, TICK_MS, TICK_MS);
}

/*
 * Ends the job. Returns false if another run holds the lock, because it is joining. No run can join
 * while this function holds the lock, nor after it has removed the sockets.
 */
static bool private_worker_end_job(struct private_worker *w, struct private_run *last, bool print)
{
	Headrace__Left left = HEADRACE__LEFT__INIT;
	pid_t open[MAX_OPEN_PIDS];
	int lock, r = hr_private_trylock(&w->config.names, &lock), stopped;

	if (r == -EWOULDBLOCK)
		return false;
	left.processes_left_total = (uint32_t)remaining_processes(w, open, MAX_OPEN_PIDS);
	stopped = hr_node_stop(w->node, &(struct hr_job_end){.state = job_state(w, last)});
	/*
	 * Removes the sockets after hr_node_stop: if headraced is killed before, the next recording
	 * process needs them.
	 */
	hr_private_remove(&w->config.names);
	if (r == 0)
		close(lock);
	if (last != NULL) {
		fill_left(w, last, print, stopped, &left);
		left.processes_left = open;
		left.n_processes_left = left.processes_left_total < MAX_OPEN_PIDS
					    ? left.processes_left_total
					    : MAX_OPEN_PIDS;
		left.drains = w->uplink != NULL;
		hr_control_send(last->fd, HR_CONTROL(LEFT), &left.base);
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

static void continue_draining(struct private_worker *w)
{
	Headrace__Sending sending = HEADRACE__SENDING__INIT;

	if (!hr_private_uplink_progress(w->uplink, now_ms(w), &sending))
		return;
	for (struct private_run *run = w->runs; run != NULL; run = run->next)
		if (run->state == RUN_DRAINING)
			hr_control_send(run->fd, HR_CONTROL(SENDING), &sending.base);
	if (sending.finished)
		private_worker_finish(w);
}

/* Returns whether this run must print the summary. `last`: it is the last run. */
static bool run_prints(const struct private_worker *w, const struct private_run *run, bool last)
{
	if (w->printed)
		return false;
	return run->rank == 0 || (last && !w->has_ranks);
}

/* Answers a run that leaves. Returns false if the run must wait. */
static bool try_answer(struct private_worker *w, struct private_run *run)
{
	bool waited = now_ms(w) - run->leave_at_ms >= run->linger_ms;
	bool last = runs_present(w, run) == 0;
	bool print = run_prints(w, run, last);
	Headrace__Left left = HEADRACE__LEFT__INIT;

	if (!last && run->rank == 0 && !waited)
		return false;
	if (last && !waited && (remaining_processes(w, NULL, 0) > 0 || reap_vanished(w) > 0))
		return false;
	if (last)
		return private_worker_end_job(w, run, print);
	w->printed = w->printed || print;
	fill_left(w, run, print, hr_node_flush(w->node), &left);
	hr_control_send(run->fd, HR_CONTROL(LEFT), &left.base);
	run_free(run);
	return true;
}

static void answer_leaving(struct private_worker *w)
{
	for (struct private_run *run = w->runs, *next; run != NULL && !w->over; run = next) {
		next = run->next;
		if (run->state == RUN_LEAVING && !w->draining)
			try_answer(w, run);
	}
}

/* Ends the job when no run is connected and no process is attached. */
static void end_if_no_runs(struct private_worker *w)
{
	unsigned vanished = reap_vanished(w);

	/* A new connection does not count: a run that joins has the lock. */
	if (runs_in(w, RUN_JOINED) + runs_in(w, RUN_LEAVING) > 0) {
		w->empty_since_ms = now_ms(w);
		return;
	}
	if (vanished > 0 || hr_node_attached(w->node, NULL, 0) > 0)
		return;
	if (!w->vanished && now_ms(w) - w->empty_since_ms < HR_WORKER_GRACE_MS)
		return;
	private_worker_end_job(w, NULL, false);
}

/* ---- messages of runs ------------------------------------------------------------------------ */

static void send_joined(struct private_run *run)
{
	const struct private_worker *w = run->worker;
	const struct hr_private_config *c = &w->config;
	Headrace__Joined joined = HEADRACE__JOINED__INIT;

	joined.version = HR_CONTROL_VERSION;
	joined.level = (uint32_t)c->node.level;
	joined.max_bytes = c->node.max_bytes;
	joined.labels_id = hr_private_labels_id(c->node.labels);
	joined.ranks = hr_control_text(c->node.ranks);
	joined.local_ranks = hr_control_text(c->node.local_ranks);
	joined.collectors = hr_control_text(c->collectors);
	joined.no_probes = hr_control_text(hr_node_probes_error(w->node));
	joined.probes_lack = hr_control_text(hr_node_probes_lack(w->node));
	hr_control_send(run->fd, HR_CONTROL(JOINED), &joined.base);
}

static void handle_join(struct private_run *run, const Headrace__Join *join)
{
	struct private_worker *w = run->worker;
	char text[160];

	if (join->version != HR_CONTROL_VERSION) {
		snprintf(text, sizeof(text),
			 "this job's headraced has control version %u, this headrace has version "
			 "%u: use the same headrace for all runs of a job",
			 HR_CONTROL_VERSION, join->version);
		hr_control_send_error(run->fd, EPROTO, text);
		return;
	}
	run->rank = join->has_rank ? (int)join->rank : -1;
	w->has_ranks = w->has_ranks || run->rank >= 0;
	run->state = RUN_JOINED;
	/* Probes record the processes that the run starts, but not the run itself. */
	hr_node_root(w->node, join->pid, true);
	send_joined(run);
}

static void handle_started(struct private_run *run, pid_t cmd)
{
	if (run->cmd_pidfd >= 0)
		return;
	run->cmd_pidfd = (int)syscall(SYS_pidfd_open, cmd, 0);
	if (run->cmd_pidfd >= 0)
		fcntl(run->cmd_pidfd, F_SETFD, FD_CLOEXEC);
}

static void handle_leave(struct private_run *run, const Headrace__Leave *leave)
{
	struct private_worker *w = run->worker;

	if (run->state == RUN_JOINED)
		run->leave_at_ms = now_ms(w);
	run->state = RUN_LEAVING; /* a second `leave` only changes linger_ms */
	run->linger_ms = leave->linger_ms;
	w->killed = w->killed || leave->signal == SIGKILL;
	w->failed = w->failed || leave->signal != 0 || leave->status != 0;
	uv_timer_start(&w->tick, private_worker_on_tick, TICK_MS, TICK_MS);
}

static void handle_message(struct private_run *run, const Headrace__Control *m)
{
	struct private_worker *w = run->worker;
	bool joined = run->state == RUN_JOINED;

	if (run->state == RUN_NEW && hr_private_answer(&w->status, &w->live, m, run->fd))
		run_free(run);
	else if (m->kind_case == HR_CONTROL(JOIN) && run->state == RUN_NEW)
		handle_join(run, m->join);
	else if (m->kind_case == HR_CONTROL(STARTED) && joined)
		handle_started(run, m->started->pid);
	else if (m->kind_case == HR_CONTROL(LEAVE) && (joined || run->state == RUN_LEAVING))
		handle_leave(run, m->leave);
	else if (m->kind_case == HR_CONTROL(SUMMARY_PRINTED) && run->state == RUN_DRAINING)
		hr_private_uplink_release(w->uplink);
}

static void on_message(uv_poll_t *poll, int status, int events)
{
	struct private_run *run = poll->data;
	struct private_worker *w = run->worker;
	Headrace__Control *m = NULL;
	int r = status < 0 ? status : hr_control_recv(run->fd, &m);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r < 0) {
		run_lost(run);
		return;
	}
	handle_message(run, m);
	hr_control_free(m);
	answer_leaving(w);
}

/* Returns whether the peer is the owner of the job, or root. */
static bool may_join(const struct private_worker *w, int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
	       (peer.uid == w->config.node.uid || peer.uid == 0);
}

static void private_worker_on_connection(uv_poll_t *poll, int status, int events)
{
	struct private_worker *w = poll->data;
	int fd = hr_accept(poll, w->control_fd);
	struct private_run *run;

	(void)status;
	(void)events;
	if (fd < 0)
		return;
	run = may_join(w, fd) ? calloc(1, sizeof(*run)) : NULL;
	if (run == NULL) {
		close(fd);
		return;
	}
	*run = (struct private_run){
	    .next = w->runs, .worker = w, .fd = fd, .rank = -1, .cmd_pidfd = -1};
	run->poll.data = run;
	w->runs = run;
	uv_poll_init(&w->loop, &run->poll, fd);
	uv_poll_start(&run->poll, UV_READABLE | UV_DISCONNECT, on_message);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void check_health(struct private_worker *w)
{
	struct hr_node_stats s;
	char text[2048];

	hr_node_stats(w->node, &s);
	hr_job_status_measure(&w->status, &s, now_ms(w));
	while (hr_health_next_notice(&w->reported, &s, w->uplink != NULL, text, sizeof(text)) ||
	       hr_private_uplink_next_notice(w->uplink, text, sizeof(text)))
		notice_all(w, text);
}

static void private_worker_on_tick(uv_timer_t *timer)
{
	struct private_worker *w = timer->data;

	uv_poll_start(&w->accept, UV_READABLE, private_worker_on_connection);
	if (w->draining) {
		continue_draining(w);
		return;
	}
	check_health(w);
	hr_private_uplink_show(w->uplink, w->node, now_ms(w));
	answer_leaving(w);
	if (w->over || w->draining)
		return;
	end_if_no_runs(w);
	uv_timer_set_repeat(timer, runs_in(w, RUN_LEAVING) > 0 ? TICK_MS : SLOW_TICK_MS);
}

static void on_sigterm(uv_signal_t *handle, int signum)
{
	struct private_worker *w = handle->data;

	(void)signum;
	w->killed = true;
	notice_all(w, "headraced received SIGTERM and stopped recording; CMD continues");
	hr_private_remove(&w->config.names);
	hr_node_stop(w->node, &(struct hr_job_end){.state = "killed", .cut_short = true});
	private_worker_finish(w);
}

static int start_node(struct private_worker *w, int config_fd)
{
	char *error = NULL;
	int r = hr_private_config_read(config_fd, &w->config);

	if (r < 0) {
		fprintf(stderr, "headraced: cannot read its configuration: %s\n",
			strerrordesc_np(-r));
		return r;
	}
	w->config.node.shim_fd = w->shim_fd;
	/* The job has ended: a recording process was killed after it had stored the end. */
	if (hr_node_has_ended(w->config.node.store, &w->config.node.id))
		return -ESTALE;
	r = hr_private_uplink_open(&w->config, &w->uplink, &error);
	w->config.node.spool = w->uplink ? w->uplink->spool : NULL;
	if (r == 0)
		r = hr_node_new(&w->config.node, &w->node, &error);
	if (r == 0)
		r = hr_node_start(w->node);
	/*
	 * -ESTALE: the journal has the end of the job, so the uplink or a query recovers the
	 * stream.
	 */
	if (r < 0 && r != -ESTALE)
		fprintf(stderr, "headraced: %s\n", error != NULL ? error : strerrordesc_np(-r));
	free(error);
	return r;
}

static int private_worker_start_loop(struct private_worker *w)
{
	int r = uv_loop_init(&w->loop);

	if (r < 0)
		return r;
	w->accept.data = w->sigterm.data = w->tick.data = w;
	w->status =
	    (struct hr_job_status){.config = &w->config, .node = w->node, .uplink = w->uplink};
	hr_live_link_init(&w->live, &w->loop);
	uv_poll_init(&w->loop, &w->accept, w->control_fd);
	uv_poll_start(&w->accept, UV_READABLE, private_worker_on_connection);
	uv_signal_init(&w->loop, &w->sigterm);
	uv_signal_start(&w->sigterm, on_sigterm, SIGTERM);
	uv_timer_init(&w->loop, &w->tick);
	uv_timer_start(&w->tick, private_worker_on_tick, SLOW_TICK_MS, SLOW_TICK_MS);
	w->empty_since_ms = now_ms(w);
	return 0;
}

static void stop_loop(struct private_worker *w)
{
	for (struct private_run *run = w->runs, *next; run != NULL; run = next) {
		next = run->next;
		run_free(run);
	}
	hr_live_link_done(&w->live);
	hr_loop_close(&w->loop);
}

/* Records until the job is over. Returns the exit status. */
static int private_worker_run(struct private_worker *w)
{
	int r = hr_fdstore_notify("READY=1");
	/* If the keeper was killed or is stopped, this process records without it. */
	bool ready = r == 0 || r == -ECONNREFUSED || r == -EAGAIN;

	if (ready) {
		hr_keeper_quiet();
		uv_run(&w->loop, UV_RUN_DEFAULT);
	} else {
		fprintf(stderr, "headraced: cannot report that it is ready: %s\n",
			strerrordesc_np(-r));
		hr_node_stop(w->node, &(struct hr_job_end){.state = "killed", .cut_short = true});
	}
	stop_loop(w);
	return ready ? EXIT_SUCCESS : EXIT_FAILURE;
}

int hr_private_worker(int config_fd, int control_fd, int shim_fd)
{
	struct private_worker *w = calloc(1, sizeof(*w));
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
	if (start_node(w, config_fd) == 0 && private_worker_start_loop(w) == 0)
		status = private_worker_run(w);
	hr_node_free(w->node);
	hr_private_uplink_free(w->uplink);
	hr_private_config_done(&w->config);
	free(w);
	return status;
}
