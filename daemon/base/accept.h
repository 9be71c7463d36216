/* SPDX-License-Identifier: Apache-2.0 */
/* accept.h - accepts connections in a libuv loop */
#ifndef HEADRACE_DAEMON_BASE_ACCEPT_H
#define HEADRACE_DAEMON_BASE_ACCEPT_H

#include <errno.h>
#include <sys/socket.h>

#include <uv.h>

/*
 * Accepts a connection at the non-blocking socket that `poll` watches. -1: none. After a failure,
 * for example without a free descriptor, the socket stays readable, and the loop would spin: stops
 * watching it until the caller's timer calls uv_poll_start again.
 */
static inline int hr_accept(uv_poll_t *poll, int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno != EAGAIN)
		uv_poll_stop(poll);
	return fd;
}

#endif
