/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - one connection on a libuv loop, which receives and sends frames
 *
 * A connection connects or is accepted, makes the TLS handshake if it uses TLS, checks received
 * frames (headers, lengths, CRCs), and queues frames to be sent. It does not interpret frames.
 *
 * Owner     The library owns the connection from hr_conn_connect/_accept until `closed` has
 *           returned. The caller's `self` must live until then.
 * Threads   All in the loop's thread.
 * Signals   The program ignores SIGPIPE, which libuv's writes to lost peers raise.
 *
 *      connecting --(TCP, TLS done)--> ready --> frame, frame ...
 *          |                              |
 *          +------------------------------+--(error, end, hr_conn_close)--> closed once, freed
 *
 * Memory    A frame has its own buffer, no larger than its header and hr_conn_limit allow. An idle
 *           connection uses some hundred bytes.
 */
#ifndef HEADRACE_NET_CONN_H
#define HEADRACE_NET_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "net/address.h"
#include "net/tls.h"

/*
 * Time limits: for resolver, connection and handshake, for all addresses together; and for sending
 * what is queued at the end. Tests change them.
 */
extern uint32_t hr_conn_setup_ms, hr_conn_flush_ms;

/* A TCP socket or a local one. */
union hr_uv_stream {
	uv_handle_t handle;
	uv_stream_t stream;
	uv_tcp_t tcp;
	uv_pipe_t pipe;
};

struct hr_conn;

struct hr_conn_events {
	void (*ready)(void *self);
	/*
	 * The peer has sent a whole frame, with header and right CRC. The callee frees it.
	 * `control`: it is a Wire message. A negative result closes the connection with this error.
	 */
	int (*frame)(void *self, uint8_t *frame, size_t bytes, bool control);
	void (*drained)(void *self); /* the kernel has taken all queued bytes; may be NULL */
	/* Called once. error: 0 (hr_conn_close, or the peer's end) or -errno. why: never NULL. */
	void (*closed)(void *self, int error, const char *why);
	/* A frame has begun, and uses `bytes` of memory until `frame` or `closed`. May be NULL. */
	void (*begun)(void *self, size_t bytes);
};

/* Takes a reference to `tls`. NULL: no TLS, as always for unix://. -ENOMEM, or a socket's error. */
int hr_conn_connect(uv_loop_t *loop, const struct hr_address *to, struct hr_tls *tls,
		    const struct hr_conn_events *events, void *self, struct hr_conn **ret);

/*
 * Returns advice for the user about a connection that `error` closed before the peer's first frame.
 * Returns "" if `why` is enough. `tls`: whether hr_conn_connect got a TLS context.
 */
const char *hr_conn_advice(const struct hr_address *to, bool tls, int error);

/*
 * Call it in the connection callback of a listener. With `tls` and `plain`, the peer's first byte
 * decides whether to use TLS, before `ready`.
 */
int hr_conn_accept(uv_stream_t *listener, struct hr_tls *tls, bool plain,
		   const struct hr_conn_events *events, void *self, struct hr_conn **ret);

/* Makes a connection from an open stream socket (a socketpair to a child), without TLS. */
int hr_conn_adopt(uv_loop_t *loop, int fd, const struct hr_conn_events *events, void *self,
		  struct hr_conn **ret);

/* Queues `buf` (malloc'ed), and frees it later, even after an error. -EPIPE: closing. */
int hr_conn_send(struct hr_conn *c, uint8_t *buf, size_t bytes);

/* Packs and queues a Wire message. Errors: those of hr_conn_send, -ENOMEM, -E2BIG. */
struct Headrace__Wire;
int hr_conn_send_now(struct hr_conn *c, const struct Headrace__Wire *msg);

/* Sends the Hello of a client that sends no streams. `munge`: its credential; NULL: none. */
int hr_conn_hello(struct hr_conn *c, const char *software, const char *munge);

/* Answers a Ping with the clocks of this machine. Returns what hr_conn_send_now returns. */
int hr_conn_pong(struct hr_conn *c, uint64_t id);

size_t hr_conn_queued(const struct hr_conn *c); /* bytes that the kernel has not yet taken */

/* Pauses or resumes reading. During a pause, the end of the peer is not detected. */
void hr_conn_pause(struct hr_conn *c, bool paused);

/* Limits the size of a frame with its header. Before the peer is known, the limit is 64 KiB. */
#define HR_CONN_FIRST_BYTES (64u << 10)
void hr_conn_limit(struct hr_conn *c, size_t max_frame_bytes);

/*
 * Closes the connection. With `now`, drops queued frames. Otherwise sends them, and waits for the
 * peer's end, at most 5 s in all. `frame` is not called again. The loop calls `closed` later.
 */
void hr_conn_close(struct hr_conn *c, bool now);

uint64_t hr_conn_received_ms(const struct hr_conn *c); /* uv_now() at the peer's last byte */

/* What transport and kernel reveal about the peer. */
struct hr_conn_peer {
	struct sockaddr_storage address;
	bool loopback;	      /* the peer is on this machine */
	bool tls;	      /* the peer has a valid certificate */
	char cn[256], ou[64]; /* from the certificate */
	int64_t until;	      /* when the certificate expires, in seconds since 1970 */
	bool uid_known;	      /* the kernel knows the owner of the peer's socket */
	uint32_t uid;
};
void hr_conn_peer(struct hr_conn *c, struct hr_conn_peer *ret);

#endif
