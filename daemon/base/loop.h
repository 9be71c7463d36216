/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - libuv loops: accepts connections, frees what a handle belongs to, and closes a loop */
#ifndef HEADRACE_DAEMON_BASE_LOOP_H
#define HEADRACE_DAEMON_BASE_LOOP_H

#include <errno.h>
#include <stdlib.h>
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

/* Callbacks of uv_close: free the structure that `data` points to, or the handle itself. */
static inline void hr_handle_free_data(uv_handle_t *handle)
{
	free(handle->data);
}

static inline void hr_handle_free(uv_handle_t *handle)
{
	free(handle);
}

static inline void hr__handle_close(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Closes the remaining handles, runs all callbacks, and closes the loop. */
static inline void hr_loop_close(uv_loop_t *loop)
{
	uv_walk(loop, hr__handle_close, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
}

#endif
