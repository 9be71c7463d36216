/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - attach: one conversation with the daemon, after which no descriptor is left
 *
 * One thread at a time talks (the attach lock, all signals blocked); others wait at most as long as it may
 * take. Every failure leaves the process as it was, untraced, until the back-off is over.
 */
#include "shim/hello.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shim/clock.h"
#include "shim/linkname.h"
#include "shim/sys.h"

#define NS_PER_S   UINT64_C(1000000000)
#define PATIENCE   UINT64_C(50000000) /* ns, all steps together, at least */
#define LOOK_NS	   INT64_C(20000000)  /* between looks whether the daemon is stopped */
#define PAUSE	   UINT64_C(1000000)  /* ns between tries while the daemon's backlog is full */
#define HINT_DIGIT 20
#define REDIALS	   3

/*
 * Our descriptors while there are any: socket, map, node page. The program may close them under us (a
 * daemoniser's loop): its close wrapper takes the number away first, so that we never close a number twice.
 */
enum { OWN_SOCKET, OWN_MAP, OWN_NODE, OWN_COUNT };
static int32_t own[OWN_COUNT] = {-1, -1, -1};
static uint32_t owning;

static void own_set(int i, long fd)
{
	__atomic_store_n(&own[i], (int32_t)fd, __ATOMIC_SEQ_CST);
}

static int32_t own_get(int i)
{
	return __atomic_load_n(&own[i], __ATOMIC_SEQ_CST);
}

static void own_close(int i)
{
	int32_t fd = __atomic_exchange_n(&own[i], -1, __ATOMIC_SEQ_CST);

	if (fd >= 0)
		HR_SYS1(close, fd);
}

void hr__session_fds_drop(void)
{
	for (int i = 0; i < OWN_COUNT; i++)
		own_close(i);
	__atomic_store_n(&owning, 0, __ATOMIC_SEQ_CST);
}

void hr__session_fd_taken(unsigned first, unsigned last)
{
	if (hr_likely(__atomic_load_n(&owning, __ATOMIC_SEQ_CST) == 0))
		return;
	for (int i = 0; i < OWN_COUNT; i++) {
		int32_t fd = own_get(i);

		if (fd >= 0 && (unsigned)fd >= first && (unsigned)fd <= last)
			__atomic_compare_exchange_n(&own[i], &fd, -1, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	}
}

/*
 * How long an attach may take, in ns: as long as a full ring may wait (HEADRACE_ON_FULL; a second under `headrace
 * run`), because on a busy node a daemon that works is not scheduled for longer than 50 ms, and a short program
 * that gave up would be lost without a trace. daemon_answers() cuts it short.
 */
static uint64_t patience(void)
{
	uint64_t wait =
	    hr__image.on_full == HR__FULL_WAIT ? hr__image.wait_ms * UINT64_C(1000000) : 0;

	return wait > PATIENCE ? wait : PATIENCE;
}

/* ---- the attach lock -------------------------------------------------------------------------- */

static bool lock(uint64_t patience_ns)
{
	uint64_t until = 0, now;

	for (;;) {
		uint32_t free = 0;

		if (__atomic_compare_exchange_n(&hr__wiped.lock, &free, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		now = hr__clock_ns();
		if (until == 0)
			until = now + patience_ns;
		if (now >= until)
			return false;
		hr__sys_futex_wait(&hr__wiped.lock, 1, until - now, 1);
	}
}

static void unlock(void)
{
	__atomic_store_n(&hr__wiped.lock, 0, __ATOMIC_RELEASE);
	hr__sys_futex_wake(&hr__wiped.lock, 1, 1);
}

/* ---- the conversation ------------------------------------------------------------------------- */

/* A filter was there before us: any system call of ours might kill the program. */
static bool under_seccomp(void)
{
	char *text = hr__hello_scratch();
	long n = hr__sys_slurp("/proc/self/status", text, HR_HELLO_MAX_BYTES - 1);
	const char *line;

	if (n < 0)
		return false;
	text[n] = '\0';
	line = strstr(text, "\nSeccomp:\t");
	return line != NULL && line[10] != '0';
}

static int64_t remaining(uint64_t until)
{
	uint64_t now = hr__clock_ns();

	return now < until ? (int64_t)(until - now) : 0;
}

static int connect_daemon(uint64_t until)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	long r = HR_SYS3(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (r < 0)
		return (int)r;
	own_set(OWN_SOCKET, r);
	memcpy(addr.sun_path, hr__image.socket, sizeof(addr.sun_path));
	for (;;) {
		struct timespec pause = {.tv_nsec = (long)PAUSE};
		int32_t fd = own_get(OWN_SOCKET);

		if (fd < 0)
			return -EBADF;
		r = HR_SYS3(connect, fd, &addr, sizeof(addr));
		if (r != -EAGAIN) /* EAGAIN: the backlog is full; a stopped daemon, or a crowd */
			return (int)r;
		if (remaining(until) <= (int64_t)PAUSE)
			return -ETIMEDOUT;
		HR_SYS2(nanosleep, &pause, NULL);
	}
}

/*
 * Is it worth waiting on? A stopped daemon (SIGSTOP, a debugger) answers nobody, and each new program would wait for it
 * in vain; one that was killed has a successor soon; one whose state cannot be seen gets PATIENCE.
 */
static bool daemon_answers(uint64_t waited_ns)
{
	struct ucred peer = {0};
	socklen_t bytes = sizeof(peer);
	char path[32], text[256];
	const char *state;
	long n;

	if (HR_SYS5(getsockopt, own_get(OWN_SOCKET), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0 ||
	    peer.pid <= 0)
		return waited_ns < PATIENCE;
	hr__linkname_stat(path, peer.pid);
	n = hr__sys_slurp(path, text, sizeof(text) - 1);
	if (n < 0)
		return n == -ENOENT || waited_ns < PATIENCE;
	text[n] = '\0';
	state = strstr(text, ") "); /* behind its name, which is ours: "headraced" */
	return state == NULL || (state[2] != 'T' && state[2] != 't');
}

/* The answer and its descriptors, which go to own[] as they come. */
static int receive(uint64_t until, struct hr_ack *ret_ack)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = ret_ack, .iov_len = sizeof(*ret_ack)};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control),
	};
	uint64_t began = hr__clock_ns();
	int64_t left;
	long n;

	do {
		struct pollfd p = {.fd = own_get(OWN_SOCKET), .events = POLLIN};
		struct timespec ts = {0};

		left = remaining(until);
		ts.tv_nsec = left < LOOK_NS ? left : LOOK_NS;
		HR_SYS5(ppoll, &p, 1, &ts, NULL, 8);
		n = HR_SYS3(recvmsg, p.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n == -EAGAIN && left > 0 && daemon_answers(hr__clock_ns() - began));
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < fds && i < 2; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			own_set(OWN_MAP + (int)i, fd);
		}
	}
	if (n != sizeof(*ret_ack) || ret_ack->magic != HR_ABI_MAGIC ||
	    ret_ack->abi != HR_ABI_VERSION)
		return -EPROTO;
	return ret_ack->status < 0 ? ret_ack->status : 0;
}

/* ---- mapping ---------------------------------------------------------------------------------- */

/* Maps own[i]. Only memory that can no longer shrink: a fault in it would be ours to explain. */
static void *map_own(int i, uint64_t bytes, int prot)
{
	struct hr__image *im = &hr__image;
	int32_t fd = own_get(i);
	long seals, r;

	if (fd < 0 || im->mapping_count >= sizeof(im->mappings) / sizeof(im->mappings[0]))
		return NULL;
	seals = HR_SYS3(fcntl, fd, F_GET_SEALS, 0);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		return NULL;
	r = HR_SYS6(mmap, 0, bytes, prot, MAP_SHARED, fd, 0);
	return (unsigned long)r >= -4095UL ? NULL : (void *)r;
}

static void mapping_keep(void *addr, uint64_t bytes)
{
	struct hr__image *im = &hr__image;

	im->mappings[im->mapping_count].addr = addr;
	im->mappings[im->mapping_count].bytes = bytes;
	im->mapping_count++;
}

static bool ack_sane(const struct hr_ack *ack)
{
	return ack->slots_log2 >= 8 && ack->slots_log2 <= 20 && ack->ring_count >= 1 &&
	       ack->ring_count <= 256 &&
	       ack->map_bytes == hr_map_bytes(ack->ring_count, ack->slots_log2);
}

static struct hr_map_hdr *map_rings(const struct hr_ack *ack)
{
	struct hr_map_hdr *map;

	if (!ack_sane(ack))
		return NULL;
	map = map_own(OWN_MAP, ack->map_bytes, PROT_READ | PROT_WRITE);
	if (map == NULL)
		return NULL;
	if (map->magic != HR_ABI_MAGIC || map->abi != HR_ABI_VERSION ||
	    map->session != ack->session || map->ring_count != ack->ring_count ||
	    map->slots_log2 != ack->slots_log2) {
		HR_SYS2(munmap, map, ack->map_bytes);
		return NULL;
	}
	return map;
}

/* Release: claimers read map_count with acquire and then the entries below it. */
static void map_publish(struct hr_map_hdr *map, uint64_t bytes)
{
	uint32_t n = hr__wiped.map_count;

	mapping_keep(map + 1, bytes - sizeof(*map));
	hr__wiped.maps[n] = map;
	__atomic_store_n(&hr__wiped.map_count, n + 1, __ATOMIC_RELEASE);
}

static int adopt(const struct hr_ack *ack)
{
	struct hr_map_hdr *map = map_rings(ack);
	const struct hr_node_page *node;

	if (map == NULL)
		return -EPROTO;
	node = map_own(OWN_NODE, HR_PAGE_BYTES, PROT_READ);
	if (node == NULL || node->magic != HR_ABI_MAGIC) {
		HR_SYS2(munmap, map, ack->map_bytes);
		if (node != NULL)
			HR_SYS2(munmap, node, HR_PAGE_BYTES);
		return -EPROTO;
	}
	if (hr__clock_is_tsc() && (ack->flags & HR_ACK_CLOCK_TSC) == 0) {
		hr__clock_monotonic();
		hr__image.clock_switched = true;
	}
	mapping_keep((void *)node, HR_PAGE_BYTES);
	hr__wiped.node = node;
	hr__wiped.token = ack->session;
	hr__wiped.start_ticks = hr__clock_ticks();
	hr__image.parent_token = ack->session;
	hr__image.strays = map;
	map_publish(map, ack->map_bytes);
	/* Time never stands still between a parent's attach and its child's: no two of them have one nonce. */
	__atomic_store_n(&hr__wiped.nonce, hr__clock_ticks() | 1, __ATOMIC_SEQ_CST);
	hr__counters_to_session();
	return 0;
}

static int talk(enum hr_hello_kind kind, bool forked, uint64_t until)
{
	const void *message;
	struct hr_ack ack;
	size_t bytes;
	int r;

	__atomic_store_n(&owning, 1, __ATOMIC_SEQ_CST);
	r = connect_daemon(until);
	if (r == 0) {
		bytes = hr__hello_build(kind, forked, &message);
		r = (int)HR_SYS6(sendto, own_get(OWN_SOCKET), message, bytes,
				 MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
		if (r >= 0)
			r = receive(until, &ack);
		if (r == 0 && kind == HR_HELLO_ATTACH) {
			r = adopt(&ack);
		} else if (r == 0) {
			struct hr_map_hdr *map = map_rings(&ack);

			if (map != NULL)
				map_publish(map, ack.map_bytes);
			else
				r = -EPROTO;
		}
		if (r < 0 && kind == HR_HELLO_ATTACH)
			hr__hello_counters_return();
	}
	hr__session_fds_drop();
	return r;
}

/*
 * A daemon that dies in the middle hangs up; its keeper's socket takes the next call, and another
 * worker answers it.
 */
static int converse(enum hr_hello_kind kind, bool forked, uint64_t patience_ns)
{
	uint64_t until = hr__clock_ns() + patience_ns;
	int r = talk(kind, forked, until);

	for (int i = 0; i < REDIALS && (r == -ECONNRESET || r == -EPIPE); i++)
		r = talk(kind, forked, until);
	return r;
}

/* ---- patience ---------------------------------------------------------------------------------- */

/*
 * Tells children that exec: the digits of HEADRACE_ATTACH_FAILED are overwritten where they stand in our
 * initial environment. Whoever starts programs under a shim reserves the room; setenv would allocate.
 */
static void hint_write(uint64_t now_ns)
{
	char *at = hr__image.hint;
	uint64_t s = now_ns / NS_PER_S;

	if (at == NULL)
		return;
	for (int i = 0; i < HINT_DIGIT; i++)
		if (at[i] < '0' || at[i] > '9')
			return; /* the program has put something else there */
	for (int i = HINT_DIGIT - 1; i >= 0; i--, s /= 10)
		at[i] = (char)('0' + s % 10);
}

static void attach_failed(int error)
{
	struct hr__image *im = &hr__image;
	uint64_t now = hr__clock_ns();
	uint64_t wait = NS_PER_S << (im->failures < 6 ? im->failures : 6);

	if (error ==
	    -ECANCELED) { /* this rank was left out: asleep, and its forked children with it */
		im->on = false;
		__atomic_store_n(&hr__fdtab.limit, 0, __ATOMIC_RELAXED);
		return;
	}
	im->failures++;
	__atomic_store_n(&im->retry_ns, now + (wait < 60 * NS_PER_S ? wait : 60 * NS_PER_S),
			 __ATOMIC_RELAXED);
	hint_write(now);
}

static void attach_locked(void)
{
	bool forked = hr__wiped.born == HR__BORN_FORKED;
	int r;

	__atomic_store_n(&hr__wiped.attempts, hr__wiped.attempts + 1, __ATOMIC_RELAXED);
	if (!hr__image.seccomp_allowed && under_seccomp()) {
		hr__image.quiet = true;
		return;
	}
	r = converse(HR_HELLO_ATTACH, forked, patience());
	if (r < 0)
		attach_failed(r);
	else
		hr__image.failures = 0;
}

bool hr__session_attach(enum hr__seek seek)
{
	bool due;

	if (!lock(patience()))
		return __atomic_load_n(&hr__wiped.nonce, __ATOMIC_ACQUIRE) != 0;
	if (hr__wiped.born == HR__BORN_WIPED)
		hr__fork_child();
	due = seek == HR__SEEK_FORCE ||
	      ((seek == HR__SEEK_RETRY || hr__wiped.attempts == 0) &&
	       (hr__image.retry_ns == 0 || hr__clock_ns() >= hr__image.retry_ns));
	if (hr__wiped.nonce == 0 && due)
		attach_locked();
	unlock();
	return __atomic_load_n(&hr__wiped.nonce, __ATOMIC_ACQUIRE) != 0;
}

/* Acquire: pairs with the release store behind a map's entry. */
static bool maps_beyond(uint32_t have)
{
	return __atomic_load_n(&hr__wiped.map_count, __ATOMIC_ACQUIRE) > have;
}

/* A daemon that refuses or does not answer is not asked again for a second: the threads count on lost[]. */
static void more_locked(void)
{
	uint64_t now = hr__clock_ns();

	if (now < hr__wiped.more_after_ns || hr__wiped.map_count >= HR_SESSION_MAPS)
		return;
	if (converse(HR_HELLO_MORE_RINGS, false, patience()) < 0)
		hr__wiped.more_after_ns = hr__clock_ns() + NS_PER_S;
}

bool hr__session_more_rings(uint32_t have)
{
	if (!lock(patience()))
		return maps_beyond(have);
	if (!maps_beyond(have)) /* or another thread has asked meanwhile */
		more_locked();
	unlock();
	return maps_beyond(have);
}
