/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_internal.h - shared by the files of a connection
 *
 *      conn.c       life: states, events, the end
 *      conn_dial.c  names, addresses one after the other
 *      conn_in.c    bytes from the peer
 *      conn_out.c   bytes to the peer
 *      peer.c       who the peer is
 */
#ifndef HEADRACE_NET_CONN_INTERNAL_H
#define HEADRACE_NET_CONN_INTERNAL_H

#include "net/assembly.h"
#include "net/conn.h"

#define HR__CONN_SETUP_MS   10000u /* for look-up, connection, handshake, all addresses together */
#define HR__CONN_FLUSH_MS   5000u
#define HR__CONN_READ_BYTES (16u << 10) /* of a read, except the rest of a large frame */

enum hr__conn_state {
	HR__CONN_DIALLING, /* no transport yet */
	HR__CONN_SHAKING,  /* connected; TLS handshake, not reported to the owner yet */
	HR__CONN_READY,
	HR__CONN_FLUSHING, /* ending: sends what is queued, drops what arrives */
	HR__CONN_CLOSING,  /* handles are being closed */
};

struct hr__dial; /* conn_dial.c */

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
	unsigned handles; /* not closed yet */
	enum hr__conn_state state;
	bool paused;
	bool leaving; /* closed during the handshake: flush after it */
	bool sent_end;
	bool peer_ended;
	uint64_t received_ms;
	struct hr__dial *dial; /* while dialling */

	struct hr_tls_session *tls; /* NULL: plain */
	struct hr_tls *offer;	    /* not NULL: the peer's first byte decides */
	struct hr_assembly in;
	bool direct;   /* the current read goes into the frame */
	uint8_t *rest; /* read, but not processed because of a pause; malloc'ed */
	size_t rest_at, rest_bytes;

	struct hr__chunks out;	  /* to be written */
	struct hr__chunks flying; /* passed to libuv */
	uv_write_t write;
	bool writing;
	bool owes_drained; /* the owner has sent something since the last `drained` */
	uv_shutdown_t shutdown;

	const struct hr_conn_events *events;
	void *self;
	int error;
	char *why;
};

/* ---- conn.c: each function that changes the state -------------------------------------------------------- */

/* The transport is connected. Functions that the owner calls must not call it. */
void hr__conn_up(struct hr_conn *c);
void hr__conn_shaken(struct hr_conn *c); /* the TLS handshake is complete */
/* TLS failed: sends the peer the reason, drops what was queued. */
void hr__conn_tls_failed(struct hr_conn *c);

/* The first byte of a peer decides about TLS. 0, or why no session can be made. */
int hr__conn_choose(struct hr_conn *c, uint8_t first);

/* Starts a TLS record, and no frame. */
static inline bool hr__looks_like_tls(uint8_t first)
{
	return first >= 0x14 && first <= 0x17;
}
/* Ends the connection with -errno or 0, and a reason for the user. Later calls change nothing. */
__attribute__((format(printf, 3, 4))) void hr__conn_end(struct hr_conn *c, int error,
							const char *why, ...);
/* Sets the connection's only timer, in milliseconds from now: the last call counts. */
void hr__conn_timer(struct hr_conn *c, uint64_t ms);
void hr__conn_gone(uv_handle_t *handle); /* a handle of `c` was closed */

int hr__conn_errno(int uv_error); /* libuv's own errors (end of file, resolver) as errno */

/* ---- conn_dial.c --------------------------------------------------------------------------------- */

int hr__dial_begin(struct hr_conn *c, const struct hr_address *to);
void hr__dial_timeout(struct hr_conn *c);
void hr__dial_end(struct hr_conn *c); /* frees, or leaves that to the resolver's callback */

/* ---- conn_in.c ----------------------------------------------------------------------------------- */

void hr__in_start(struct hr_conn *c);
/* Processes what was read before a pause, then continues to read. */
void hr__in_resume(struct hr_conn *c);
void hr__in_done(struct hr_conn *c);

/* ---- conn_out.c ---------------------------------------------------------------------------------- */

/* Writes what is queued, unless a write is in progress. */
void hr__out_pump(struct hr_conn *c);
void hr__out_drop(struct hr_conn *c); /* what libuv does not have yet */
void hr__out_done(struct hr_conn *c);

#endif
