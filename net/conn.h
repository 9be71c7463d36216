/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - one connection on a libuv loop: frames in, frames out
 *
 * Purpose   Connects or accepts, does the TLS handshake where there is TLS, cuts the bytes that come into frames, checks their
 *           headers, lengths and CRCs, and queues what is to be sent. It does not know what frames mean.
 * Owner     The library owns the connection from hr_conn_connect/_accept until `closed` has returned. The caller's `self` must
 *           live until then.
 * Threads   All in the loop's thread.
 * Signals   The program ignores SIGPIPE: libuv writes to peers that are gone like anybody else.
 *
 *      connecting --(TCP, TLS done)--> ready --> frame, frame ...
 *          |                              |
 *          +------------------------------+--(error, end of the peer, hr_conn_close)--> closed, once; then it is gone
 *
 * Memory    A frame is read straight into a buffer of its own that grows no larger than its header says, and no larger than
 *           hr_conn_limit allows; a connection that is idle holds some hundred bytes.
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
	 * One whole frame, its CRC checked, header included; `control`: a Wire message. It is malloc'ed and the callee's to free. A
	 * negative return closes the connection with that error.
	 */
	int (*frame)(void *self, uint8_t *frame, size_t bytes, bool control);
	void (*drained)(void *self); /* the last queued byte has gone to the kernel; may be NULL */
	/* Exactly once. `error` is 0 after hr_conn_close and at the peer's end, else -errno; `why` is for people, never NULL. */
	void (*closed)(void *self, int error, const char *why);
	/* So many bytes are held from now on, for a frame of which a part has come; until `frame` or `closed`. May be NULL. */
	void (*begun)(void *self, size_t bytes);
};

/* `tls` NULL: plain, as unix:// always is; it takes a reference of its own. `self` goes to each event. -ENOMEM, or what a socket says at once. */
int hr_conn_connect(uv_loop_t *loop, const struct hr_address *to, struct hr_tls *tls,
		    const struct hr_conn_events *events, void *self, struct hr_conn **ret);

/*
 * What a person can do about a connection that was closed with `error` before the other side had said anything of use; "" where
 * `why` says it. `tls`: hr_conn_connect was given some.
 */
const char *hr_conn_advice(const struct hr_address *to, bool tls, int error);

/* In a listener's connection callback. */
int hr_conn_accept(uv_stream_t *listener, struct hr_tls *tls, const struct hr_conn_events *events,
		   void *self, struct hr_conn **ret);

/* The same for a peer that may speak TLS or not: its first byte says which. `ready` comes after it. */
int hr_conn_accept_either(uv_stream_t *listener, struct hr_tls *tls,
			  const struct hr_conn_events *events, void *self, struct hr_conn **ret);

/* Takes over an open stream socket (a socketpair to a child): plain. */
int hr_conn_adopt(uv_loop_t *loop, int fd, const struct hr_conn_events *events, void *self,
		  struct hr_conn **ret);

/* Queues `bytes` at `buf`, which is malloc'ed and belongs to the connection from now on, also on failure. -EPIPE when closing. */
int hr_conn_send(struct hr_conn *c, uint8_t *buf, size_t bytes);

/* Packs and queues a Wire message. As hr_conn_send, or -ENOMEM, -E2BIG. */
struct Headrace__Wire;
int hr_conn_send_now(struct hr_conn *c, const struct Headrace__Wire *msg);

/* Answers a Ping with this machine's clocks. As hr_conn_send_now. */
int hr_conn_pong(struct hr_conn *c, uint64_t id);

size_t hr_conn_queued(const struct hr_conn *c); /* bytes that the kernel has not taken */

/* Stops or goes on with reading. A paused connection still sees nothing of the peer's end. */
void hr_conn_pause(struct hr_conn *c, bool paused);

/* Largest frame from now on, header included. At first HR_CONN_FIRST_BYTES: a stranger cannot make us hold more. */
#define HR_CONN_FIRST_BYTES (64u << 10)
void hr_conn_limit(struct hr_conn *c, size_t max_frame_bytes);

/*
 * Closes: `now` drops what is queued, else it is sent first, and the peer's end is waited for (5 s at most in all). No frame follows;
 * `closed` does, from the loop, never from here.
 */
void hr_conn_close(struct hr_conn *c, bool now);

uint64_t hr_conn_received_ms(const struct hr_conn *c); /* uv_now() of the last byte from the peer */

/* Who is at the other end, as far as transport and kernel know. */
struct hr_conn_peer {
	struct sockaddr_storage address;
	bool loopback;	      /* on this machine */
	bool tls;	      /* its certificate is good */
	char cn[256], ou[64]; /* of the certificate */
	int64_t until;	      /* its end, seconds since 1970 */
	bool uid_known; /* loopback, same network namespace: whose socket the kernel says it is */
	uint32_t uid;
};
void hr_conn_peer(struct hr_conn *c, struct hr_conn_peer *ret);

#endif
