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

struct hr_conn;

struct hr_conn_events {
	void (*ready)(void *self);
	/*
	 * Receives one whole frame with header and right CRC. `control`: it is a Wire message. The
	 * callee frees it. A negative result closes the connection with that error.
	 */
	int (*frame)(void *self, uint8_t *frame, size_t bytes, bool control);
	void (*drained)(void *self); /* the kernel has taken the last queued byte; may be NULL */
	/* Called once. `error`: 0 (hr_conn_close, the peer's end) or -errno. `why`: never NULL. */
	void (*closed)(void *self, int error, const char *why);
	/* A frame has begun. It uses `bytes` of memory until `frame` or `closed`. May be NULL. */
	void (*begun)(void *self, size_t bytes);
};

/* Takes a reference to `tls`. NULL: plain, as unix:// always is. -ENOMEM, or a socket's error. */
int hr_conn_connect(uv_loop_t *loop, const struct hr_address *to, struct hr_tls *tls,
		    const struct hr_conn_events *events, void *self, struct hr_conn **ret);

/*
 * Advice for the user about a connection that `error` closed before the peer's first frame. "" if
 * `why` is enough. `tls`: whether hr_conn_connect got a context.
 */
const char *hr_conn_advice(const struct hr_address *to, bool tls, int error);

/* Call it in a listener's connection callback. */
int hr_conn_accept(uv_stream_t *listener, struct hr_tls *tls, const struct hr_conn_events *events,
		   void *self, struct hr_conn **ret);

/* As hr_conn_accept, with or without TLS: the peer's first byte decides. Then `ready` is called. */
int hr_conn_accept_either(uv_stream_t *listener, struct hr_tls *tls,
			  const struct hr_conn_events *events, void *self, struct hr_conn **ret);

/* Makes a connection from an open stream socket (a socketpair to a child), without TLS. */
int hr_conn_adopt(uv_loop_t *loop, int fd, const struct hr_conn_events *events, void *self,
		  struct hr_conn **ret);

/* Queues `buf` (malloc'ed), and frees it later, even after a failure. -EPIPE: closing. */
int hr_conn_send(struct hr_conn *c, uint8_t *buf, size_t bytes);

/* Packs and queues a Wire message. As hr_conn_send, or -ENOMEM, -E2BIG. */
struct Headrace__Wire;
int hr_conn_send_now(struct hr_conn *c, const struct Headrace__Wire *msg);

/* Answers a Ping with this machine's clocks. As hr_conn_send_now. */
int hr_conn_pong(struct hr_conn *c, uint64_t id);

size_t hr_conn_queued(const struct hr_conn *c); /* bytes that the kernel has not taken yet */

/* Pauses or resumes reading. During a pause, the peer's end is not detected. */
void hr_conn_pause(struct hr_conn *c, bool paused);

/* Limits a frame, with header. The first limit is HR_CONN_FIRST_BYTES, for an unknown peer. */
#define HR_CONN_FIRST_BYTES (64u << 10)
void hr_conn_limit(struct hr_conn *c, size_t max_frame_bytes);

/*
 * Closes the connection. With `now`, drops queued frames. Otherwise sends them, and waits for the
 * peer's end, at most 5 s in all. No `frame` follows. The loop calls `closed`, not this function.
 */
void hr_conn_close(struct hr_conn *c, bool now);

uint64_t hr_conn_received_ms(const struct hr_conn *c); /* uv_now() of the last byte from the peer */

/* The peer, as far as transport and kernel can identify it. */
struct hr_conn_peer {
	struct sockaddr_storage address;
	bool loopback;	      /* the peer is on this machine */
	bool tls;	      /* the peer's certificate is valid */
	char cn[256], ou[64]; /* from the certificate */
	int64_t until;	      /* end of the certificate's validity, seconds since 1970 */
	bool uid_known; /* loopback, same network namespace: the kernel has the socket's owner */
	uint32_t uid;
};
void hr_conn_peer(struct hr_conn *c, struct hr_conn_peer *ret);

#endif
