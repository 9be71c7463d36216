/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passfd.h - a queue of connections that outlives who reads it
 *
 * Purpose   A connection that was accepted is in no backlog any more: held by one process, it goes with that one. So it is sent
 *           (SCM_RIGHTS) through a socket pair whose ends a parent, or systemd, keeps, and stays in it while it is looked at.
 *
 *      accept4 -> hr_passfd_send -> [ queue: kept ] -> hr_passfd_peek -> ... served -> hr_passfd_drop
 *                                                            killed here: the next reader peeks at the same one
 *
 *      Its messages are peeked at, too, and taken out (hr_hello_discard) only when it is done with: who meets a connection for the
 *      second time finds it as it came, or empty.
 *
 * Threads   Any; one reader.
 */
#ifndef HEADRACE_DAEMON_BASE_PASSFD_H
#define HEADRACE_DAEMON_BASE_PASSFD_H

#include <stdint.h>

#define HR_PASSFD_BYTES sizeof(uint32_t) /* of one in FIONREAD's answer */

/* Both ends of a new queue, not blocking: ret[0] to read. */
int hr_passfd_open(int ret[2]);

/* Sends fd, which stays the caller's, with a word that the reader sees. -EAGAIN: it is full. */
int hr_passfd_send(int queue, uint32_t word, int fd);

/*
 * The head of the queue, which stays there. *ret_fd: another descriptor of the connection, the caller's, whose messages are read
 * by MSG_PEEK from the first on; -1: it came without, or no number was free. 0, -EAGAIN: empty, -EPIPE: the other end is gone.
 */
int hr_passfd_peek(int queue, uint32_t *ret_word, int *ret_fd);

void hr_passfd_drop(int queue); /* the head */

#endif
