/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - sends and receives the messages of proto/control.proto
 *
 * Purpose   Commands, hooks, and recording processes of the node service use the control sockets
 *           of headraced (SOCK_SEQPACKET).
 * Owner     The caller owns messages (hr_control_free) and sockets.
 * Threads   Any, over the caller's memory. Only hr_control_wait, hr_control_request and the connect
 *           functions block.
 */
#ifndef HEADRACE_DAEMON_CONTROL_CONTROL_H
#define HEADRACE_DAEMON_CONTROL_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

#define HR_CONTROL_VERSION 2u
#define HR_CONTROL_BYTES   32768u /* maximum bytes of a message */
#define HR_SERVICE_CONTROL "/run/headrace/control.sock"

/* HR_CONTROL(GET_STATUS): the kind of a message with the field get_status of `message Control` */
#define HR_CONTROL(kind) HEADRACE__CONTROL__KIND_##kind

typedef Headrace__Control__KindCase hr_control_kind;

/* ---- sockets --------------------------------------------------------------------------------- */

/*
 * Listens at `path`. accept() on *ret_fd does not block. -ENAMETOOLONG: the path does not fit into
 * a socket address.
 */
int hr_control_listen(const char *path, int *ret_fd);
int hr_control_connect(const char *path, int *ret_fd);
/* Connects. The connect and each later send wait at most timeout_ms (0: no limit): then -EAGAIN. */
int hr_control_connect_within(const char *path, unsigned timeout_ms, int *ret_fd);

/* ---- messages -------------------------------------------------------------------------------- */

/*
 * Sends a message. `body`: the `base` of its struct; NULL: a message without fields (Empty).
 * -EMSGSIZE: it is longer than HR_CONTROL_BYTES; -EAGAIN: the socket is full; -EPIPE: the peer
 * closed the connection.
 */
int hr_control_send(int fd, hr_control_kind kind, const ProtobufCMessage *body);
/* Sends a message with a copy of the descriptor `carried`. */
int hr_control_send_fd(int fd, hr_control_kind kind, const ProtobufCMessage *body, int carried);
/* Sends a message `error`. `code` is a positive errno. */
int hr_control_send_error(int fd, int code, const char *text);

/*
 * Receives a message. -ECONNRESET: the peer closed the connection; -EAGAIN: there is no message;
 * -EBADMSG: the message is invalid or unknown.
 */
int hr_control_recv(int fd, Headrace__Control **ret);
/* Receives a message and its descriptor (-1: none). The caller must close it in any case. */
int hr_control_recv_fd(int fd, Headrace__Control **ret, int *ret_carried);
void hr_control_free(Headrace__Control *m); /* accepts NULL */
/* Removes the body from m. The caller then frees it with protobuf_c_message_free_unpacked. */
void hr_control_keep(Headrace__Control *m);

/*
 * Removes `const`: the fields of protobuf-c have the type char *, although packing does not change
 * them.
 */
static inline char *hr_control_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

/*
 * Waits at most timeout_ms (negative: no limit) for a message, and receives it, or -ETIMEDOUT.
 * After an error, *ret is NULL.
 */
int hr_control_wait(int fd, int timeout_ms, Headrace__Control **ret);

/*
 * Sends a request, and passes each answer before `done` to `take` (may be NULL), which may keep the
 * body with hr_control_keep. Waits timeout_ms for each answer, like hr_control_wait. Returns 0,
 * -errno, or -EREMOTEIO: the answer is an `error`, with its text in *ret_refusal (malloc'ed;
 * ret_refusal may be NULL).
 */
int hr_control_request(int fd, int timeout_ms, hr_control_kind kind, const ProtobufCMessage *body,
		       void (*take)(void *arg, Headrace__Control *m), void *arg,
		       char **ret_refusal);

#endif
