/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_internal.h - what the files of a connection share
 *
 *      conn.c       life: states, events, the end
 *      conn_dial.c  names, addresses one after the other
 *      conn_in.c    bytes from the peer
 *      conn_out.c   bytes to the peer
 *      peer.c       who that is
 */
#ifndef HEADRACE_NET_CONN_INTERNAL_H
#define HEADRACE_NET_CONN_INTERNAL_H

#include "net/assembly.h"
#include "net/conn.h"

#define HR__CONN_SETUP_MS 10000u /* to look up, connect and shake hands, all addresses together */
#define HR__CONN_FLUSH_MS 5000u
/* what is read between large frames; larger parts go into the frame itself */
#define HR__CONN_READ_BYTES (16u << 10)

enum hr__conn_state {
	HR__CONN_DIALLING, /* no transport yet */
	HR__CONN_SHAKING,  /* there is one; TLS shakes hands, the owner has not been told */
	HR__CONN_READY,
	HR__CONN_FLUSHING, /* it is over: what is queued goes out, what comes in is dropped */
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
	uv_timer_t timer; /* what it is for follows from the state */
	unsigned handles; /* not closed yet */
	enum hr__conn_state state;
	bool paused;
	bool leaving; /* closed while shaking hands: as soon as they are shaken, flush */
	bool said_bye;
	bool peer_ended;
	uint64_t heard_ms;
	struct hr__dial *dial; /* while dialling */

	struct hr_tls_session *tls; /* NULL: plain */
	struct hr_tls *offer;	    /* not NULL: the peer's first byte decides which */
	struct hr_assembly in;
	bool direct;   /* the read under way goes into the frame */
	uint8_t *rest; /* read, and not looked at because of a pause; malloc'ed */
	size_t rest_at, rest_bytes;

	struct hr__chunks out;	  /* to be written */
	struct hr__chunks flying; /* libuv has them */
	uv_write_t write;
	bool writing;
	bool owes_drained; /* the owner has sent something since the last time */
	uv_shutdown_t shutdown;

	const struct hr_conn_events *events;
	void *self;
	int error;
	char *why;
};

/* ---- conn.c: every way out of a state ------------------------------------------------------------ */

/* `pipe`: io is a uv_pipe_t. */
int hr__conn_new(uv_loop_t *loop, bool pipe, const struct hr_conn_events *events, void *self,
		 struct hr_conn **ret);
/* For the one whose handles were never used. */
void hr__conn_abandon(struct hr_conn *c);
/* The transport is there. Not from the functions that the owner calls. */
void hr__conn_up(struct hr_conn *c);
/* Hands are shaken. */
void hr__conn_shaken(struct hr_conn *c);
/* Sends what is queued, then ends it as hr__conn_end. */
__attribute__((format(printf, 3, 4))) void hr__conn_leave(struct hr_conn *c, int error,
							  const char *why, ...);
/* TLS came to an end: tells the peer why, drops what was queued. */
void hr__conn_tls_failed(struct hr_conn *c);

/* The first byte of a peer that may have TLS: 0, or what stands in the way of a session. */
int hr__conn_choose(struct hr_conn *c, uint8_t first);

/* A record of TLS begins so, and no frame does. */
static inline bool hr__looks_like_tls(uint8_t first)
{
	return first >= 0x14 && first <= 0x17;
}
/* Ends it with -errno, or 0, and what to tell people. Later ones change nothing. */
__attribute__((format(printf, 3, 4))) void hr__conn_end(struct hr_conn *c, int error,
							const char *why, ...);
/* Milliseconds from now; one timer, so the last one asked for counts. */
void hr__conn_timer(struct hr_conn *c, uint64_t ms);
/* A handle of `c` is closed. */
void hr__conn_gone(uv_handle_t *handle);

/* libuv's own errors (end of file, resolver) as errno. */
int hr__conn_errno(int uv_error);

/* ---- conn_dial.c --------------------------------------------------------------------------------- */

int hr__dial_begin(struct hr_conn *c, const struct hr_address *to);
void hr__dial_timeout(struct hr_conn *c);
void hr__dial_end(struct hr_conn *c); /* frees, or leaves it to the resolver */

/* ---- conn_in.c ----------------------------------------------------------------------------------- */

void hr__in_start(struct hr_conn *c);
/* Goes on with what was read before a pause, then with reading. */
void hr__in_resume(struct hr_conn *c);
void hr__in_done(struct hr_conn *c);

/* ---- conn_out.c ---------------------------------------------------------------------------------- */

/* Writes what is queued, if nothing is under way. */
void hr__out_pump(struct hr_conn *c);
void hr__out_drop(struct hr_conn *c); /* what libuv has not got */
void hr__out_done(struct hr_conn *c);

#endif
