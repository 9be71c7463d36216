/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - the connections of a collector: identity, permissions and limits
 *
 * Purpose   Implements proto/wire.proto for each peer: Hello, frames to ingest and answers back,
 *           queries to their children, Ping and Pong. A peer is untrusted until who.h has decided.
 * Owner     The server. A peer belongs to its connection and lives until it is closed, and until
 *           munged and the user database have answered.
 * Threads   The loop's; who_decide runs in libuv's pool.
 *
 *      strange --Hello--> asked (user database, munged) --> known --> gone
 *         +---(10 s, too many)---> gone <---(refused)-+        (end, error, silence, shutdown)
 *
 * Memory    Received frames that are not in the store yet count against one limit for all peers.
 *           Above it, reading pauses for peers that hold more than their share, until half of the
 *           limit is free. Incomplete frames have a second limit of the same size: above it, the
 *           peer whose incomplete frame is oldest is disconnected.
 */
#ifndef HEADRACE_COLLECTOR_PEERS_H
#define HEADRACE_COLLECTOR_PEERS_H

#include <uv.h>

#include "collector/ingest.h"
#include "collector/queries.h"
#include "net/tls.h"

struct hr_peers_config {
	struct hr_who_rules rules;
	size_t max_connections;
	size_t max_frame_bytes;
	uint64_t window_bytes; /* of one daemon */
	uint64_t memory_bytes; /* of frames, all daemons */
	uint64_t ping_ms;
};

struct hr_peers;

int hr_peers_new(uv_loop_t *loop, const struct hr_peers_config *config, struct hr_ingest *ingest,
		 struct hr_queries *queries, struct hr_peers **ret);
/* For connections that come from now on. Its texts outlive the peers. */
void hr_peers_rules(struct hr_peers *p, const struct hr_who_rules *rules);
void hr_peers_free(struct hr_peers *p); /* when hr_peers_count is 0; accepts NULL */

/* In a listener's connection callback. `tls` NULL: plain; `plain`: either, as the peer begins. */
void hr_peers_accept(struct hr_peers *p, uv_stream_t *listener, struct hr_tls *tls, bool plain);

void hr_peers_answers(struct hr_peers *p); /* after ingest's `wake` */
void hr_peers_tick(struct hr_peers *p);	   /* once a second */
size_t hr_peers_count(const struct hr_peers *p);

struct hr_peers_stats {
	size_t strangers, known; /* connections before and after Hello */
	size_t paused;		 /* connections from which reading is paused */
	size_t in_flight_bytes;	 /* of frames that are not in the store yet */
	uint64_t refused;	 /* connections, since the start */
};
void hr_peers_stats(const struct hr_peers *p, struct hr_peers_stats *ret);

/* The end: first stop reading; then, after all answers of ingest, disconnect every peer. */
void hr_peers_pause(struct hr_peers *p);
void hr_peers_dismiss(struct hr_peers *p);

#endif
