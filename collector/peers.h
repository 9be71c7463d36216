/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - the connections of a collector: identity, permissions and limits
 *
 * Purpose   Implements proto/wire.proto: reads Hello, passes frames to ingest and its answers to
 *           the peer, passes queries to child processes, and exchanges Ping and Pong. A peer has no
 *           rights until who.h has identified it.
 * Lifetime  A peer lives until its connection is closed and its identification has finished.
 *      strange --Hello--> asked (user database, munged) --> known --> gone
 *         +---(10 s, too many)---> gone <---(refused)-+        (end, error, silence, shutdown)
 *
 * Memory    Frames that are not in the store yet have a limit. Above this limit, the collector does
 *           not read from peers that use more than their share, until half of it is free.
 *           Incomplete frames have their own limit, of the same size. Above this limit, the peer
 *           with the oldest incomplete frame is disconnected.
 */
#ifndef HEADRACE_COLLECTOR_PEERS_H
#define HEADRACE_COLLECTOR_PEERS_H

#include <uv.h>

#include "collector/fleet.h"
#include "collector/ingest.h"
#include "collector/queries.h"
#include "net/tls.h"

struct hr_peers_config {
	struct hr_who_rules rules;
	size_t max_connections;
	size_t max_frame_bytes;
	uint64_t window_bytes; /* bytes that a daemon may send without an acknowledgement */
	uint64_t memory_bytes; /* limit for frames of all daemons */
	uint64_t ping_ms;
};

struct hr_peers;

int hr_peers_new(uv_loop_t *loop, const struct hr_peers_config *config, struct hr_ingest *ingest,
		 struct hr_queries *queries, struct hr_peers **ret);
/* Sets the rules for new connections. Keep the texts until hr_peers_free. */
void hr_peers_rules(struct hr_peers *p, const struct hr_who_rules *rules);
void hr_peers_free(struct hr_peers *p); /* first wait until hr_peers_count is 0; accepts NULL */

/*
 * Call it when a listener has a new connection. `tls` NULL: the connection is plain. `tls` and
 * `plain`: the peer chooses whether to use TLS.
 */
void hr_peers_accept(struct hr_peers *p, uv_stream_t *listener, struct hr_tls *tls, bool plain);

void hr_peers_answers(struct hr_peers *p);
void hr_peers_tick(struct hr_peers *p); /* call it once a second */
size_t hr_peers_count(const struct hr_peers *p);

struct hr_peers_stats {
	size_t strangers, known; /* connections before and after Hello */
	size_t paused;
	size_t in_flight_bytes; /* frames that are not in the store yet */
	uint64_t refused;
};
void hr_peers_stats(const struct hr_peers *p, struct hr_peers_stats *ret);

/*
 * What all jobs do now, with the `max_jobs` jobs that do the most operations, and `max_stuck`
 * operations of each that have not returned (fleet.h). The texts are valid until the loop
 * continues. Returns 0 or -ENOMEM.
 */
int hr_peers_fleet(const struct hr_peers *p, size_t max_jobs, size_t max_stuck,
		   struct hr_arena *memory, Headrace__Fleet *ret);

/*
 * To stop, call hr_peers_pause, which ends reading. When ingest has answered everything, call
 * hr_peers_dismiss, which disconnects all peers.
 */
void hr_peers_pause(struct hr_peers *p);
void hr_peers_dismiss(struct hr_peers *p);

#endif
