/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_internal.h - the uplink's state, in its thread
 *
 * uplink.c          the thread, requests of others, the clock tick
 * uplink_link.c     the connection: choice of the collector, retries, Hello
 * uplink_streams.c  which streams there are, and when they are finished
 * uplink_send.c     Open, frames, Ack, Nack
 * uplink_channel.c  messages and ends of channels; the other files call it
 */
#ifndef HEADRACE_DAEMON_UPLINK_UPLINK_INTERNAL_H
#define HEADRACE_DAEMON_UPLINK_UPLINK_INTERNAL_H

#include <pthread.h>
#include <uv.h>

#include "daemon/base/backoff.h"
#include "daemon/base/now_message.h"
#include "daemon/spool/spool_stream.h"
#include "daemon/uplink/uplink.h"
#include "net/conn.h"
#include "net/wire.h"

/* Maximum number of open channels, because each may have a descriptor. */
#define HR__UPLINK_CHANNELS 64u
/* Maximum number of known streams, because each has two descriptors. */
#define HR__UPLINK_STREAMS 200u
#define HR__UPLINK_POINTS  16u

enum hr__sending_state {
	HR__SENDING_KNOWN, /* the stream has no channel */
	HR__SENDING_OPENING,
	HR__SENDING_OPEN,
	HR__SENDING_RESTING, /* the collector is full, so the stream waits until retry_ms */
	HR__SENDING_ASIDE,   /* the collector with index `aside_at` refused the stream */
};

struct hr__flight {
	uint64_t seq;
	size_t bytes;
};

struct hr__sending {
	struct hr__sending *next;
	struct hr_spool_stream *stream;
	enum hr__sending_state state;
	bool own;   /* this process writes the stream */
	bool ends;  /* the stream has ended */
	bool noted; /* `acked` states that all frames are acknowledged */
	uint32_t channel;
	uint64_t acked;	   /* a collector has all frames up to this number on disk */
	uint64_t sent;	   /* number of the last frame that was sent */
	uint64_t newest;   /* number of the last frame in the spool */
	uint64_t opening;  /* Open.opening of the last Open */
	uint64_t retry_ms; /* KNOWN, RESTING: the stream is not opened or sent before this time */
	uint64_t gap_mark, gap_ms; /* mark and time of the last Nack with the reason `gap` */
	bool gap_again;		   /* the collector has repeated this Nack */
	size_t aside_at;	   /* ASIDE: index of the collector that refused the stream */
	uint8_t *held;		   /* the next frame, which must wait for room in the window */
	size_t held_bytes;
	struct hr__flight *flights; /* frames without an acknowledgement, in the order of sending */
	size_t first_flight, n_flights, flights_room;
	/*
	 * Earlier values of `newest` with times, which show how long the oldest frame has waited.
	 */
	struct {
		uint64_t seq, ms;
	} points[HR__UPLINK_POINTS];
	unsigned n_points;
};

enum hr__link_state {
	HR__LINK_WAITING,
	HR__LINK_DIALLING,
	HR__LINK_GREETING,
	HR__LINK_UP,
	HR__LINK_CLOSING,
};

struct hr__orphan {	 /* a stream that has a journal, but no daemon */
	uint64_t folder; /* hash of the folder's name */
	uint64_t since_ms;
};
#define HR__UPLINK_ORPHANS 256u

struct hr_uplink {
	struct hr_uplink_config c; /* with the defaults; its texts and lists are copies */
	struct hr_tls_files tls_files;
	struct hr_arena memory; /* of the texts and lists of `c` */
	/* Made from the files that were read last. NULL: plain TCP, or no file was read yet. */
	struct hr_tls *tls;
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t tick, redial;
	enum hr__link_state link;
	struct hr_conn *conn;
	size_t at, next; /* index of the current collector, and of the next one to try */
	struct hr_backoff backoff;
	uint64_t link_ms;      /* when the state `link` began */
	uint64_t answer_ms;    /* the last time when an answer arrived, or no answer was due */
	bool moving;	       /* the connection is being closed in favour of a better collector */
	bool ending;	       /* hr_uplink_free was called: no more connections */
	uint64_t better_at_ms; /* no better collector is tried before this time */
	uint64_t ping_ms, window_bytes, max_frame_bytes;
	uint64_t in_flight; /* bytes without an acknowledgement */
	uint32_t last_channel, used_channel;
	unsigned channels;
	struct hr__sending *streams;
	struct hr__sending *turn; /* the stream that may send next */
	uint64_t scan_at_ms;
	struct hr__orphan orphans[HR__UPLINK_ORPHANS];
	unsigned n_orphans;
	unsigned known; /* number of streams in the list */
	/* Results of the last or the current search, as in struct hr_uplink_stats. */
	unsigned elsewhere, waiting_journals, unseen;
	unsigned searches;
	/* Other threads use these, too: */
	pthread_mutex_t lock;
	bool stop, release;
	struct hr_now_message *now; /* to be sent next; NULL: none */
	struct hr_uplink_stats stats;
};

static inline uint64_t hr__uplink_now(const struct hr_uplink *u)
{
	return uv_now(&u->loop);
}

/* ---- uplink_channel.c ---- */
void hr__link_set(struct hr_uplink *u, enum hr__link_state state);
/* Stores the error of a connection for the status. `advice`: what to do; "": `text` contains it. */
void hr__link_error(struct hr_uplink *u, const char *text, const char *advice);
void hr__link_broken(struct hr_uplink *u, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* call it if the collector violates the protocol */
void hr__link_good(struct hr_uplink *u);   /* call it if the collector has acknowledged a frame */
void hr__send_message(struct hr_uplink *u, const Headrace__Wire *msg);
/* Frames up to `seq` are acknowledged, so they do not fill the window. */
void hr__flights_land(struct hr_uplink *u, struct hr__sending *s, uint64_t seq);
/* Makes frame seq + 1 the next one to be sent. */
void hr__send_rewind(struct hr_uplink *u, struct hr__sending *s, uint64_t seq);
void hr__channel_lost(struct hr_uplink *u, struct hr__sending *s); /* the collector closed it */
void hr__send_close(struct hr_uplink *u, struct hr__sending *s);
void hr__send_aside(struct hr_uplink *u, struct hr__sending *s, const char *reason,
		    const char *text);

/* ---- uplink_link.c ---- */
void hr__link_start(struct hr_uplink *u);
void hr__link_tick(struct hr_uplink *u);
void hr__link_close(struct hr_uplink *u); /* closes the connection, and opens no other */

/* ---- uplink_streams.c ---- */
void hr__streams_scan(struct hr_uplink *u);
void hr__streams_wake(struct hr_uplink *u); /* call it if the stream of this process has grown */
/* Call it after an acknowledgement. It may free s. */
void hr__streams_settle(struct hr_uplink *u, struct hr__sending *s);
void hr__streams_free(struct hr_uplink *u);
void hr__streams_publish(struct hr_uplink *u);
struct hr__sending *hr__streams_by_channel(struct hr_uplink *u, uint32_t channel);

/* ---- uplink_send.c ---- */
void hr__send_connected(struct hr_uplink *u); /* call it when streams may be opened */
void hr__send_disconnected(struct hr_uplink *u);
void hr__send_tick(struct hr_uplink *u);
/* Opens channels and sends frames, within the limits. */
void hr__send_pump(struct hr_uplink *u);
/* Sends the message on the channel of the stream of this process, and frees it. Accepts NULL. */
void hr__send_now(struct hr_uplink *u, struct hr_now_message *now);
int hr__send_opened(struct hr_uplink *u, const Headrace__Opened *m);
int hr__send_ack(struct hr_uplink *u, const Headrace__Ack *m);
int hr__send_nack(struct hr_uplink *u, const Headrace__Nack *m);

#endif
