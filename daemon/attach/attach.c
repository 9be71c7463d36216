/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/attach/attach_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/exit.h"
#include "daemon/base/hello.h"
#include "daemon/base/passfd.h"

#define BACKLOG	      4096
#define READABLE_MOST 64 /* maximum number of earlier connections that one call reads */
/*
 * How long the pool waits before it makes a map: the process that just got its answer needs the
 * CPU.
 */
#define REFILL_MS 2
/* How long the thread sleeps when it cannot accept a connection that waits. */
#define ACCEPT_AGAIN_US 20000
/* Maximum number of exited processes whose sessions stay open for their children. */
#define EXITED_MOST BACKLOG

uint64_t hr_attach_pending_ns = UINT64_C(1000000000);

/*
 * ---- notices ----
 *
 * A process announces that it starts a program without the shim (HR_HELLO_EXEC). The notice is kept
 * until the exec closes its connection; then the program is counted.
 */

/* If a->message is a notice, removes it from the connection and returns true. */
static bool notice_keep(struct hr_attach *a, struct pending_attach *g, uint32_t bytes)
{
	struct hr_hello hello;

	if (hr_hello_check(a->message, bytes, &hello) || hello.kind != HR_HELLO_EXEC)
		return false;
	g->notice = malloc(bytes);
	if (!g->notice)
		return false;
	memcpy(g->notice, a->message, bytes);
	g->notice_bytes = bytes;
	if (hr__attach_read_flags(a) & MSG_PEEK)
		(void)recv(g->fd, a->message, 1, MSG_DONTWAIT);
	return true;
}

/* Counts the notice of a connection, if there is one, without waiting for the exec. */
static void notice_count(struct hr_attach *a, struct pending_attach *g)
{
	if (!g->notice)
		return;
	memcpy(a->message, g->notice, g->notice_bytes);
	hr__handshake(a, g, g->notice_bytes);
	free(g->notice);
	g->notice = NULL;
}

/* Returns whether the notice is done: its program was counted, or the exec failed. */
static bool notice_over(struct hr_attach *a, struct pending_attach *g)
{
	char failed;
	ssize_t n = recv(g->fd, &failed, sizeof(failed), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		notice_count(a, g);
	return true;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void pending_close(struct hr_attach *a, struct pending_attach *g)
{
	hr_hello_discard(g->fd);
	/* While another process has the connection open, close() does not remove it from epoll. */
	epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, g->fd, NULL);
	close(g->fd);
	g->fd = -1;
	free(g->notice);
	g->notice = NULL;
	hr__pending_forget(a, g);
	a->n_pending--;
}

/* Reads the first message of a connection. Returns false if it has not arrived. */
static bool read_first(struct hr_attach *a, struct pending_attach *g)
{
	ssize_t n = recv(g->fd, a->message, HR_HELLO_MAX_BYTES + 1, hr__attach_read_flags(a));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0 && !notice_keep(a, g, (uint32_t)n))
		hr__handshake(a, g, (uint32_t)n);
	return true;
}

static void pending_read(struct hr_attach *a, struct pending_attach *g)
{
	if (!g->notice && !read_first(a, g))
		return;
	if (!g->notice || notice_over(a, g))
		pending_close(a, g);
}

static int by_arrival(const void *a, const void *b)
{
	const struct pending_attach *const *g = a, *const *h = b;

	return (*g)->since_ns < (*h)->since_ns ? -1 : (*g)->since_ns > (*h)->since_ns;
}

/*
 * Reads earlier connections, because a later one may refer to them: the second connection of a
 * process refers to the first, and a child's hello to its parent's. epoll returns only connections
 * with a message, so even many silent connections cost nothing.
 */
static void read_earlier(struct hr_attach *a)
{
	struct epoll_event events[READABLE_MOST];
	struct pending_attach *readable[READABLE_MOST];
	unsigned n = 0;
	int ready = epoll_wait(a->epoll_fd, events, READABLE_MOST, 0);

	for (int i = 0; i < ready; i++)
		if (EV_KIND(events[i].data.u64) == EV_PENDING)
			readable[n++] = &a->pending[(uint32_t)events[i].data.u64];
	if (n)
		qsort(readable, n, sizeof(readable[0]), by_arrival);
	for (unsigned i = 0; i < n; i++)
		if (readable[i]->fd >= 0)
			pending_read(a, readable[i]);
}

/* Opens a pending connection. Reads its hello at once, because it usually arrives at once. */
static void pending_open(struct hr_attach *a, struct pending_attach *g, int fd)
{
	*g = (struct pending_attach){.fd = fd, .since_ns = hr_boot_ns()};
	if (a->n_pending++)
		read_earlier(a);
	pending_read(a, g);
	if (g->fd >= 0 && hr__attach_watch(a, fd, EV_PENDING | (uint64_t)(g - a->pending)))
		pending_close(a, g);
}

/*
 * Returns the first connection in the hand-off queue; -1: none. A connection and its messages stay
 * in the queue until the connection is answered, refused or counted, so that they survive a kill of
 * headraced. If the queue has ended, this function stops watching it.
 */
static int peek_handoff(struct hr_attach *a)
{
	uint32_t word;
	int fd = -1, r = hr_passfd_peek(a->listen_fd, &word, &fd);

	if (r == -EPIPE)
		epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, a->listen_fd, NULL);
	else
		a->accept_failed = r != -EAGAIN && fd < 0;
	return fd;
}

static int accept_one(struct hr_attach *a, const struct pending_attach *g)
{
	struct pollfd p = {.fd = a->listen_fd, .events = POLLIN};
	int fd, n = poll(&p, 1, 0);

	a->accept_failed = n < 0;
	if (n <= 0)
		return -1;
	fd = hr__pending_accept(a, g);
	a->accept_failed = fd < 0;
	return fd;
}

/* Returns an unused element of `pending`. The caller has checked that there is one. */
static struct pending_attach *pending_unused(struct hr_attach *a)
{
	struct pending_attach *g = a->pending;

	while (g->fd >= 0 || hr__orphan_has(a, g))
		g++;
	return g;
}

/* Accepts connections in the order in which they arrived, so that parents precede children. */
static void accept_all(struct hr_attach *a)
{
	int fd = -1;

	while (a->n_pending + a->n_orphans < PENDING_MOST && a->n_exited < EXITED_MOST) {
		struct pending_attach *g = pending_unused(a);

		fd = a->c.node->handoff_fd > 0 ? peek_handoff(a) : accept_one(a, g);
		if (fd < 0)
			break;
		pending_open(a, g, fd);
		if (a->c.node->handoff_fd > 0) {
			hr_passfd_drop(a->listen_fd);
			/* Release: pairs with hr_attach_use, which reads this counter first. */
			__atomic_add_fetch(&a->served, 1, __ATOMIC_RELEASE);
			a->takeover = false;
		}
	}
	if (fd < 0 || a->n_exited == EXITED_MOST)
		hr__exited_end(a);
}

/* If headraced was stopped, a message with an offer may have arrived late. */
static void pending_expire(struct hr_attach *a, struct pending_attach *g)
{
	pending_read(a, g);
	if (g->fd < 0)
		return;
	notice_count(a, g);
	pending_close(a, g);
}

/* Closes connections without a message in time and, if `pending` is full, the oldest one. */
static void pending_expire_late(struct hr_attach *a)
{
	uint64_t now_ns = hr_boot_ns();
	struct pending_attach *oldest = NULL;

	for (unsigned i = 0; i < PENDING_MOST && a->n_pending; i++) {
		struct pending_attach *g = &a->pending[i];

		if (g->fd < 0)
			continue;
		if (now_ns - g->since_ns > hr_attach_pending_ns)
			pending_expire(a, g);
		else if (!oldest || g->since_ns < oldest->since_ns)
			oldest = g;
	}
	if (a->n_pending + a->n_orphans == PENDING_MOST && oldest)
		pending_expire(a, oldest);
}

static bool handle(struct hr_attach *a, uint64_t data)
{
	uint32_t i = (uint32_t)data;

	switch (EV_KIND(data)) {
	case EV_LISTEN:
		accept_all(a);
		return true;
	case EV_PENDING:
		if (a->pending[i].fd >= 0)
			pending_read(a, &a->pending[i]);
		return true;
	case EV_PIDFD:
		/*
		 * First accepts the connections that wait: children that connected before their
		 * parent ended must find the parent.
		 */
		accept_all(a);
		if (a->clients[i].pidfd >= 0 && hr_pidfd_ended(a->clients[i].pidfd))
			hr__client_gone(a, i, NULL);
		return true;
	default:
		accept_all(a); /* connections from before the end still belong to the job */
		for (unsigned g = 0; g < PENDING_MOST; g++)
			notice_count(a, &a->pending[g]);
		hr__orphans_missed(a);
		return false;
	}
}

static void *attach_run(void *arg)
{
	struct hr_attach *a = arg;
	struct epoll_event events[32];
	int wait_ms = 0;

	accept_all(a);
	for (;;) {
		int n;

		/* The socket stays readable, for example without a free descriptor. */
		if (a->accept_failed)
			usleep(ACCEPT_AGAIN_US);
		a->accept_failed = false;
		n = epoll_wait(a->epoll_fd, events, 32, wait_ms);
		/* No process could attach, and none would end: the keeper ends, too. */
		if (n < 0 && errno != EINTR)
			_exit(EXIT_FAILURE);
		for (int i = 0; i < n; i++)
			if (!handle(a, events[i].data.u64))
				return NULL;
		if (a->n_pending)
			pending_expire_late(a);
		if (a->n_orphans && hr_boot_ns() > a->orphans_until_ns)
			hr__orphans_missed(a);
		/* Makes one map at a time, so that a new process waits for one map at most. */
		if (n <= 0 && hr_ringpool_refill(&a->pool))
			wait_ms = 0;
		else if (n > 0)
			wait_ms = hr_ringpool_low(&a->pool) ? 0 : REFILL_MS;
		else
			wait_ms = a->n_pending || a->n_orphans ? 100 : -1;
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret)
{
	const struct hr_node_config *node = config->node;
	struct hr_attach *a = calloc(1, sizeof(*a));
	bool handoff = node->handoff_fd > 0;
	int r;

	if (!a)
		return -ENOMEM;
	a->c = *config;
	a->line = config->clock->line;
	a->takeover = config->takeover;
	a->epoll_fd = a->stop_fd = -1;
	for (unsigned i = 0; i < PENDING_MOST; i++)
		a->pending[i].fd = -1;
	hr__orphans_find(a);
	a->orphans_until_ns = hr_boot_ns() + hr_attach_pending_ns;
	pthread_mutex_init(&a->lock, NULL);
	hr_ringpool_init(&a->pool);
	a->message = malloc(HR_HELLO_MAX_BYTES + 1);
	/*
	 * The socket and its backlog outlive a recording process. A shim checks whether its peer is
	 * stopped (shim/core/session.c), and the peer is the process that called listen() last.
	 */
	a->listen_fd = fcntl(handoff ? node->handoff_fd : node->shim_fd, F_DUPFD_CLOEXEC, 3);
	r = a->listen_fd < 0 || (!handoff && listen(a->listen_fd, BACKLOG) < 0) ? -errno : 0;
	if (!r) {
		a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		a->stop_fd = eventfd(0, EFD_CLOEXEC);
		r = a->epoll_fd < 0 || a->stop_fd < 0 ? -errno : 0;
	}
	if (!r)
		r = hr__attach_watch(a, a->listen_fd, EV_LISTEN);
	if (!r)
		r = hr__attach_watch(a, a->stop_fd, EV_STOP);
	if (r || !a->message) {
		hr_attach_free(a);
		return r ? r : -ENOMEM;
	}
	hr_ringpool_refill(&a->pool);
	*ret = a;
	return 0;
}

void hr_attach_probes(struct hr_attach *a, struct hr_probes *probes)
{
	__atomic_store_n(&a->c.probes, probes, __ATOMIC_RELEASE);
}

int hr_attach_start(struct hr_attach *a)
{
	int r = pthread_create(&a->thread, NULL, attach_run, a);

	a->running = r == 0;
	return -r;
}

void hr_attach_stop(struct hr_attach *a)
{
	uint64_t one = 1;

	if (!a || !a->running)
		return;
	if (write(a->stop_fd, &one, sizeof(one)) < 0)
		return;
	pthread_join(a->thread, NULL);
	a->running = false;
	if (a->c.node->handoff_fd <= 0)
		unlink(a->c.node->shim_socket);
}

void hr_attach_free(struct hr_attach *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->clients[i].pidfd >= 0)
			close(a->clients[i].pidfd);
	for (unsigned i = 0; i < PENDING_MOST; i++)
		if (a->pending[i].fd >= 0) {
			close(a->pending[i].fd);
			free(a->pending[i].notice);
		}
	hr_ringpool_done(&a->pool);
	if (a->listen_fd >= 0)
		close(a->listen_fd);
	if (a->epoll_fd >= 0)
		close(a->epoll_fd);
	if (a->stop_fd >= 0)
		close(a->stop_fd);
	hr_map64_done(&a->by_pid);
	hr_map64_done(&a->by_token);
	free(a->exited);
	pthread_mutex_destroy(&a->lock);
	free(a->clients);
	free(a->message);
	free(a);
}
