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

#define HR__CONN_READ_BYTES (16u << 10) /* bytes per read; more for the rest of a large frame */

enum hr__conn_state {
	HR__CONN_DIALLING, /* resolving or connecting */
	HR__CONN_SHAKING,  /* connected, in the TLS handshake, before `ready` */
	HR__CONN_READY,
	HR__CONN_FLUSHING, /* ending: sends queued frames, drops received bytes */
	HR__CONN_CLOSING,
};

struct hr__dial;

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
	union hr_uv_stream io;
	uv_timer_t timer; /* what it does depends on the state */
	unsigned handles;
	enum hr__conn_state state;
	bool paused;
	bool leaving; /* closed during the handshake, after which queued frames are sent */
	bool sent_end;
	bool peer_ended;
	uint64_t received_ms;
	struct hr__dial *dial; /* NULL, except while dialling */

	struct hr_tls_session *tls; /* NULL: no TLS */
	struct hr_tls *offer; /* not NULL: the peer's first byte decides whether this is used */
	struct hr_assembly in;
	bool direct;   /* the current read writes into the frame's own memory */
	uint8_t *rest; /* bytes that arrived before a pause, and are not processed; malloc'ed */
	size_t rest_at, rest_bytes;

	struct hr__chunks out;	  /* frames that are not written yet */
	struct hr__chunks flying; /* frames that libuv is writing */
	uv_write_t write;
	bool writing;
	bool owes_drained; /* the owner has sent something after the last call of `drained` */
	uv_shutdown_t shutdown;

	const struct hr_conn_events *events;
	void *self;
	int error;
	char *why;
};

/* ---- conn.c: each function that changes the state -------------------------------------------------------- */

/* Call it when the transport is connected, but not from a function that the owner calls. */
void hr__conn_up(struct hr_conn *c);
void hr__conn_shaken(struct hr_conn *c); /* call it when the TLS handshake is complete */
/* Call it if TLS failed: sends the reason to the peer, and drops queued frames. */
void hr__conn_tls_failed(struct hr_conn *c);

/* Decides by the peer's first byte whether to use TLS. Returns 0, or an error of TLS. */
int hr__conn_choose(struct hr_conn *c, uint8_t first);

/* Whether the byte begins a TLS record, not a frame. */
static inline bool hr__looks_like_tls(uint8_t first)
{
	return first >= 0x14 && first <= 0x17;
}
/* Ends the connection with -errno or 0, and a reason for the user. Later calls have no effect. */
__attribute__((format(printf, 3, 4))) void hr__conn_end(struct hr_conn *c, int error,
							const char *why, ...);
/* Sets the only timer of the connection, in milliseconds from now. Replaces the earlier time. */
void hr__conn_timer(struct hr_conn *c, uint64_t ms);
void hr__conn_gone(uv_handle_t *handle);

int hr__conn_errno(int uv_error); /* converts error numbers of libuv, which are not all errno */

/* ---- conn_dial.c --------------------------------------------------------------------------------- */

int hr__dial_begin(struct hr_conn *c, const struct hr_address *to);
void hr__dial_timeout(struct hr_conn *c);
void hr__dial_end(struct hr_conn *c); /* frees the dial now, or when the resolver returns */

/* ---- conn_in.c ----------------------------------------------------------------------------------- */

void hr__in_start(struct hr_conn *c);
/* Processes bytes that arrived before a pause, then continues to read. */
void hr__in_resume(struct hr_conn *c);
void hr__in_done(struct hr_conn *c);

/* ---- conn_out.c ---------------------------------------------------------------------------------- */

/* Writes the queued frames, unless a write is in progress. */
void hr__out_pump(struct hr_conn *c);
void hr__out_drop(struct hr_conn *c); /* drops the frames that libuv does not have yet */
void hr__out_done(struct hr_conn *c);

#endif
