/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passfd.h - a queue of connections that outlives its reader
 *
 * Purpose   An accepted connection is in no backlog, and is lost with the process that holds it. So
 *           it is sent (SCM_RIGHTS) through a socket pair that a parent process or systemd keeps,
 *           and stays there while it is processed.
 *
 *      accept4 -> hr_passfd_send -> [ queue ] -> hr_passfd_peek -> ... -> hr_passfd_drop
 *                                                              killed here: the next reader
 *                                                              gets the same connection
 *
 *           The reader peeks at a connection's messages, too, and removes them (hr_hello_discard)
 *           when it has processed the connection: the next reader finds all of them, or none.
 *
 * Threads   Any; one reader.
 */
#ifndef HEADRACE_DAEMON_BASE_PASSFD_H
#define HEADRACE_DAEMON_BASE_PASSFD_H

#include <stdint.h>

#define HR_PASSFD_BYTES sizeof(uint32_t) /* of one connection, in the answer of FIONREAD */

/* Both ends, not blocking: ret[0] is the reading end. */
int hr_passfd_open(int ret[2]);

/* Sends fd, which the caller keeps, with a word for the reader. -EAGAIN: the queue is full. */
int hr_passfd_send(int queue, uint32_t word, int fd);

/*
 * The first connection, which stays in the queue. *ret_fd: another descriptor of it, for the
 * caller, whose MSG_PEEK starts at the first message; -1: none came, or none was free. 0; -EAGAIN:
 * the queue is empty; -EPIPE: the other end is closed.
 */
int hr_passfd_peek(int queue, uint32_t *ret_word, int *ret_fd);

void hr_passfd_drop(int queue); /* removes the first connection */

#endif
