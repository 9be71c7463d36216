/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_internal.h - declarations that the files of a connection share
 *
 *      conn.c       states, events, the end
 *      conn_dial.c  resolves a name, and tries one address after the other
 *      conn_in.c    receives bytes from the peer
 *      conn_out.c   sends bytes to the peer
 *      peer.c       identifies the peer
 */
#ifndef HEADRACE_NET_CONN_INTERNAL_H
#define HEADRACE_NET_CONN_INTERNAL_H

#include "net/assembly.h"
#include "net/conn.h"

/* time for look-up, connection and handshake, for all addresses together */
#define HR__CONN_SETUP_MS   10000u
#define HR__CONN_FLUSH_MS   5000u
#define HR__CONN_READ_BYTES (16u << 10) /* bytes of a read, except for the rest of a large frame */

enum hr__conn_state {
	HR__CONN_DIALLING, /* no transport yet */
	HR__CONN_SHAKING,  /* connected, in the TLS handshake; `ready` was not called yet */
	HR__CONN_READY,
	HR__CONN_FLUSHING, /* ends: sends queued frames, drops received bytes */
	HR__CONN_CLOSING,  /* handles are being closed */
};

struct hr__dial; /* defined in conn_dial.c */

struct hr__chunk {
	struct hr__chunk *next;
	uint8_t *buf;
	size_t bytes;
};

struct hr__chunks {
	struct hr__chunk *head, **tail;
	size_t bytes;
};

struct hr_conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io;
	uv_timer_t timer; /* its meaning depends on the state */
	unsigned handles; /* number of open handles */
	enum hr__conn_state state;
	bool paused;
	bool leaving; /* closed during the handshake: send queued frames after it */
	bool sent_end;
	bool peer_ended;
	uint64_t received_ms;
	struct hr__dial *dial; /* only while dialling */

	struct hr_tls_session *tls; /* NULL: plain */
	struct hr_tls *offer; /* not NULL: the peer's first byte decides whether this is used */
	struct hr_assembly in;
	bool direct;   /* the current read writes into the frame */
	uint8_t *rest; /* bytes read, but not processed because of a pause; malloc'ed */
	size_t rest_at, rest_bytes;

	struct hr__chunks out;	  /* not written yet */
	struct hr__chunks flying; /* passed to libuv */
	uv_write_t write;
	bool writing;
	bool owes_drained; /* the owner has sent something since the last call of `drained` */
	uv_shutdown_t shutdown;

	const struct hr_conn_events *events;
	void *self;
	int error;
	char *why;
};

/* ---- conn.c: each function that changes the state -------------------------------------------------------- */

/* Call it when the transport is connected, but not in a function that the owner calls. */
void hr__conn_up(struct hr_conn *c);
void hr__conn_shaken(struct hr_conn *c); /* the TLS handshake is complete */
/* Call it if TLS failed: sends the reason to the peer, and drops queued frames. */
void hr__conn_tls_failed(struct hr_conn *c);

/* Decides by the peer's first byte whether to use TLS. 0, or why no session can be made. */
int hr__conn_choose(struct hr_conn *c, uint8_t first);

/* True: the byte begins a TLS record, not a frame. */
static inline bool hr__looks_like_tls(uint8_t first)
{
	return first >= 0x14 && first <= 0x17;
}
/* Ends the connection with -errno or 0, and a reason for the user. Later calls have no effect. */
__attribute__((format(printf, 3, 4))) void hr__conn_end(struct hr_conn *c, int error,
							const char *why, ...);
/* Sets the connection's only timer, in milliseconds from now. A later call replaces the time. */
void hr__conn_timer(struct hr_conn *c, uint64_t ms);
void hr__conn_gone(uv_handle_t *handle); /* a handle of the connection was closed */

int hr__conn_errno(int uv_error); /* converts libuv's own errors (end of file, resolver) to errno */

/* ---- conn_dial.c --------------------------------------------------------------------------------- */

int hr__dial_begin(struct hr_conn *c, const struct hr_address *to);
void hr__dial_timeout(struct hr_conn *c);
void hr__dial_end(struct hr_conn *c); /* frees the dial, or lets the resolver's callback free it */

/* ---- conn_in.c ----------------------------------------------------------------------------------- */

void hr__in_start(struct hr_conn *c);
/* Processes bytes that were read before a pause, then continues to read. */
void hr__in_resume(struct hr_conn *c);
void hr__in_done(struct hr_conn *c);

/* ---- conn_out.c ---------------------------------------------------------------------------------- */

/* Writes queued frames, unless a write is in progress. */
void hr__out_pump(struct hr_conn *c);
void hr__out_drop(struct hr_conn *c); /* drops frames that libuv does not have yet */
void hr__out_done(struct hr_conn *c);

#endif
