/* SPDX-License-Identifier: Apache-2.0 */
/* Offers: maps that clients made because they got no answer in time. They may contain anything. */
#include "daemon/attach/attach_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/hello.h"

/* Room for two descriptors, to notice messages with more than one. */
#define DESCRIPTORS_MOST 2u
#define SLACK_NS	 UINT64_C(20000000) /* the resolution of a start time is 10 ms */
/* At first, the clock's line is wrong by at most 1/1000 of the offer's age. */
#define SLACK_SHARE 1000u

/* Returns the only descriptor of a message. -1: none, or more than one, which it closes. */
static int only_descriptor(struct msghdr *msg)
{
	unsigned n = 0;
	int only = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, (uint8_t *)c + at, sizeof(fd));
			if (n++ == 0)
				only = fd;
			else
				close(fd);
		}
	}
	if (only >= 0 && (n != 1 || msg->msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
		close(only);
		only = -1;
	}
	return only;
}

/* Reads a message if there is one. Returns its size, or 0. *ret_fd: its only descriptor, or -1. */
static ssize_t receive(int fd, int flags, struct hr_hello *message, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {message, sizeof(*message)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);

	*ret_fd = n > 0 ? only_descriptor(&msg) : -1;
	return n > 0 ? n : 0;
}

/* Checks a copy of the header, because the client can change the header at any time. */
static bool header_valid(const struct offer *o, uint32_t abi)
{
	struct hr_map_hdr hdr;

	memcpy(&hdr, o->map.hdr, HR_MAP_HEAD_BYTES);
	return hdr.magic == HR_ABI_MAGIC && hdr.abi == abi && hdr.index == 0 &&
	       hdr.session == o->token && hdr.ring_count == HR_MAP_RINGS &&
	       hdr.slots_log2 == o->map.slots_log2;
}

static int attach_offer_check(struct hr_attach *a, const struct hr_hello *hello,
			      const struct hr_hello *message, size_t bytes, struct offer *o)
{
	struct hr_hello copy;

	if (o->fd < 0 || hr_hello_check((const uint8_t *)message, bytes, &copy) ||
	    copy.kind != HR_HELLO_OFFER || copy.abi != hello->abi || bytes != sizeof(copy) ||
	    copy.session == 0)
		return -EINVAL;
	/* A client chooses the token of a new session. A further map has the session's token. */
	if (hello->kind == HR_HELLO_ATTACH ? hr__token_owner(a, copy.session) != NULL
					   : copy.session != hello->session)
		return -EINVAL;
	o->token = copy.session;
	if (hr_map_open(o->fd, &o->map) || !header_valid(o, hello->abi))
		return -EINVAL;
	/* Ticks of different clocks cannot be compared. */
	if (!(hello->flags & HR_HELLO_TICKS_TSC) != !a->c.clock->tsc ||
	    (copy.flags ^ hello->flags) & HR_HELLO_TICKS_TSC)
		return -EINVAL;
	return 0;
}

int hr__offer_take(struct hr_attach *a, int fd, const struct hr_hello *hello, struct offer *ret)
{
	struct hr_hello message;
	ssize_t n;
	int r;

	/* From now on, the client cannot make an offer. Without one, it waits for the answer. */
	shutdown(fd, SHUT_RD);
	n = receive(fd, hr__attach_read_flags(a), &message, &ret->fd);
	if (n == 0)
		return 0;
	r = attach_offer_check(a, hello, &message, (size_t)n, ret);
	if (r)
		hr__offer_refuse(ret);
	return r;
}

void hr__offer_refuse(struct offer *o)
{
	if (o->map.hdr)
		__atomic_store_n(&o->map.hdr->level, HR_LEVEL_OFF, __ATOMIC_RELAXED);
	hr__offer_drop(o);
}

void hr__offer_drop(struct offer *o)
{
	hr_map_close(&o->map);
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

uint64_t hr__offer_ticks(const struct hr_attach *a, const struct hr_hello *hello)
{
	uint64_t now = hr_clock_ticks(a->c.clock), then = hello->start_ticks;

	if (then > now || hr_ticks_span_ns(&a->line, now - then) > hr_boot_ns())
		return now;
	return then;
}

bool hr__offer_outlived(const struct hr_attach *a, uint64_t offer_ticks, uint64_t start_time)
{
	uint64_t now_ns = hr_boot_ns();
	uint64_t age_ns = hr_ticks_span_ns(&a->line, hr_clock_ticks(a->c.clock) - offer_ticks);

	return hr_procstat_ns(start_time) > now_ns - age_ns + SLACK_NS + age_ns / SLACK_SHARE;
}
