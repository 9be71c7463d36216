/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_internal.h - shared by peers.c (all peers), peer_hello.c (identity), peer_now.c (what jobs
 * do now) and peer.c, which the others call
 */
#ifndef HEADRACE_COLLECTOR_PEERS_INTERNAL_H
#define HEADRACE_COLLECTOR_PEERS_INTERNAL_H

#include "collector/fleet.h"
#include "collector/node_clock.h"
#include "collector/peers.h"

/* Limit of connections of one address before Hello, and of one user or node after it. */
#define HR__SHARE(max_connections) ((max_connections) / 4 + 1)

#define HR__CHAN_BUCKETS 256u

struct hr__peer;

/* A stream that a connection has opened. The struct exists until ingest answers GONE. */
struct hr__chan {
	struct hr__chan *next, **at; /* list peer->chans or peers->orphans */
	/* list peer->by_number; NULL: the last one, or a closed channel */
	struct hr__chan *next_number;
	struct hr_peers *peers;
	struct hr__peer *peer; /* NULL: the connection has ended */
	uint32_t number;       /* 0: the channel is closed */
	bool opening;
	struct hr_channel *channel;
	struct hr_fleet_stream *live; /* NULL: the channel is closed, or no memory */
	size_t in_flight;	      /* bytes of frames that ingest has not released yet */
};

enum hr__peer_state {
	HR__PEER_STRANGE, /* no Hello has arrived */
	HR__PEER_ASKED,	  /* waits for munged and the user database */
	HR__PEER_KNOWN,
	/* disconnecting: sends queued messages, and ignores received ones */
	HR__PEER_LEAVING,
};

struct hr__peer {
	struct hr__peer *next, **at; /* all peers, the oldest first */
	struct hr_peers *peers;
	struct hr_conn *conn; /* NULL: closed; the struct stays until the identification ends */
	enum hr__peer_state state;
	bool asking;
	struct hr_conn_peer about;
	char address[64], host[64]; /* the peer's address with and without port */
	struct hr_who who;
	char node[256]; /* name of the node according to Hello, for messages */
	bool asks;	/* the peer has sent a Query */
	/* when a query was last running or unread, and the number of the Ping at that time */
	uint64_t active_ms, active_ping;
	struct hr__chan *chans, *current;
	/* hash table of open channels; NULL: none was opened yet */
	struct hr__chan **by_number;
	size_t n_chans; /* number of channels, including closed ones */
	size_t n_busy;	/* number of channels that are opening or closing */
	size_t in_flight;
	size_t window_bytes; /* what it may have in flight */
	size_t begun;	     /* memory of the incomplete frame */
	uint64_t begun_ms;
	bool paused;
	/* when the peer connected, sent its last whole frame, and was read again after a pause */
	uint64_t came_ms, frame_ms, resumed_ms;
	uint64_t pinged_ms, ping_id, ping_real_ns;
	bool ping_open; /* the last Ping has no Pong yet */
	struct hr_node_clock_samples clock;
};

struct hr_peers {
	uv_loop_t *loop;
	struct hr_peers_config config;
	struct hr_ingest *ingest;
	struct hr_queries *queries;
	struct hr_fleet fleet;
	struct hr__peer *first, **last;
	size_t n, n_strange, n_paused;
	uint64_t n_refused; /* refused peers since the start */
	size_t in_flight;
	size_t begun;
	struct hr__chan *orphans; /* channels of closed connections, until GONE */
	bool stopping;
};

/* ---- peer.c ---- */
void hr__peer_open(struct hr__peer *p, const Headrace__Open *open);
void hr__peer_close_chan(struct hr__peer *p, uint32_t number);
void hr__peer_close_chans(struct hr__peer *p);
int hr__peer_data(struct hr__peer *p, uint8_t *frame, size_t bytes);
void hr__peer_pong(struct hr__peer *p, const Headrace__Pong *pong);
void hr__peer_ping(struct hr__peer *p);
/* Returns the open channel with this number; NULL: there is none. */
struct hr__chan *hr__peer_chan(struct hr__peer *p, uint32_t number);
/* Disconnects the peer. With `now`, drops queued messages. */
void hr__peer_leave(struct hr__peer *p, bool now);
void hr__peer_frame_done(struct hr__peer *p); /* frees the memory of the incomplete frame */
__attribute__((format(printf, 3, 4))) void hr__peer_refuse(struct hr__peer *p, const char *reason,
							   const char *format, ...);
/* Logs at most one message per minute, host and `about`, so that it hides no others. */
__attribute__((format(printf, 3, 4))) void
hr__peer_complain(const struct hr__peer *p, const char *about, const char *format, ...);
/* Call it when the connection is closed and no identification is running. */
void hr__peer_free(struct hr__peer *p);

/* ---- peer_hello.c ---- */
void hr__peer_hello(struct hr__peer *p, const Headrace__Hello *hello);

/* ---- peer_now.c ---- */
void hr__peer_now(struct hr__peer *p, const Headrace__Now *now);
void hr__peer_look(struct hr__peer *p, const Headrace__Look *look);

#endif
