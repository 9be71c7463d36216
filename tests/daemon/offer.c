/* SPDX-License-Identifier: Apache-2.0 */
#include "offer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "tests/unit.h"

bool offer_tsc;

static void make_sized(struct offer *o, uint64_t token, uint64_t parent, uint32_t slots_log2)
{
	uint64_t bytes = hr_map_bytes(HR_MAP_RINGS, slots_log2);
	struct client clock = {.tsc = offer_tsc};
	int fd = memfd_create("offer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, OFFER_SEALS), 0);
	memset(o, 0, sizeof(*o));
	o->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(o->map, MAP_FAILED);
	o->map->magic = HR_ABI_MAGIC;
	o->map->abi = HR_ABI_VERSION;
	o->map->session = token;
	o->map->ring_count = HR_MAP_RINGS;
	o->map->slots_log2 = slots_log2;
	o->map->level = HR_LEVEL_TRACE;
	o->hello = (struct hr_hello){.magic = HR_ABI_MAGIC,
				     .abi = HR_ABI_VERSION,
				     .word_bytes = 8,
				     .kind = HR_HELLO_ATTACH,
				     .bytes = sizeof(o->hello),
				     .flags = offer_tsc ? HR_HELLO_TICKS_TSC : 0,
				     .pid = getpid(),
				     .ppid = getppid(),
				     .parent_session = parent,
				     .start_ticks = client_ticks(&clock)};
	if (parent)
		o->hello.flags |= HR_HELLO_FORKED;
	o->message = o->hello;
	o->message.kind = HR_HELLO_OFFER;
	o->message.session = token;
	o->message_bytes = sizeof(o->message);
	o->fds[0] = fd;
	o->n_fds = 1;
}

void offer_make(struct offer *o, uint64_t token, uint64_t parent)
{
	make_sized(o, token, parent, HR_OFFER_SLOTS_LOG2);
}

void offer_make_more(struct offer *o, uint64_t token)
{
	make_sized(o, token, 0, HR_RING_SLOTS_LOG2);
	o->hello.kind = HR_HELLO_MORE_RINGS;
	o->hello.session = token;
}

int offer_send_message(int fd, const struct offer *o)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)&o->message, o->message_bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (o->n_fds) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(o->n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(o->n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), o->fds, o->n_fds * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int offer_knock(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

void offer_ping(const char *path)
{
	int fd = offer_knock(path);
	char none;

	assert_int_equal(send(fd, "?", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(fd, &none, 1, 0), 0);
	close(fd);
}

void offer_read_await(int fd)
{
	int unread = 0;

	nodes_await(ioctl(fd, SIOCOUTQ, &unread) == 0 && unread == 0);
}

void offer_send_by(int fd, struct offer *o)
{
	assert_int_equal(send(fd, &o->hello, sizeof(o->hello), MSG_NOSIGNAL), sizeof(o->hello));
	assert_int_equal(offer_send_message(fd, o), 0);
	for (unsigned i = 0; i < o->n_fds; i++)
		close(o->fds[i]);
	close(fd);
}

void offer_send(const struct nodes *n, struct offer *o)
{
	offer_send_by(offer_knock(n->socket), o);
}

void offer_reads(struct offer *o, uint64_t from, uint64_t to)
{
	struct client c = {.maps = {(uint8_t *)o->map}, .tsc = offer_tsc};
	struct hr_ring_hdr *ring =
	    (struct hr_ring_hdr *)((uint8_t *)o->map + hr_ring_offset(0, o->map->slots_log2));

	client_reads(&c, ring, from, to);
}
