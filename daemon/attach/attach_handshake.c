/* SPDX-License-Identifier: Apache-2.0 */
/* Processes a hello: identifies the process, checks its rank, makes a session, and answers. */
#include "daemon/attach/attach_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fdstore.h"
#include "common/sendfd.h"
#include "daemon/base/exit.h"
#include "daemon/base/hello.h"
#include "daemon/probes/probes.h"
#include "common/ranks.h"
#include "daemon/base/cgroup.h"

/* How long an offer waits for room in the journal. Long, because the client sends it only once. */
#define JOURNAL_WAIT_OFFER_NS UINT64_C(1000000000)

static uint64_t next_proc(struct hr_attach *a)
{
	return __atomic_add_fetch(a->c.last_proc, 1, __ATOMIC_RELAXED);
}

/* ---- rank and journal ------------------------------------------------------------------------ */

/*
 * Returns whether the environment of the process has a rank that the job does not record. The drain
 * thread checks ranks that are found later.
 */
static bool deselected(const struct hr_attach *a, const struct handshake *v)
{
	struct hr_rank rank = {0};
	struct hr_hello_item item;
	size_t at = 0;

	if (!a->c.node->ranks && !a->c.node->local_ranks)
		return false;
	while (hr_hello_next(v->message, v->bytes, &at, &item))
		if (item.kind == HR_ITEM_ENV)
			hr_rank_env(&rank, (const char *)item.value, item.bytes);
	return hr_rank_left_out(&rank, a->c.node->ranks, a->c.node->local_ranks);
}

static bool attached(void *arg, pid_t pid)
{
	struct hr_attach *a = arg;

	return hr__client_by(a, &a->by_pid, (uint32_t)pid) != NULL;
}

/* Writes the ATTACH entry, in time order with all other entries. -EAGAIN: the journal is full. */
static int journal_attach(struct hr_attach *a, const struct handshake *v, uint64_t proc,
			  uint64_t token, bool out)
{
	struct hr_entry_attach *in;
	int32_t ancestors[HR_ANCESTORS];
	struct hr_affinity affinity = {0};
	uint32_t quota = 0;

	if (v->cred.pid > 0) {
		hr_affinity_read(v->cred.pid, &affinity);
		quota = hr_cpu_quota_milli(v->cred.pid);
	}
	hr_procstat_ancestors(v->stat.ppid, attached, a, ancestors, HR_ANCESTORS);
	in = hr__journal_reserve(a, sizeof(*in) + v->bytes,
				 v->offered ? JOURNAL_WAIT_OFFER_NS : HR__JOURNAL_WAIT_NS);
	if (!in)
		return -EAGAIN;
	in->proc = proc;
	in->token = token;
	in->now_ns = hr_boot_ns();
	in->now_ticks = v->ticks;
	in->start_time = v->stat.start_time;
	in->exec_of = v->exec_of;
	in->pid = v->cred.pid;
	in->uid = v->cred.uid;
	in->deselected = out;
	in->hello_bytes = v->bytes;
	in->cpus = affinity.cpus;
	in->first_cpu = affinity.first;
	in->cpu_quota_milli = quota;
	memcpy(in->ancestors, ancestors, sizeof(ancestors));
	memcpy(in->hello, v->message, v->bytes);
	hr_journal_commit(a->c.journal, HR_ENTRY_ATTACH, sizeof(*in) + v->bytes);
	hr__pending_forget(a, v->pending);
	hr_journal_unlock(a->c.journal);
	return 0;
}

/* ---- a session ------------------------------------------------------------------------------- */

/* Makes a map for a session, and maps it at *ret. *ret_fd: the descriptor for the client. */
static int make_map(struct hr_attach *a, uint32_t abi, uint64_t token, uint32_t index,
		    struct hr_map *ret, int *ret_fd)
{
	struct hr_map_hdr hdr = {
	    .magic = HR_ABI_MAGIC,
	    .abi = abi,
	    .index = index,
	    .session = token,
	    .ring_count = HR_MAP_RINGS,
	    .slots_log2 = HR_RING_SLOTS_LOG2,
	    .level = hr_drain_level(a->c.drain),
	    .short_ticks = (uint32_t)hr_ns_ticks(&a->line, HR_SHORT_NS),
	};
	int fd;

	if (a->ring_bytes + MAP_BYTES > a->c.node->max_ring_bytes)
		return -ENOSPC;
	fd = hr_ringpool_take(&a->pool, ret);
	if (fd < 0)
		return fd;
	memcpy(ret->hdr, &hdr, HR_MAP_HEAD_BYTES);
	*ret_fd = fd;
	return 0;
}

/*
 * Stores the map's descriptor outside of this process, so that after a kill the next process can
 * read the map.
 */
static void attach_handshake_keep(uint64_t proc, uint32_t index, int fd)
{
	char name[HR_MAP_NAME_BYTES];

	hr_map_name(proc, index, name);
	hr_fdstore_push(name, fd);
}

/* Returns 0 if the kernel has no random numbers. */
static uint64_t new_token(void)
{
	uint64_t token = 0;

	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		return 0;
	return token != 0 ? token : 1;
}

/* Returns the map that the client offers, or a new one. The caller closes *ret_fd. */
static int next_map(struct hr_attach *a, struct handshake *v, const struct attach_client *c,
		    struct hr_map *ret, int *ret_fd)
{
	if (!v->offered)
		return make_map(a, v->hello.abi, c->token, c->n_maps, ret, ret_fd);
	if (a->ring_bytes + hr_map_size(&v->offer.map) > a->c.node->max_ring_bytes)
		return -ENOSPC;
	*ret = v->offer.map;
	*ret_fd = v->offer.fd;
	v->offer = (struct offer){.fd = -1};
	return 0;
}

/*
 * Passes the thread that covers the process to the probes, and fills *ret for the feed. Call it
 * before the answer is sent: from then on, the probes read the cells of the shim.
 */
static void notify_probes(const struct hr_attach *a, const struct handshake *v,
			  struct hr_probed *ret)
{
	struct hr_probes *probes = __atomic_load_n(&a->c.probes, __ATOMIC_ACQUIRE);
	struct hr_item_cover cover;
	struct hr_hello_item item;
	bool covered = false;
	size_t at = 0;

	if (!probes)
		return;
	while (hr_hello_next(v->message, v->bytes, &at, &item)) {
		if (item.kind != HR_ITEM_COVER)
			continue;
		memcpy(&cover, item.value, sizeof(cover));
		covered = true;
	}
	if (hr_probes_cover(probes, v->cred.pid, covered ? &cover.thread : NULL))
		return;
	ret->image = hr_probes_image(probes, v->cred.pid);
	ret->began_ticks = v->offered ? v->ticks : covered ? cover.began_ticks : 0;
	ret->covered_ticks = hr_clock_ticks(a->c.clock);
	ret->tid = v->hello.tid;
	ret->offered = v->offered;
}

/*
 * Returns the time of the hello in ticks. 0: the client uses another clock, whose ticks cannot be
 * compared.
 */
static uint64_t hello_ticks(const struct hr_attach *a, const struct handshake *v)
{
	bool same = !(v->hello.flags & HR_HELLO_TICKS_TSC) == !a->c.clock->tsc;

	return same ? hr__offer_ticks(a, &v->hello) : v->ticks;
}

static int new_session(struct hr_attach *a, struct handshake *v, struct hr_ack *ack, int *ret_fd)
{
	struct attach_client c = {.token = v->offered ? v->offer.token : new_token(),
				  .pid = v->cred.pid,
				  .pidfd = v->pidfd,
				  .image = v->hello.image};
	struct hr_session *s = NULL;
	struct hr_map map;
	int r;

	if (a->live >= a->c.node->max_sessions || c.token == 0)
		return -ENOSPC;
	c.proc = next_proc(a);
	r = hr_session_new(c.proc, c.token, c.pid, &s);
	if (r)
		return r;
	s->deaf = v->offered;
	if (v->pidfd >= 0)
		s->started_ns = hr_procstat_ns(v->stat.start_time);
	s->hello_ticks = hello_ticks(a, v);
	notify_probes(a, v, &s->probed);
	r = next_map(a, v, &c, &map, ret_fd);
	if (!r) {
		hr_session_add_map(s, &map);
		c.bytes = hr_map_size(&map);
		c.last_inode = map.inode;
		attach_handshake_keep(c.proc, c.n_maps++, *ret_fd);
		r = journal_attach(a, v, c.proc, c.token, false);
	}
	if (!r && v->pidfd >= 0)
		r = hr__client_add(a, &c);
	if (r) {
		hr_session_set_level(s, HR_LEVEL_OFF);
		hr_session_free(s);
		return r;
	}
	v->session = s;
	if (v->pidfd < 0)
		hr__exited_add(a, &c);
	v->pidfd = -1;
	ack->session = c.token;
	return 0;
}

static int more_rings(struct hr_attach *a, struct handshake *v, struct hr_ack *ack, int *ret_fd)
{
	struct attach_client *c = hr__token_owner(a, v->hello.session);
	struct hr_map map;
	int r;

	if (!c || c->pid != v->cred.pid)
		return -EACCES;
	/* the previous daemon has already adopted this offer */
	if (v->offered && v->offer.map.inode == c->last_inode) {
		hr__offer_drop(&v->offer);
		return -EALREADY;
	}
	if (c->n_maps >= HR_SESSION_MAPS)
		return -ENOSPC;
	r = next_map(a, v, c, &map, ret_fd);
	if (r)
		return r;
	attach_handshake_keep(c->proc, c->n_maps, *ret_fd);
	c->last_inode = map.inode;
	ack->session = c->token;
	ack->index = c->n_maps++;
	pthread_mutex_lock(&a->lock);
	c->bytes += hr_map_size(&map);
	if (c->pidfd >= 0)
		a->ring_bytes += hr_map_size(&map);
	pthread_mutex_unlock(&a->lock);
	hr_drain_add_map(a->c.drain, c->proc, &map);
	return 0;
}

/*
 * Finds an earlier client with the same pid. Either the process made an exec, or the earlier
 * process ended and the kernel has reused its pid. If the process of the hello has exited, an exec
 * is assumed, because the kernel does not reuse pids that soon.
 */
static void find_replaced(struct hr_attach *a, struct handshake *v)
{
	struct attach_client *old = hr__client_by(a, &a->by_pid, (uint32_t)v->cred.pid);
	struct exited *gone = v->pidfd < 0 ? hr__exited_by_pid(a, v->cred.pid) : NULL;

	if (gone) {
		v->exec_of = gone->was.proc;
		gone->replaced = true;
	} else if (old && v->pidfd >= 0 && hr_pidfd_ended(old->pidfd)) {
		hr__client_gone(a, (uint32_t)(old - a->clients), NULL);
	} else if (old) {
		v->exec_of = old->proc;
		v->replaces = (uint32_t)(old - a->clients);
	}
}

/*
 * Opens a pidfd and reads /proc/PID/stat. If the process has exited and left an offer, only the
 * hello describes the process. The hello's parent pid is used only if the process and headraced
 * share a pid namespace: then the hello has the pid that the kernel reports. -ESRCH: the process
 * has exited without an offer.
 */
static int attach_handshake_identify(struct hr_attach *a, struct handshake *v, bool abandoned)
{
	v->pidfd = (int)syscall(SYS_pidfd_open, v->cred.pid, 0);
	if (v->pidfd >= 0 && hr_procstat_read(v->cred.pid, &v->stat) == 0 &&
	    (!v->offered || !hr__offer_outlived(a, v->ticks, v->stat.start_time))) {
		if (abandoned)
			return hr_pidfd_ended(v->pidfd) ? -ESRCH : -ECONNABORTED;
		return 0;
	}
	if (v->pidfd >= 0)
		close(v->pidfd);
	v->pidfd = -1;
	if (!v->offered)
		return -ESRCH;
	v->stat = (struct hr_procstat){
	    .ppid = v->hello.pid == v->cred.pid ? v->hello.ppid : 0,
	};
	return 0;
}

static int attach(struct hr_attach *a, struct handshake *v, bool abandoned, struct hr_ack *ack,
		  int *ret_fd)
{
	int r;

	v->ticks = v->offered ? hr__offer_ticks(a, &v->hello) : hr_clock_ticks(a->c.clock);
	r = attach_handshake_identify(a, v, abandoned);
	if (r)
		return r;
	find_replaced(a, v);
	if (deselected(a, v)) {
		r = journal_attach(a, v, next_proc(a), new_token(), true);
		return r ? r : -ECANCELED;
	}
	return new_session(a, v, ack, ret_fd);
}

/*
 * Journals a process without operations for a program that was started without the shim, unless
 * probes record the program. If libc started the program (posix_spawn), its pid is unknown.
 */
static void note_unrecorded(struct hr_attach *a, struct handshake *v)
{
	struct attach_client *old = NULL;

	if (__atomic_load_n(&a->c.probes, __ATOMIC_ACQUIRE) || deselected(a, v))
		return;
	v->ticks = hr_clock_ticks(a->c.clock);
	if (v->hello.flags & HR_HELLO_SPAWNED) {
		v->stat.ppid = v->cred.pid;
		v->cred.pid = 0;
	} else {
		if (attach_handshake_identify(a, v, false))
			v->stat.ppid = v->hello.pid == v->cred.pid ? v->hello.ppid : 0;
		old = hr__client_by(a, &a->by_pid, (uint32_t)v->cred.pid);
	}
	if (old)
		v->exec_of = old->proc;
	if (journal_attach(a, v, next_proc(a), new_token(), false))
		hr__attach_lose(a, HR_LOSS_UNATTACHED, 0, 0);
	else if (old)
		hr__client_gone(a, (uint32_t)(old - a->clients), "exec");
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Sends the answer with the map and, for a new session, also the node page. */
static void reply(struct hr_attach *a, int fd, const struct hr_ack *ack, int map_fd, bool with_page)
{
	const int fds[HR_SEND_FDS] = {map_fd, a->c.page_fd};
	size_t n = map_fd < 0 ? 0 : with_page ? 2 : 1;

	(void)hr_send_fds(fd, ack, sizeof(*ack), fds, n, MSG_DONTWAIT);
}

static bool hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

static int attach_handshake_answer(struct hr_attach *a, int fd, struct handshake *v,
				   struct hr_ack *ack, int *ret_fd)
{
	socklen_t len = sizeof(v->cred);
	int r = hr_hello_check(v->message, v->bytes, &v->hello);
	bool left;

	if (r)
		return r;
	if (v->hello.kind == HR_HELLO_OFFER) /* an offer must follow a hello */
		return -EBADMSG;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &v->cred, &len) < 0 || v->cred.pid <= 0)
		return -EACCES;
	if (v->hello.kind == HR_HELLO_EXEC) {
		if (v->cred.uid == a->c.node->uid || v->cred.uid == 0)
			note_unrecorded(a, v);
		return -EALREADY; /* a notice gets no answer */
	}
	hr__orphan_came(a, v->cred.pid, v->hello.flags & HR_HELLO_AGAIN);
	if (v->cred.pid == a->c.last.pid && v->hello.start_ticks == a->c.last.ticks)
		return -EALREADY;
	r = hr__offer_take(a, fd, &v->hello, &v->offer);
	if (r)
		return r;
	v->offered = v->offer.fd >= 0;
	if (v->cred.uid != a->c.node->uid && v->cred.uid != 0)
		return -EACCES;
	left = !v->offered && hung_up(fd);
	if (v->hello.kind == HR_HELLO_ATTACH)
		return attach(a, v, left, ack, ret_fd);
	return left ? -ECONNABORTED : more_rings(a, v, ack, ret_fd);
}

/* Whether the image of the hello has attached by another connection. */
static bool has_attached(struct hr_attach *a, const struct handshake *v)
{
	const struct attach_client *c = hr__client_by(a, &a->by_pid, (uint32_t)v->cred.pid);
	const struct exited *gone = hr__exited_by_pid(a, v->cred.pid);

	return v->hello.image != 0 &&
	       ((c && c->image == v->hello.image) || (gone && gone->was.image == v->hello.image));
}

/*
 * Counts a process that is not recorded, unless it connects again. A process connects again if it
 * left no offer, or (`takeover`) if the previous daemon was killed after it had read the hello.
 */
static void count_refusal(struct hr_attach *a, const struct handshake *v, int status)
{
	bool attach = v->hello.kind == HR_HELLO_ATTACH;
	bool lost = v->offered;

	switch (status) {
	case -ENOSPC:
		hr__attach_lose(a, HR_LOSS_LIMIT, 0, 0);
		return;
	case -ECANCELED:
		return;
	case -EPROTO:
	case -EINVAL:
		lost = true;
		break;
	case -ESRCH:
		lost |= attach && !a->takeover;
		break;
	case -EAGAIN: /* the journal is full */
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		lost |= attach;
		break;
	}
	if (lost && !has_attached(a, v))
		hr__attach_lose(a, HR_LOSS_UNATTACHED, v->cred.pid, v->hello.image);
}

/*
 * Passes the session to the drain thread, with the exits of processes that died before its hello:
 * these exits decide which worker numbers are free. The ATTACH entry precedes the END entries, so
 * that the engine finds a parent that has ended.
 */
static void hand_over(struct hr_attach *a, const struct handshake *v)
{
	struct hr_drain_end ends[HR_DRAIN_ENDS];
	size_t n = hr__clients_end(a, v->session->proc, v->replaces, ends);

	hr_drain_add_session(a->c.drain, v->session, ends, n);
}

void hr__handshake(struct hr_attach *a, const struct pending_attach *g, uint32_t bytes)
{
	struct handshake v = {.pending = g,
			      .message = a->message,
			      .bytes = bytes,
			      .pidfd = -1,
			      .offer.fd = -1,
			      .replaces = UINT32_MAX};
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

	ack.status = attach_handshake_answer(a, g->fd, &v, &ack, &map_fd);
	if (hr_served(v.hello.abi)) /* the answer has the version of the client */
		ack.abi = v.hello.abi;
	if (ack.status)
		count_refusal(a, &v, ack.status);
	/* Offers, invalid hellos, and clients of the previous daemon get no answer. */
	if (ack.status != -EBADMSG && ack.status != -EALREADY && !v.offered)
		reply(a, g->fd, &ack, ack.status ? -1 : map_fd, v.hello.kind == HR_HELLO_ATTACH);
	/* All other work is done after the answer, because the process waits for it. */
	if (v.session)
		hand_over(a, &v);
	if (!ack.status && v.replaces != UINT32_MAX)
		hr__client_gone(a, v.replaces, "exec");
	hr__offer_refuse(&v.offer);
	if (map_fd >= 0)
		close(map_fd);
	if (v.pidfd >= 0)
		close(v.pidfd);
}
