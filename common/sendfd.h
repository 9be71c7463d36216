/* SPDX-License-Identifier: Apache-2.0 */
/* sendfd.h - sends a message with descriptors through a local socket. Any thread. */
#ifndef HEADRACE_COMMON_SENDFD_H
#define HEADRACE_COMMON_SENDFD_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define HR_SEND_FDS 2u

/*
 * Sends one message with copies of `n` descriptors (0 to HR_SEND_FDS). `flags`: of sendmsg; a
 * closed socket raises no SIGPIPE. Returns 0 or -errno.
 */
static inline int hr_send_fds(int to, const void *data, size_t bytes, const int *fds, size_t n,
			      int flags)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(HR_SEND_FDS * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)data, bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), fds, n * sizeof(int));
	}
	while (sendmsg(to, &msg, flags | MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

#endif
