/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/ops.h"
#include "daemon/base/clock.h"
#include "common/fdstore.h"

#define STORED 256u

static const struct hr_node_page *bell_page; /* of the last attach */

/* ---- a session ------------------------------------------------------------------------------------- */

static int connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static ssize_t receive(int fd, void *buf, size_t bytes, int fds[2])
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {buf, bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	fds[0] = fds[1] = -1;
	if (c)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n;
}

int client_talk(const char *socket, const void *message, size_t bytes, struct hr_ack *ret,
		int fds[2])
{
	int fd = connect_to(socket);
	ssize_t n;

	if (fd < 0)
		return fd;
	send(fd, message, bytes, MSG_NOSIGNAL);
	n = receive(fd, ret, sizeof(*ret), fds);
	close(fd);
	return n == (ssize_t)sizeof(*ret) ? ret->status : -ECONNRESET;
}

static size_t put_item(uint8_t *to, uint16_t kind, const char *text)
{
	struct hr_item_hdr hdr = {kind, (uint16_t)(strlen(text) + (kind == HR_ITEM_ARGV))};

	memcpy(to, &hdr, sizeof(hdr));
	memcpy(to + sizeof(hdr), text, hdr.bytes);
	return sizeof(hdr) + hdr.bytes;
}

static int take_map(struct client *c, const struct hr_ack *ack, int fd)
{
	void *map = mmap(NULL, ack->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (map == MAP_FAILED)
		return -errno;
	c->maps[c->n_maps++] = map;
	return 0;
}

int client_attach(struct client *c, const char *socket, uint32_t flags, uint64_t parent,
		  const char *const *env)
{
	uint8_t message[4096];
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	size_t bytes = sizeof(hello);
	struct hr_ack ack;
	int fds[2], r;

	memset(c, 0, sizeof(*c));
	bytes += put_item(message + bytes, HR_ITEM_EXE, "/usr/bin/test");
	bytes += put_item(message + bytes, HR_ITEM_ARGV, "test");
	for (; env && *env; env++)
		bytes += put_item(message + bytes, HR_ITEM_ENV, *env);
	hello.kind = HR_HELLO_ATTACH;
	hello.bytes = (uint32_t)bytes;
	hello.flags = flags;
	hello.parent_session = parent;
	hello.pid = getpid();
	memcpy(message, &hello, sizeof(hello));
	r = client_talk(socket, message, bytes, &ack, fds);
	if (r)
		return r;
	c->token = ack.session;
	c->tsc = ack.flags & HR_ACK_CLOCK_TSC;
	c->page = mmap(NULL, sizeof(*c->page), PROT_READ, MAP_SHARED, fds[1], 0);
	close(fds[1]);
	bell_page = c->page;
	return take_map(c, &ack, fds[0]);
}

int client_more_rings(struct client *c, const char *socket)
{
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	struct hr_ack ack;
	int fds[2], r;

	hello.kind = HR_HELLO_MORE_RINGS;
	hello.bytes = sizeof(hello);
	hello.session = c->token;
	r = client_talk(socket, &hello, sizeof(hello), &ack, fds);
	return r ? r : take_map(c, &ack, fds[0]);
}

void client_detach(struct client *c)
{
	for (unsigned i = 0; i < c->n_maps; i++)
		munmap(c->maps[i], hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2));
	munmap((void *)(uintptr_t)c->page, sizeof(*c->page));
	memset(c, 0, sizeof(*c));
}

struct hr_ring_hdr *client_ring(const struct client *c, unsigned map, unsigned ring)
{
	return (struct hr_ring_hdr *)(c->maps[map] + hr_ring_offset(ring, HR_RING_SLOTS_LOG2));
}

uint64_t client_ticks(const struct client *c)
{
	struct hr_clock clock = {.tsc = c->tsc};

	return hr_clock_ticks(&clock);
}

void client_commit(struct hr_ring_hdr *ring, const struct hr_record *slots, unsigned n)
{
	struct hr_record *to = (struct hr_record *)(ring + 1);
	uint64_t at = ring->head, mask = (1u << HR_RING_SLOTS_LOG2) - 1;

	while (at + n - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > mask + 1) {
		syscall(SYS_futex, &bell_page->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	__atomic_store_n(&ring->head, at + n, __ATOMIC_RELAXED);
	for (unsigned i = n; i-- > 0;) { /* the first slot last */
		struct hr_record *slot = &to[(at + i) & mask];
		uint32_t seq = (uint32_t)(at + i + 1);

		memcpy(slot, &slots[i], offsetof(struct hr_record, seq));
		slot->bits = slots[i].bits;
		__atomic_store_n(&slot->seq, seq, __ATOMIC_RELEASE);
	}
}

void client_reads(const struct client *c, struct hr_ring_hdr *ring, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		struct hr_record rec = {.start_ticks = client_ticks(c),
					.file = 4096,
					.offset = (int64_t)i,
					.ret = 1,
					.asked = 1,
					.op = hr_op_by_name("pread64"),
					.fd = 5};

		client_commit(ring, &rec, 1);
	}
}

/* ---- descriptors that survive ------------------------------------------------------------------------ */

static struct {
	char name[64];
	int fd;
} stored[STORED];
static size_t n_stored;
static int channel[2] = {-1, -1}; /* daemons write to [1] */

void client_fdstore_init(void)
{
	int size = 1 << 20;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
		abort();
	setsockopt(channel[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static void forget(const char *name)
{
	for (size_t i = 0; i < n_stored; i++) {
		if (strcmp(stored[i].name, name) != 0)
			continue;
		close(stored[i].fd);
		stored[i] = stored[--n_stored];
		return;
	}
}

void client_fdstore_gather(void)
{
	char name[64];
	int fds[2];

	for (;;) {
		struct timeval none = {.tv_usec = 1};
		ssize_t n;

		setsockopt(channel[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
		memset(name, 0, sizeof(name));
		n = receive(channel[0], name, sizeof(name) - 1, fds);
		if (n <= 0)
			return;
		if (fds[0] < 0) {
			forget(name);
			continue;
		}
		if (n_stored == STORED)
			abort();
		snprintf(stored[n_stored].name, sizeof(stored[0].name), "%s", name);
		stored[n_stored++].fd = fds[0];
	}
}

void client_fdstore_clear(void)
{
	client_fdstore_gather();
	while (n_stored)
		close(stored[--n_stored].fd);
}

size_t client_fdstore_count(void)
{
	return n_stored;
}

static int send_fd(const char *name, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)name, strlen(name)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (channel[1] < 0)
		return 0;
	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(channel[1], &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int hr_fdstore_push(const char *name, int fd)
{
	return send_fd(name, fd);
}

int hr_fdstore_remove(const char *name)
{
	return send_fd(name, -1);
}

int hr_fdstore_notify(const char *text)
{
	(void)text;
	return 0;
}

int hr_fdstore_inherit(struct hr_inherited **ret, size_t *ret_n)
{
	struct hr_inherited *list = calloc(n_stored + 1, sizeof(*list));

	for (size_t i = 0; i < n_stored; i++)
		list[i] = (struct hr_inherited){strdup(stored[i].name), dup(stored[i].fd)};
	*ret = list;
	*ret_n = n_stored;
	return 0;
}
