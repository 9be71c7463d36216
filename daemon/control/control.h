/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - sends and receives the messages of proto/control.proto
 *
 * Purpose   The control sockets of headraced (SOCK_SEQPACKET): for `headrace run`, status, top, prologs, and the service's workers.
 * Owner     The caller, of messages and sockets. A received message is freed with hr_control_free.
 * Threads   Functions over the caller's memory. Only hr_control_wait, hr_control_ask and connecting wait.
 */
#ifndef HEADRACE_DAEMON_CONTROL_CONTROL_H
#define HEADRACE_DAEMON_CONTROL_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

#define HR_CONTROL_VERSION 2u
#define HR_CONTROL_BYTES   32768u /* of a message, at most */
#define HR_SERVICE_CONTROL "/run/headrace/control.sock"

/* HR_CONTROL(GET_STATUS): a kind of message; its body is the member of that name of `message Control`. */
#define HR_CONTROL(kind) HEADRACE__CONTROL__KIND_##kind

typedef Headrace__Control__KindCase hr_control_kind;

/* ---- sockets --------------------------------------------------------------------------------- */

/* Non-blocking to accept from. -ENAMETOOLONG when the path does not fit a socket address. */
int hr_control_listen(const char *path, int *ret_fd);
int hr_control_connect(const char *path, int *ret_fd);
/* Waits at most timeout_ms each for the connection and for room to send: -EAGAIN. */
int hr_control_connect_within(const char *path, unsigned timeout_ms, int *ret_fd);

/* ---- messages -------------------------------------------------------------------------------- */

/*
 * One message. `body` is the `base` of the kind's message; NULL for a kind without fields (Empty). -EMSGSIZE: it is longer than
 * HR_CONTROL_BYTES; -EAGAIN as the socket returns it; -EPIPE when the peer has gone.
 */
int hr_control_send(int fd, hr_control_kind kind, const ProtobufCMessage *body);
/* The same, with a copy of the descriptor `carried`. */
int hr_control_send_fd(int fd, hr_control_kind kind, const ProtobufCMessage *body, int carried);
/* An `error`; code: a positive errno. */
int hr_control_send_error(int fd, int code, const char *text);

/*
 * One message of a known kind: its member is not NULL. -ECONNRESET at the end of the connection, -EAGAIN when there is none yet,
 * -EBADMSG for what is no such message.
 */
int hr_control_recv(int fd, Headrace__Control **ret);
/* The same, with the descriptor that came with it, the caller's to close, also on failure; -1: none. */
int hr_control_recv_fd(int fd, Headrace__Control **ret, int *ret_carried);
void hr_control_free(Headrace__Control *m); /* accepts NULL */
/* The body of `m` stays when `m` is freed: the caller frees it with protobuf_c_message_free_unpacked. */
void hr_control_keep(Headrace__Control *m);

/* A string as protobuf-c takes it: it does not change what it packs. */
static inline char *hr_control_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* Waits at most timeout_ms for a message, then hr_control_recv; -ETIMEDOUT. A negative timeout waits for ever. */
int hr_control_wait(int fd, int timeout_ms, Headrace__Control **ret);

/*
 * Sends a request, and passes each answer to `take` (NULL: ignored) until `done`; `take` may keep the body, with
 * hr_control_keep. Waits timeout_ms for each answer, as hr_control_wait does. 0; -EREMOTEIO after an `error`, whose text goes to *ret_refusal (malloc'ed; may be NULL); else -errno.
 */
int hr_control_ask(int fd, int timeout_ms, hr_control_kind kind, const ProtobufCMessage *body,
		   void (*take)(void *arg, Headrace__Control *m), void *arg, char **ret_refusal);

#endif
