/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - what `headrace run` and headraced say to each other
 *
 * Purpose   The messages on a daemon's control socket (SOCK_SEQPACKET): how a run joins the daemon
 *           of its job and node, and what it learns when it leaves.
 * Owner     Messages are plain buffers of the caller's; sockets belong to who opened them.
 * Threads   Functions over the caller's memory. Only hr_control_wait waits.
 *
 *      headrace run                          headraced, private mode
 *      ------------                          -----------------------
 *      connect (holding the lock of private.h)
 *      join     version pid rank     ---->
 *                                    <----   ready  version pid shim      | error text
 *                                                   level max_bytes ranks local_ranks: in force
 *      (drops the lock, forks CMD)
 *      started  pid                  ---->   keeps a pidfd of CMD
 *                                    <----   notice text                  at any time
 *      (CMD has ended)
 *      leave    linger_ns signal status -->   waits as private_worker.h says
 *                                    <----   done   print runs attached events ...
 *      (where the store is a spool: drains=1 in `done`, of the last run)
 *                                    <----   sending  collector frames left connected error
 *      released                      ---->   the summary was printed: what is sent may go
 *                                    <----   sent   the same: all, or what there was time for
 *      close
 *
 * A run whose connection ends without `leave` has vanished: its CMD goes on being recorded. A run
 * whose daemon was restarted by the keeper connects and joins again (again=1). A second `leave`
 * changes the linger.
 *
 * Whoever has something to ask of the job says so in place of `join`: private_asked.h.
 *
 * A message is text: its kind on the first line, then `key=value` lines. Values are escaped as
 * hr_text_escape does, so that no value holds a newline. Unknown keys are ignored; a join of
 * another version is answered by `error`. No message is longer than HR_CONTROL_BYTES.
 */
#ifndef HEADRACE_DAEMON_CONTROL_CONTROL_H
#define HEADRACE_DAEMON_CONTROL_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define HR_CONTROL_VERSION 1u
#define HR_CONTROL_BYTES   32768u

struct hr_message {
	size_t bytes; /* of text, without the NUL */
	char text[HR_CONTROL_BYTES];
};

/* ---- building -------------------------------------------------------------------------------- */

void hr_message_init(struct hr_message *m, const char *kind);

/* What does not fit leaves the message marked as too long: hr_control_send answers -EMSGSIZE. */
void hr_message_add(struct hr_message *m, const char *key, const char *value);
void hr_message_add_int(struct hr_message *m, const char *key, int64_t value);

/* ---- reading --------------------------------------------------------------------------------- */

/* Is m->text[0..bytes) a message? Hostile input: 0 or -EBADMSG. To be called before the functions
 * below. */
int hr_message_check(struct hr_message *m);

/* Is it of this kind? */
int hr_message_is(const struct hr_message *m, const char *kind);

/* The value of `key`, unescaped, NUL-terminated. -ENOENT, -ENOSPC (too long for out), -EBADMSG. */
int hr_message_get(const struct hr_message *m, const char *key, char *out, size_t out_bytes);

/* The value as a number; `otherwise` when it is absent or no number. */
int64_t hr_message_get_int(const struct hr_message *m, const char *key, int64_t otherwise);

/* ---- sockets --------------------------------------------------------------------------------- */

/* Non-blocking to accept from. -ENAMETOOLONG when the path does not fit a socket address. */
int hr_control_listen(const char *path, int *ret_fd);
int hr_control_connect(const char *path, int *ret_fd);
/* Waits at most timeout_ms each for the connection and for room to send: -EAGAIN. */
int hr_control_connect_within(const char *path, unsigned timeout_ms, int *ret_fd);

/* One message. -EAGAIN as the socket says; -EPIPE when the peer has gone. */
int hr_control_send(int fd, const struct hr_message *m);

/* One message, checked. -ECONNRESET at the end of the connection, -EAGAIN when there is none yet.
 */
int hr_control_recv(int fd, struct hr_message *ret);

/* The same, with a descriptor that goes with it, or (-1) came with it: the receiver's to close. */
int hr_control_send_fd(int fd, const struct hr_message *m, int carried);
int hr_control_recv_fd(int fd, struct hr_message *ret, int *ret_carried);

/* Waits at most timeout_ms for a message, then hr_control_recv; -ETIMEDOUT. A negative timeout
 * waits for ever. */
int hr_control_wait(int fd, int timeout_ms, struct hr_message *ret);

/*
 * Sends the question `m`, and gives each answer, in the same memory, to `take` (NULL: nobody) until `over`. Waits timeout_ms for each, as
 * hr_control_wait does. 0; -EREMOTEIO: it was refused, *m is the `error`; else -errno.
 */
int hr_control_ask(int fd, int timeout_ms, struct hr_message *m,
		   void (*take)(void *arg, const struct hr_message *m), void *arg);

#endif
