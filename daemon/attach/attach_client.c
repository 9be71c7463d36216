/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of attached processes (found by pid or token) and of exited ones (struct exited). */
#include "daemon/attach/attach_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/array.h"
#include "daemon/base/exit.h"

struct attach_client *hr__client_by(struct hr_attach *a, const struct hr_map64 *map, uint64_t key)
{
	uint32_t i = hr_map64_get(map, key);

	return i == HR_MAP64_NONE ? NULL : &a->clients[i];
}

int hr__attach_watch(struct hr_attach *a, int fd, uint64_t data)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = data};

	return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static uint32_t client_slot(struct hr_attach *a)
{
	for (uint32_t i = 0; i < a->n && a->live < a->n; i++)
		if (a->clients[i].pidfd < 0)
			return i;
	return hr_array_reserve(a->clients, a->n, a->room) ? a->n++ : UINT32_MAX;
}

int hr__client_add(struct hr_attach *a, const struct attach_client *c)
{
	uint32_t i;
	int r = -ENOMEM;

	pthread_mutex_lock(&a->lock);
	i = client_slot(a);
	if (i != UINT32_MAX) {
		a->clients[i].pidfd = -1;
		r = hr__attach_watch(a, c->pidfd, EV_PIDFD | i);
	}
	if (!r && (hr_map64_set(&a->by_pid, (uint32_t)c->pid, i) ||
		   hr_map64_set(&a->by_token, c->token, i)))
		r = -ENOMEM;
	if (!r) {
		a->clients[i] = *c;
		a->live++;
		a->ring_bytes += c->bytes;
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

static void client_remove(struct hr_attach *a, uint32_t i)
{
	struct attach_client *c = &a->clients[i];

	pthread_mutex_lock(&a->lock);
	if (hr__client_by(a, &a->by_pid, (uint32_t)c->pid) == c)
		hr_map64_remove(&a->by_pid, (uint32_t)c->pid);
	hr_map64_remove(&a->by_token, c->token);
	epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, c->pidfd, NULL);
	close(c->pidfd);
	c->pidfd = -1;
	a->live--;
	a->ring_bytes -= c->bytes;
	pthread_mutex_unlock(&a->lock);
}

static void client_end(struct hr_attach *a, uint32_t i, struct hr_drain_end *ret)
{
	ret->proc = a->clients[i].proc;
	hr_exit_read(a->clients[i].pidfd, a->clients[i].pid, ret->exit);
	client_remove(a, i);
}

void hr__client_gone(struct hr_attach *a, uint32_t i, const char *exit)
{
	struct hr_drain_end end = {.proc = a->clients[i].proc};

	if (exit)
		client_remove(a, i);
	else
		client_end(a, i, &end);
	hr_drain_ended(a->c.drain, end.proc, exit ? exit : end.exit);
}

size_t hr__clients_end(struct hr_attach *a, uint64_t proc, uint32_t replaced,
		       struct hr_drain_end ret[HR_DRAIN_ENDS])
{
	struct epoll_event events[HR_DRAIN_ENDS];
	int ready = epoll_wait(a->epoll_fd, events, HR_DRAIN_ENDS, 0);
	size_t n = 0;

	for (int k = 0; k < ready; k++) {
		uint32_t i = (uint32_t)events[k].data.u64;

		if (EV_KIND(events[k].data.u64) == EV_PIDFD && i != replaced &&
		    a->clients[i].proc != proc)
			client_end(a, i, &ret[n++]);
	}
	return n;
}

/* ---- exited processes ------------------------------------------------------------------------ */

void hr__exited_add(struct hr_attach *a, const struct attach_client *was)
{
	if (!hr_array_reserve(a->exited, a->n_exited, a->room_exited)) {
		hr_drain_ended(a->c.drain, was->proc, "");
		return;
	}
	a->exited[a->n_exited] = (struct exited){.was = *was};
	a->exited[a->n_exited++].was.pidfd = -1;
}

struct exited *hr__exited_by_pid(struct hr_attach *a, pid_t pid)
{
	for (uint32_t i = a->n_exited; i-- > 0;)
		if (a->exited[i].was.pid == pid)
			return &a->exited[i];
	return NULL;
}

struct attach_client *hr__token_owner(struct hr_attach *a, uint64_t token)
{
	struct attach_client *c = hr__client_by(a, &a->by_token, token);

	for (uint32_t i = 0; i < a->n_exited && !c; i++)
		if (a->exited[i].was.token == token)
			c = &a->exited[i].was;
	return c;
}

void hr__exited_end(struct hr_attach *a)
{
	for (uint32_t i = 0; i < a->n_exited; i++)
		hr_drain_ended(a->c.drain, a->exited[i].was.proc,
			       a->exited[i].replaced ? "exec" : "");
	a->n_exited = 0;
}

/* ---- processes that attached before a restart ------------------------------------------------ */

int hr_attach_adopt(struct hr_attach *a, const struct hr_session *s, uint64_t start_time)
{
	struct attach_client c = {.proc = s->proc,
				  .token = s->token,
				  .bytes = hr_session_bytes(s),
				  .pid = s->pid,
				  .n_maps = s->n_maps,
				  .last_inode = s->n_maps ? s->maps[s->n_maps - 1].inode : 0};
	struct hr_procstat stat;
	int r;

	c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
	/* While the pidfd is open, the kernel cannot reuse the pid, so this is its start time. */
	r = c.pidfd < 0 || hr_procstat_read(c.pid, &stat) || stat.start_time != start_time ? -ESRCH
											   : 0;
	if (!r)
		r = hr__client_add(a, &c);
	if (r && c.pidfd >= 0)
		close(c.pidfd);
	/*
	 * The process has exited, but its own offer or its children's hellos may be in the queue.
	 */
	if (r)
		hr__exited_add(a, &c);
	return r;
}

void hr_attach_use(struct hr_attach *a, struct hr_attach_use *ret)
{
	ret->served = __atomic_load_n(&a->served, __ATOMIC_ACQUIRE);
	pthread_mutex_lock(&a->lock);
	ret->sessions = a->live;
	ret->ring_bytes = a->ring_bytes;
	pthread_mutex_unlock(&a->lock);
}

size_t hr_attach_pids(struct hr_attach *a, pid_t *pids, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&a->lock);
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->clients[i].pidfd < 0)
			continue;
		if (n < max)
			pids[n] = a->clients[i].pid;
		n++;
	}
	pthread_mutex_unlock(&a->lock);
	return n;
}
