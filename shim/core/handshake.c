/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/core/handshake.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shim/core/clock.h"
#include "shim/core/hello.h"
#include "shim/core/linkname.h"
#include "shim/core/sys.h"

#define BLIND_NS      UINT64_C(50000000) /* longest wait if the daemon's state is unreadable */
#define LOOK_FIRST_NS INT64_C(1000000)	 /* until the first check whether the daemon is stopped */
#define LOOK_NS	      INT64_C(20000000)	 /* time between further checks */
#define PAUSE_NS      UINT64_C(1000000)	 /* between attempts to connect while the backlog is full */

/*
 * The open descriptors of a handshake. The program may close them, for example in a loop over all
 * descriptors. The wrapper of close() removes the number here first, so that the shim never closes
 * a number that the program has reused.
 */
static int32_t own[HR__OWN_COUNT] = {-1, -1, -1};
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
	for (int i = 0; i < HR__OWN_COUNT; i++)
		own_close(i);
	__atomic_store_n(&owning, 0, __ATOMIC_SEQ_CST);
}

void hr__session_fd_taken(unsigned first, unsigned last)
{
	if (hr_likely(__atomic_load_n(&owning, __ATOMIC_SEQ_CST) == 0))
		return;
	for (int i = 0; i < HR__OWN_COUNT; i++) {
		int32_t fd = own_get(i);

		if (fd >= 0 && (unsigned)fd >= first && (unsigned)fd <= last)
			__atomic_compare_exchange_n(&own[i], &fd, -1, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	}
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
	own_set(HR__OWN_SOCKET, r);
	memcpy(addr.sun_path, hr_shim_image.socket, sizeof(addr.sun_path));
	for (;;) {
		struct timespec pause = {.tv_nsec = (long)PAUSE_NS};
		int32_t fd = own_get(HR__OWN_SOCKET);

		if (fd < 0)
			return -EBADF;
		r = HR_SYS3(connect, fd, &addr, sizeof(addr));
		if (r != -EAGAIN)
			return (int)r;
		if (remaining(until) <= (int64_t)PAUSE_NS)
			return -ETIMEDOUT;
		HR_SYS2(nanosleep, &pause, NULL);
	}
}

/*
 * Whether to wait longer for an answer. False: the daemon is stopped (SIGSTOP, a debugger), and
 * each new program would wait. If the daemon was killed, another one replaces it soon.
 */
static bool daemon_answers(uint64_t waited_ns)
{
	struct ucred peer = {0};
	socklen_t bytes = sizeof(peer);
	char path[32], text[256];
	const char *state;
	uint8_t outer;
	long n;

	if (HR_SYS5(getsockopt, own_get(HR__OWN_SOCKET), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) <
		0 ||
	    peer.pid <= 0)
		return waited_ns < BLIND_NS;
	hr__linkname_stat(path, peer.pid);
	outer = hr__bare_enter(HR_BARE_OWN);
	n = hr__sys_slurp(path, text, sizeof(text) - 1);
	hr__bare_leave(outer);
	if (n < 0)
		return n == -ENOENT || n == -ESRCH || waited_ns < BLIND_NS;
	text[n] = '\0';
	state = strstr(text, ") ");
	return state == NULL || (state[2] != 'T' && state[2] != 't');
}

int hr__handshake_answer(uint64_t until, bool look, struct hr_ack *ret_ack)
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
	int64_t left, nap = LOOK_FIRST_NS;
	long n;

	do {
		struct pollfd p = {.fd = own_get(HR__OWN_SOCKET), .events = POLLIN};
		struct timespec ts = {0};

		left = remaining(until);
		ts.tv_nsec = left < nap ? left : nap;
		nap = LOOK_NS;
		HR_SYS5(ppoll, &p, 1, &ts, NULL, 8);
		n = HR_SYS3(recvmsg, p.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n == -EAGAIN && left > 0 && (!look || daemon_answers(hr__clock_ns() - began)));
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < fds && i < 2; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			own_set(HR__OWN_MAP + (int)i, fd);
		}
	}
	if (n != sizeof(*ret_ack) || ret_ack->magic != HR_ABI_MAGIC ||
	    ret_ack->abi != HR_ABI_VERSION)
		return -EPROTO;
	return ret_ack->status < 0 ? ret_ack->status : 0;
}

int hr__handshake_hello(enum hr_hello_kind kind, uint32_t flags, uint64_t until)
{
	const void *message;
	size_t bytes;
	long r;

	/*
	 * Builds the hello before connecting: if the daemon dies between connect and send, the
	 * process is not recorded, so this time must be short.
	 */
	bytes = hr__hello_build(kind, flags, &message);
	__atomic_store_n(&owning, 1, __ATOMIC_SEQ_CST);
	r = connect_daemon(until);
	if (r < 0)
		return (int)r;
	r = HR_SYS6(sendto, own_get(HR__OWN_SOCKET), message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT,
		    NULL, 0);
	return r < 0 ? (int)r : 0;
}

/* Whether RLIMIT_FSIZE allows a memfd of this size. For a bigger one, the kernel sends SIGXFSZ. */
static bool size_allowed(uint64_t bytes)
{
	struct rlimit64 limit = {0};

	return HR_SYS4(prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) < 0 || limit.rlim_cur >= bytes;
}

int hr__handshake_memory(uint64_t bytes)
{
	long fd, r;

	if (!size_allowed(bytes))
		return -EFBIG;
	fd = HR_SYS2(memfd_create, "headrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return (int)fd;
	own_set(HR__OWN_MAP, fd);
	r = HR_SYS2(ftruncate, fd, bytes);
	if (r == 0)
		r = HR_SYS3(fcntl, fd, F_ADD_SEALS, HR_SIZE_SEALS);
	return (int)r;
}

int hr__handshake_offer(uint64_t token)
{
	struct hr_hello hello = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .word_bytes = sizeof(void *),
	    .kind = HR_HELLO_OFFER,
	    .bytes = sizeof(hello),
	    .flags = hr__clock_is_tsc() ? HR_HELLO_TICKS_TSC : 0,
	    .pid = hr_wiped.pid,
	    .session = token,
	    .start_ticks = hr_shim_ticks(),
	};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = &hello, .iov_len = sizeof(hello)};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int32_t fd = own_get(HR__OWN_MAP);
	long r;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	r = HR_SYS3(sendmsg, own_get(HR__OWN_SOCKET), &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (r == -EPIPE)
		own_close(HR__OWN_MAP); /* the answer contains another map */
	return r < 0 ? (int)r : 0;
}

void *hr__handshake_map(enum hr__own which, uint64_t bytes, int prot)
{
	int32_t fd = own_get(which);
	long seals, r;

	if (fd < 0)
		return NULL;
	seals = HR_SYS3(fcntl, fd, F_GET_SEALS, 0);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		return NULL;
	r = HR_SYS6(mmap, 0, bytes, prot, MAP_SHARED, fd, 0);
	return (unsigned long)r >= -4095UL ? NULL : (void *)r;
}
