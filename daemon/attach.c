/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/attach_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/fdstore.h"
#include "daemon/hello.h"
#include "daemon/procfs.h"
#include "daemon/ranks.h"

#define HR_BACKLOG 4096 /* connections that wait for accept */

/* ---- a hello -------------------------------------------------------------------------------------- */

struct visit {
	struct ucred cred;
	struct hr_hello hello;
	const uint8_t *message;
	uint32_t bytes;
	struct hr_procstat stat;
	int pidfd;
	uint64_t exec_of;
	uint32_t replaces; /* index of the client that it was before exec; UINT32_MAX: none */
};

/* Ranks that the environment names and nobody asked for. Late ones are the drain thread's (drain.c). */
static bool deselected(const struct hr_attach *a, const struct visit *v)
{
	struct hr_rank rank = {0};
	struct hr_hello_item item;
	size_t at = 0;

	if (!a->c.ranks && !a->c.local_ranks)
		return false;
	while (hr_hello_next(v->message, v->bytes, &at, &item))
		if (item.kind == HR_ITEM_ENV)
			hr_rank_env(&rank, (const char *)item.value, item.bytes);
	return (rank.rank_plus1 && !hr_ranks_hold(a->c.ranks, rank.rank_plus1 - 1)) ||
	       (rank.local_plus1 && !hr_ranks_hold(a->c.local_ranks, rank.local_plus1 - 1));
}

/* The chain of parents, up to the first that is attached. */
static void find_ancestors(struct hr_attach *a, pid_t ppid, int32_t *ancestors)
{
	struct hr_procstat stat;

	memset(ancestors, 0, HR_ANCESTORS * sizeof(*ancestors));
	for (uint32_t i = 0; i < HR_ANCESTORS && ppid > 1; i++) {
		ancestors[i] = ppid;
		if (hr__client_by(a, &a->by_pid, (uint32_t)ppid) || hr_procstat_read(ppid, &stat))
			return;
		ppid = stat.ppid;
	}
}

/* Journals who came, in time order with everything else. -EAGAIN: the journal is full for now. */
static int journal_attach(struct hr_attach *a, const struct visit *v, uint64_t proc, uint64_t token,
			  bool out)
{
	uint64_t give_up_ns = hr_boot_ns() + JOURNAL_WAIT_NS;
	struct hr_entry_attach *in = NULL;
	int32_t ancestors[HR_ANCESTORS];

	find_ancestors(a, v->stat.ppid, ancestors);
	for (;;) {
		hr_journal_lock(a->c.journal);
		in = hr_journal_reserve(a->c.journal, sizeof(*in) + v->bytes, HR_KNOWN_SLACK);
		if (in)
			break;
		hr_journal_unlock(a->c.journal);
		if (hr_boot_ns() > give_up_ns)
			return -EAGAIN;
		usleep(500);
	}
	in->proc = proc;
	in->token = token;
	in->now_ns = hr_boot_ns();
	in->now_ticks = hr_clock_ticks(a->c.clock);
	in->start_time = v->stat.start_time;
	in->exec_of = v->exec_of;
	in->pid = v->cred.pid;
	in->uid = v->cred.uid;
	in->deselected = out;
	in->hello_bytes = v->bytes;
	memcpy(in->ancestors, ancestors, sizeof(ancestors));
	memcpy(in->hello, v->message, v->bytes);
	hr_journal_commit(a->c.journal, HR_ENTRY_ATTACH, sizeof(*in) + v->bytes);
	hr_journal_unlock(a->c.journal);
	return 0;
}

/* A map for the session: mapped here, known to the fd store; *ret_fd is for the client. */
static int make_map(struct hr_attach *a, uint64_t proc, uint64_t token, uint32_t index,
		    struct hr_map_hdr **ret, int *ret_fd)
{
	char name[64];
	int fd, r;

	if (a->ring_bytes + MAP_BYTES > a->c.max_ring_bytes)
		return -ENOSPC;
	fd = hr_ringpool_take(&a->pool, token, index, hr_drain_level(a->c.drain));
	if (fd < 0)
		return fd;
	r = hr_map_open(fd, ret);
	if (r) {
		close(fd);
		return r;
	}
	snprintf(name, sizeof(name), "s%llu.%u", (unsigned long long)proc, index);
	hr_fdstore_push(name, fd);
	*ret_fd = fd;
	return 0;
}

static uint64_t new_token(void)
{
	uint64_t token = 0;

	while (token == 0)
		if (getrandom(&token, sizeof(token), 0) != sizeof(token))
			token = 0;
	return token;
}

static int new_session(struct hr_attach *a, struct visit *v, struct hr_ack *ack, int *ret_fd)
{
	struct client c = {
	    .token = new_token(), .pid = v->cred.pid, .pidfd = v->pidfd, .n_maps = 1};
	struct hr_session *s = NULL;
	struct hr_map_hdr *map;
	int r;

	if (a->live >= a->c.max_sessions)
		return -ENOSPC;
	c.proc = a->next_proc++;
	r = make_map(a, c.proc, c.token, 0, &map, ret_fd);
	if (r)
		return r;
	r = hr_session_new(c.proc, c.token, c.pid, &s);
	if (r) {
		hr_map_close(map);
		return r;
	}
	hr_session_add_map(s, map);
	r = journal_attach(a, v, c.proc, c.token, false);
	if (!r)
		r = hr__client_add(a, &c);
	if (r) {
		hr_session_free(s);
		return r;
	}
	v->pidfd = -1;
	ack->session = c.token;
	hr_drain_add_session(a->c.drain, s);
	return 0;
}

static int more_rings(struct hr_attach *a, const struct visit *v, struct hr_ack *ack, int *ret_fd)
{
	struct client *c = hr__client_by(a, &a->by_token, v->hello.session);
	struct hr_map_hdr *map;
	int r;

	if (!c || c->pid != v->cred.pid)
		return -EACCES;
	if (c->n_maps >= HR_SESSION_MAPS)
		return -ENOSPC;
	r = make_map(a, c->proc, c->token, c->n_maps, &map, ret_fd);
	if (r)
		return r;
	ack->session = c->token;
	ack->index = c->n_maps++;
	a->ring_bytes += MAP_BYTES;
	hr_drain_add_map(a->c.drain, c->proc, map);
	return 0;
}

/* The same pid again: exec when it is the same process, else a number reused before its death was seen. */
static void look_back(struct hr_attach *a, struct visit *v)
{
	struct client *old = hr__client_by(a, &a->by_pid, (uint32_t)v->cred.pid);

	v->replaces = UINT32_MAX;
	if (!old)
		return;
	if (hr__client_dead(old)) {
		hr__client_gone(a, (uint32_t)(old - a->clients), "");
		return;
	}
	v->exec_of = old->proc;
	v->replaces = (uint32_t)(old - a->clients);
}

static int attach(struct hr_attach *a, struct visit *v, struct hr_ack *ack, int *ret_fd)
{
	int r = hr_procstat_read(v->cred.pid, &v->stat);

	if (r)
		return -ESRCH;
	v->pidfd = (int)syscall(SYS_pidfd_open, v->cred.pid, 0);
	if (v->pidfd < 0)
		return -ESRCH;
	look_back(a, v);
	if (deselected(a, v)) {
		r = journal_attach(a, v, a->next_proc++, new_token(), true);
		return r ? r : -ECANCELED;
	}
	r = new_session(a, v, ack, ret_fd);
	if (!r && v->replaces != UINT32_MAX)
		hr__client_gone(a, v->replaces, "exec");
	return r;
}

/* ---- connections ----------------------------------------------------------------------------------- */

/* Answers with the map and, for a new session, the node page. */
static void reply(struct hr_attach *a, int fd, const struct hr_ack *ack, int map_fd, bool with_page)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)ack, sizeof(*ack)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[2] = {map_fd, a->c.page_fd};
	size_t n = with_page ? 2 : 1;

	if (map_fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int answer(struct hr_attach *a, int fd, struct visit *v, struct hr_ack *ack, int *ret_fd)
{
	socklen_t len = sizeof(v->cred);
	int r = hr_hello_check(v->message, v->bytes, &v->hello);

	if (r)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &v->cred, &len) < 0 || v->cred.pid <= 0 ||
	    (v->cred.uid != a->c.uid && v->cred.uid != 0))
		return -EACCES;
	if (v->hello.kind == HR_HELLO_MORE_RINGS)
		return more_rings(a, v, ack, ret_fd);
	return attach(a, v, ack, ret_fd);
}

static void visit(struct hr_attach *a, int fd, uint32_t bytes)
{
	struct visit v = {.message = a->message, .bytes = bytes, .pidfd = -1};
	struct hr_ack ack = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .flags = a->c.clock->tsc ? HR_ACK_CLOCK_TSC : 0,
	    .ring_count = HR_MAP_RINGS,
	    .slots_log2 = HR_RING_SLOTS_LOG2,
	    .level = hr_drain_level(a->c.drain),
	    .map_bytes = MAP_BYTES,
	};
	int map_fd = -1;

	ack.status = answer(a, fd, &v, &ack, &map_fd);
	if (ack.status == -ENOSPC)
		hr_drain_refused(a->c.drain);
	else if (ack.status == -ESRCH && v.hello.kind == HR_HELLO_ATTACH)
		hr_drain_missed(a->c.drain);
	if (ack.status != -EBADMSG) /* what is no hello gets no answer */
		reply(a, fd, &ack, ack.status ? -1 : map_fd, v.hello.kind == HR_HELLO_ATTACH);
	if (map_fd >= 0)
		close(map_fd);
	if (v.pidfd >= 0)
		close(v.pidfd);
}

static void guest_leave(struct hr_attach *a, struct guest *g)
{
	close(g->fd); /* leaves the epoll set with it */
	g->fd = -1;
	a->n_guests--;
}

static void guest_speaks(struct hr_attach *a, struct guest *g)
{
	ssize_t n = recv(g->fd, a->message, HR_HELLO_MAX_BYTES + 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		visit(a, g->fd, (uint32_t)n);
	guest_leave(a, g);
}

/* A hello that is there already needs no second turn of the loop: the usual case. */
static void guest_enter(struct hr_attach *a, int fd)
{
	struct guest *g = a->guests;

	while (g->fd >= 0)
		g++;
	*g = (struct guest){fd, hr_boot_ns()};
	a->n_guests++;
	guest_speaks(a, g);
	if (g->fd >= 0 && hr__attach_watch(a, fd, EV_GUEST | (uint64_t)(g - a->guests)))
		guest_leave(a, g);
}

static void accept_all(struct hr_attach *a)
{
	while (a->n_guests < GUESTS_MOST) {
		int fd = accept4(a->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		guest_enter(a, fd);
	}
}

/* Closes connections that stay silent: all that are late, or the oldest when there is no room. */
static void expire_guests(struct hr_attach *a)
{
	uint64_t now_ns = hr_boot_ns();
	struct guest *oldest = NULL;

	for (unsigned i = 0; i < GUESTS_MOST && a->n_guests; i++) {
		struct guest *g = &a->guests[i];

		if (g->fd < 0)
			continue;
		if (now_ns - g->since_ns > GUEST_NS)
			guest_leave(a, g);
		else if (!oldest || g->since_ns < oldest->since_ns)
			oldest = g;
	}
	if (a->n_guests == GUESTS_MOST && oldest)
		guest_leave(a, oldest);
}

static bool handle(struct hr_attach *a, uint64_t data)
{
	uint32_t i = (uint32_t)data;

	switch (EV_KIND(data)) {
	case EV_LISTEN:
		accept_all(a);
		return true;
	case EV_GUEST:
		if (a->guests[i].fd >= 0)
			guest_speaks(a, &a->guests[i]);
		return true;
	case EV_PIDFD:
		if (a->clients[i].pidfd >= 0 && hr__client_dead(&a->clients[i]))
			hr__client_gone(a, i, "");
		return true;
	default:
		return false;
	}
}

static void *run(void *arg)
{
	struct hr_attach *a = arg;
	struct epoll_event events[32];
	int wait_ms = 0;

	for (;;) {
		int n = epoll_wait(a->epoll_fd, events, 32, wait_ms);

		for (int i = 0; i < n; i++)
			if (!handle(a, events[i].data.u64))
				return NULL;
		if (a->n_guests)
			expire_guests(a);
		/* One map per idle turn, so that a process that knocks meanwhile does not wait. */
		if (n <= 0 && hr_ringpool_refill(&a->pool))
			wait_ms = 0;
		else
			wait_ms = n > 0 ? 0 : a->n_guests ? 100 : -1;
	}
}

/* ---- life ----------------------------------------------------------------------------------------- */

static int listen_at(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, r = 0;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(path, 0666) < 0 ||
	    listen(fd, HR_BACKLOG) < 0)
		r = -errno;
	if (r) {
		close(fd);
		return r;
	}
	return fd;
}

int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret)
{
	struct hr_attach *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->c = *config;
	a->next_proc = config->next_proc;
	a->epoll_fd = a->stop_fd = -1;
	for (unsigned i = 0; i < GUESTS_MOST; i++)
		a->guests[i].fd = -1;
	pthread_mutex_init(&a->lock, NULL);
	hr_ringpool_init(&a->pool);
	a->message = malloc(HR_HELLO_MAX_BYTES + 1);
	/*
	 * A socket that outlives us keeps those waiting who knock while we are restarted. Listening again makes us
	 * the peer that they see: a shim asks whether that process is stopped (shim/session.c).
	 */
	if (config->listen_fd > 0) {
		a->listen_fd = fcntl(config->listen_fd, F_DUPFD_CLOEXEC, 3);
		r = a->listen_fd < 0 || listen(a->listen_fd, HR_BACKLOG) < 0 ? -errno : 0;
	} else {
		a->listen_fd = listen_at(config->socket);
		r = a->listen_fd < 0 ? a->listen_fd : 0;
	}
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

int hr_attach_start(struct hr_attach *a)
{
	int r = pthread_create(&a->thread, NULL, run, a);

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
	unlink(a->c.socket);
}

void hr_attach_free(struct hr_attach *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->clients[i].pidfd >= 0)
			close(a->clients[i].pidfd);
	for (unsigned i = 0; i < GUESTS_MOST; i++)
		if (a->guests[i].fd >= 0)
			close(a->guests[i].fd);
	hr_ringpool_done(&a->pool);
	if (a->listen_fd >= 0)
		close(a->listen_fd);
	if (a->epoll_fd >= 0)
		close(a->epoll_fd);
	if (a->stop_fd >= 0)
		close(a->stop_fd);
	hr_map64_done(&a->by_pid);
	hr_map64_done(&a->by_token);
	pthread_mutex_destroy(&a->lock);
	free(a->clients);
	free(a->message);
	free(a);
}
