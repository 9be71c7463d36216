/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passfd.h - a queue of connections that outlives its reader
 *
 * Purpose   An accepted connection is no longer in the backlog, so it is lost if its process is
 *           killed. So the process sends it (SCM_RIGHTS) through a socket pair that a parent
 *           process or systemd keeps. The connection stays there while it is processed.
 *
 *      accept4 -> hr_passfd_send -> [ queue ] -> hr_passfd_peek -> ... -> hr_passfd_drop
 *                                                              killed here: the next reader
 *                                                              gets the same connection
 *
 *           The reader also only peeks at the messages of a connection. It removes them
 *           (hr_hello_discard) after it has processed the connection, so that the next reader finds
 *           all of them, or none.
 *
 * Threads   Any; one reader.
 */
#ifndef HEADRACE_DAEMON_BASE_PASSFD_H
#define HEADRACE_DAEMON_BASE_PASSFD_H

#include <stdint.h>

#define HR_PASSFD_BYTES sizeof(uint32_t) /* FIONREAD counts this for each connection */

/* Makes a queue of two sockets, which do not block. ret[0] is for the reader. */
int hr_passfd_open(int ret[2]);

/* Sends a copy of fd, with a word for the reader. -EAGAIN: the queue is full. */
int hr_passfd_send(int queue, uint32_t word, int fd);

/*
 * Reads the first connection, which stays in the queue. *ret_fd: a new descriptor, owned by the
 * caller, whose MSG_PEEK begins at the first message; -1: the queue has no descriptor for it, or
 * this process has too many. Returns 0; -EAGAIN: the queue is empty; -EPIPE: the other socket is
 * closed.
 */
int hr_passfd_peek(int queue, uint32_t *ret_word, int *ret_fd);

void hr_passfd_drop(int queue);

#endif
