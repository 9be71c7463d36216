/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - stores frames of streams, and acknowledges them once they are on disk
 *
 * Purpose   Stores each frame exactly once: a frame is appended only if its number is mark + 1
 *           (mark: number of the stream's last frame), and acknowledged after a successful fsync.
 *           Ingest uses no sockets, so that tests can drive it.
 * Owner     The server. A channel is a stream that a daemon has opened. The caller of
 *           hr_ingest_open also closes the channel.
 * Threads   Ingest starts store threads. A stream belongs to the store thread that a hash of its
 *           names selects. One other thread, that of the loop, calls the functions here, which
 *           return at once. Store threads call `wake`.
 *
 *      loop                                          store thread, in rounds
 *      ----                                          -----------------------
 *      hr_ingest_open, _frame, _clock, _close ---->  takes all items: unpacks, checks, appends
 *      hr_ingest_answers  <---- RELEASED, NACK ----  frees the frames
 *                                                    group commit: fdatasync of each stream that changed, or one syncfs
 *      hr_ingest_answers  <---- OPENED, ACK -------
 *
 * States of a channel (the store thread changes them, and the loop receives the answers):
 *
 *      opening --OPENED--> open --NACK closed--> over
 *         +------NACK closed-------------------^     (denied, limit, in_use, malformed, behind, version, error)
 *      open --NACK full, gap--> open: frames after mark + 1 are ignored until mark + 1 comes
 *      opening --NACK full--> opening: the store has no room for it; tried again, OPENED follows
 */
#ifndef HEADRACE_COLLECTOR_INGEST_H
#define HEADRACE_COLLECTOR_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/stream_state.h"
#include "proto/wire.pb-c.h"

struct hr_ingest_config {
	const char *store;
	unsigned threads;
	/* up to this many changed streams are synced by fdatasync, more by one syncfs */
	unsigned sync_each;
	/* after this time without a connection, a stream is closed and its segment sealed */
	uint64_t idle_ms;
	uint64_t state_ms;   /* minimum time between two writes of a stream's `state` */
	uint32_t retry_ms;   /* Nack.retry_ms of a full disk */
	size_t index_bytes;  /* memory limit for the index of an open segment */
	size_t unpack_bytes; /* memory limit for an unpacked frame */
	size_t max_streams;  /* limit of open streams, which use descriptors; 0: no limit */
	/* limit of new streams of a user (`own_jobs`) in 24 hours; 0: no limit */
	uint64_t max_new;
	uint64_t (*real_ns)(void); /* wall clock */
	void (*wake)(void *self);  /* called by any thread when answers are available */
	void *self;
};

/* The values for a collector, except `store`, `wake` and `self`, which the caller sets. */
extern const struct hr_ingest_config hr_ingest_defaults;

struct hr_ingest_right {
	bool own_jobs; /* the peer may open only streams of jobs of user `uid` */
	/* the peer is a node, root or the collector's user, and decides which user owns a job */
	bool node;
	uint32_t uid;
	char peer[HR_STREAM_PEER_BYTES]; /* name of the peer, for `state` and messages */
};

enum hr_answer_kind {
	HR_ANSWER_RELEASED, /* `bytes` of frames were freed */
	HR_ANSWER_OPENED,
	HR_ANSWER_ACK,
	HR_ANSWER_NACK,
	/* the last answer, after hr_ingest_close: ingest no longer refers to the channel */
	HR_ANSWER_GONE,
};

struct hr_answer {
	enum hr_answer_kind kind;
	void *self;	    /* argument of hr_ingest_open */
	uint64_t mark;	    /* in OPENED, ACK, NACK */
	size_t bytes;	    /* in RELEASED: bytes of the frames */
	const char *reason; /* in NACK: as in Nack.reason */
	const char *text;   /* in NACK: a text for people */
	uint32_t retry_ms;
	bool closed; /* in NACK: the channel has ended; the loop must still call hr_ingest_close */
	/* in NACK: to be logged, because the collector has an error, or a peer may be forging */
	bool alarm;
};

struct hr_ingest;
struct hr_channel;

int hr_ingest_new(const struct hr_ingest_config *config, struct hr_ingest **ret);

/* Begins to open a stream; OPENED or NACK follows. Copies the arguments. Returns 0 or -ENOMEM. */
int hr_ingest_open(struct hr_ingest *in, void *self, const Headrace__Open *open,
		   const struct hr_ingest_right *right, struct hr_channel **ret);

/* Queues a frame that passed hr_frame_check_any. Always frees `buf` (malloc'ed). 0 or -ENOMEM. */
int hr_ingest_frame(struct hr_channel *ch, uint8_t *buf, size_t bytes);

/* A node's clock, estimated from round trips. */
struct hr_node_clock {
	bool known;
	int64_t offset_ns; /* the node's wall clock minus ours */
	uint64_t error_ns;
};

/* Call it when the daemon of the channel has sent something. Returns 0 or -ENOMEM. */
int hr_ingest_clock(struct hr_channel *ch, const struct hr_node_clock *clock);

/* Closes a channel. GONE follows, after all other answers of the channel. Accepts NULL. */
void hr_ingest_close(struct hr_channel *ch);

/* Passes the available answers to `take`, which may call hr_ingest_close. */
void hr_ingest_answers(struct hr_ingest *in, void (*take)(void *context, const struct hr_answer *a),
		       void *context);

/* Sums since the start, and current values. Any thread may call hr_ingest_stats. */
#define HR_INGEST_COMMIT_STEPS 8u
extern const double hr_ingest_commit_steps[HR_INGEST_COMMIT_STEPS]; /* seconds, upper bounds */
struct hr_ingest_stats {
	uint64_t frames, bytes; /* appended frames, and their bytes */
	uint64_t repeated;	/* frames that the store already had */
	uint64_t acks, nacks;
	/* commits per step; the last entry counts longer ones */
	uint64_t commits[HR_INGEST_COMMIT_STEPS + 1];
	uint64_t commit_ns;
	uint64_t streams, connected; /* open streams; open streams with a connected daemon */
	uint64_t silent;    /* streams that lost their daemon in the last day and have not ended */
	uint64_t silent_ms; /* how long the first of these streams has been silent */
};
void hr_ingest_stats(struct hr_ingest *in, struct hr_ingest_stats *ret);

/*
 * Makes the store threads commit, seal all segments and end, and returns at once. Afterwards, only
 * hr_ingest_answers, _close, _stopped and _free may be called.
 */
void hr_ingest_stop(struct hr_ingest *in);
/* Returns whether everything is on disk. When this becomes true, ingest calls `wake`. */
bool hr_ingest_stopped(struct hr_ingest *in);
void hr_ingest_free(struct hr_ingest *in); /* stops the threads, and waits for them; accepts NULL */

#endif
