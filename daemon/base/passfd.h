/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passfd.h - a queue of connections that outlives its reader
 *
 * Purpose   An accepted connection is in no backlog: if one process holds it, it is lost with the
 *           process. So it is sent (SCM_RIGHTS) through a socket pair whose ends a parent process
 *           or systemd keeps. It stays in the queue while it is processed.
 *
 *      accept4 -> hr_passfd_send -> [ queue ] -> hr_passfd_peek -> ... -> hr_passfd_drop
 *                                                              killed here: the next reader
 *                                                              gets the same connection
 *
 *           The reader also peeks at the messages of a connection, and removes them
 *           (hr_hello_discard) when it has processed it: the next reader finds all, or none.
 *
 * Threads   Any; one reader.
 */
#ifndef HEADRACE_DAEMON_BASE_PASSFD_H
#define HEADRACE_DAEMON_BASE_PASSFD_H

#include <stdint.h>

#define HR_PASSFD_BYTES sizeof(uint32_t) /* of one connection, in the answer of FIONREAD */

/* Both ends of a new queue, not blocking: ret[0] is the reading end. */
int hr_passfd_open(int ret[2]);

/* Sends fd, which the caller keeps, with a word for the reader. -EAGAIN: the queue is full. */
int hr_passfd_send(int queue, uint32_t word, int fd);

/*
 * Returns the first connection, which stays in the queue. The caller owns *ret_fd, another
 * descriptor of the connection: MSG_PEEK starts at its first message. -1: the message had no
 * descriptor, or none was free. 0; -EAGAIN: the queue is empty; -EPIPE: the other end is closed.
 */
int hr_passfd_peek(int queue, uint32_t *ret_word, int *ret_fd);

void hr_passfd_drop(int queue); /* removes the first connection */

#endif
