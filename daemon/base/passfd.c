/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/passfd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/sendfd.h"

#define QUEUE_BYTES (1 << 20) /* room for some thousand connections */

int hr_passfd_open(int ret[2])
{
	int big = QUEUE_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
		return -errno;
	setsockopt(ret[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	return 0;
}

int hr_passfd_send(int queue, uint32_t word, int fd)
{
	return hr_send_fds(queue, &word, sizeof(word), &fd, 1, MSG_DONTWAIT);
}

int hr_passfd_peek(int queue, uint32_t *ret_word, int *ret_fd)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {ret_word, sizeof(*ret_word)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(queue, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int from = 0;

	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	*ret_fd = -1;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	setsockopt(*ret_fd, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof(from));
	return 0;
}

void hr_passfd_drop(int queue)
{
	uint32_t word;

	(void)recv(queue, &word, sizeof(word), MSG_DONTWAIT);
}
