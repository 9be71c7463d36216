/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - puts the frames of streams into ClickHouse, each exactly once
 *
 * ClickHouse inserts into one table at a time, may confirm an insert of which the collector learns
 * nothing, and forgets after a while which inserts it has had. So rows of a frame can arrive twice.
 * They are distinguished by generations:
 *
 *      A generation is a number that grows within a stream. A collector begins one when a daemon
 *      opens a stream there, and after each insert that failed or whose result it does not know.
 *      Each generation has a first frame: the one after the last that was confirmed.
 *
 *      A row is valid if no later generation of its stream has a first frame at or before the row's
 *      frame. The view generation_ends computes this, and all views leave out the other rows.
 *
 * Thus a generation inserts each row at most once, and what a dead, stopped or disconnected
 * collector inserts late is never counted. Acknowledged frames are never superseded:
 *
 *      A daemon numbers its Opens (Open.opening), and a generation has the number of its Open, or a
 *      slightly higher one after a failed insert. So the generations have the order of the Opens,
 *      even if a collector begins one late, and whatever clocks collectors have.
 *
 *      A generation begins after the last frame whose acknowledgement the daemon has
 *      (Open.acked_seq). The daemon ignores acknowledgements of connections that it has left. So
 *      frames from there on were not acknowledged in earlier generations, and the daemon still has
 *      them.
 *
 * Nothing of this depends on what a replica that lags has. If the clock of a node was set back, the
 * newest generation that ClickHouse has counts instead of the number of the Open.
 *
 * The order of inserts is: the row of the generation, then all rows of the frames, then the frames
 * themselves. A frame in the view `frames` is therefore complete.
 *
 * Owner     A store thread of the collector; each has a sink of its own.
 * Threads   One, which waits for ClickHouse.
 * Errors    *ret_error (malloc'ed) is a text for the log and for the daemon.
 */
#ifndef HEADRACE_CLICKHOUSE_SINK_H
#define HEADRACE_CLICKHOUSE_SINK_H

#include "clickhouse/client.h"
#include "clickhouse/rows.h"

#define HR_CH_SINK_ROWS		524288u /* a block of so many rows is inserted at once */
#define HR_CH_SINK_BYTES	(128u << 20)
#define HR_CH_SINK_SECRET_BYTES 65u

struct hr_ch_sink;

/* A stream. The caller sets the members up to `opening`, and keeps the texts while it exists. */
struct hr_ch_sink_stream {
	struct hr_ch_origin origin; /* cluster, job, node, attempt, uid, by_node */
	const char *boot_id, *peer;
	uint64_t instance;
	const uint8_t *secret; /* of the stream */
	size_t secret_bytes;
	uint64_t opening; /* see Open.opening */

	/* ---- what hr_ch_sink_find has found ---- */
	bool begun;	  /* ClickHouse has generations of it */
	bool same_secret; /* they have the same secret */
	bool owner_known; /* a node or the owner has named the owner of the job, in this stream */
	uint32_t owner;

	/* ---- private ---- */
	unsigned shard;
	uint64_t last_generation;	    /* the newest one, or what it is to be more than */
	char hash[HR_CH_SINK_SECRET_BYTES]; /* of the secret */
};

int hr_ch_sink_new(const struct hr_ch_target *target, struct hr_ch_sink **ret, char **ret_error);
void hr_ch_sink_free(struct hr_ch_sink *k); /* accepts NULL */

/* Checks that all tables of tables.def exist. -ENOENT: some are missing. */
int hr_ch_sink_check(struct hr_ch_sink *k, char **ret_error);

/* Makes the number of the stream from its names. Call it before the other functions. */
void hr_ch_sink_identify(const struct hr_ch_sink *k, struct hr_ch_sink_stream *s);

/* Asks ClickHouse what it has of `n` streams. Call it each time that a daemon opens one. */
int hr_ch_sink_find(struct hr_ch_sink *k, struct hr_ch_sink_stream *const *streams, size_t n,
		    char **ret_error);

/*
 * Asks who owns the jobs of streams, and calls `owner` with the number of the stream for each
 * answer. `by_node`: a node has named the user, not the user who streams the job.
 */
typedef void hr_ch_sink_owner(void *self, size_t stream, bool by_node, uint32_t uid);
int hr_ch_sink_owners(struct hr_ch_sink *k, struct hr_ch_sink_stream *const *streams, size_t n,
		      hr_ch_sink_owner *owner, void *self, char **ret_error);

/*
 * Adds the rows of frame `msg->seq`. If the stream has no generation, begins one with this frame.
 * Errors as hr_ch_rows_add; after -ENOMEM, call hr_ch_sink_failed for all streams of the shard.
 */
int hr_ch_sink_add(struct hr_ch_sink *k, struct hr_ch_sink_stream *s, Headrace__Frame *msg,
		   const uint8_t *packed, size_t bytes, uint64_t real_ns);

/* How many rows wait to be inserted into a shard. */
size_t hr_ch_sink_waiting(const struct hr_ch_sink *k, unsigned shard);
/* Whether they fill a block. */
bool hr_ch_sink_full(const struct hr_ch_sink *k, unsigned shard);

/* Inserts the rows of a shard, and forgets them in all cases. */
int hr_ch_sink_insert(struct hr_ch_sink *k, unsigned shard, char **ret_error);
/* Forgets the rows of a shard. */
void hr_ch_sink_clear(struct hr_ch_sink *k, unsigned shard);

/*
 * Call it for each stream with frames in an insert that failed: the next frame begins a generation.
 */
static inline void hr_ch_sink_failed(struct hr_ch_sink_stream *s)
{
	s->origin.generation = 0;
}

#endif
