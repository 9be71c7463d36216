/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - frames of streams go in, acknowledgements come out once they are on disk
 *
 * Purpose   Exactly once: a stream's frame is appended when it is mark + 1 and never else, and acknowledged after an fsync that
 *           succeeded. It knows streams and the store; it does not know sockets, so that a test can drive it by hand.
 * Owner     The server makes one. A channel is a daemon's open end of one stream; whoever opened it closes it.
 * Threads   Store threads of its own; a stream belongs to one of them, by its hash. Every function here is for one other thread,
 *           the loop's, and returns at once. `wake` is called from store threads.
 *
 *      loop                                          store thread, in rounds
 *      ----                                          -----------------------
 *      hr_ingest_open, _frame, _heard, _close ---->  takes all there is: unpacks, checks, appends
 *      hr_ingest_answers  <---- RELEASED, NACK ----  frees the frames
 *                                                    group commit: fdatasync of each stream that changed, or one syncfs
 *      hr_ingest_answers  <---- OPENED, ACK -------
 *
 * What a channel goes through (the store thread decides, the loop learns it from answers):
 *
 *      opening --OPENED--> open --NACK closed--> over
 *         +------NACK closed-------------------^     (denied, limit, in_use, malformed, behind, version, error)
 *      open --NACK full, gap--> open: frames behind mark + 1 are ignored until mark + 1 comes
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
	const char *store; /* held by the caller (hr_store_hold) */
	unsigned threads;
	unsigned sync_each;  /* up to so many changed streams: fdatasync; more: syncfs */
	uint64_t idle_ms;    /* without a connection: its writer is closed, the segment sealed */
	uint64_t state_ms;   /* a stream's `state` is written at most so often */
	uint32_t retry_ms;   /* Nack.retry_ms of a full disk */
	size_t index_bytes;  /* of memory, for the index of one open segment */
	size_t unpack_bytes; /* of memory, for one frame unpacked */
	size_t max_streams;  /* open at a time: each has descriptors; 0: any number */
	/* streams that one user (own_jobs) may begin in 24 hours; 0: any number */
	uint64_t max_new;
	uint64_t (*real_ns)(void); /* wall clock */
	void (*wake)(void *self);  /* there are answers; any thread */
	void *self;
};

/* What is right for a daemon's collector. `store`, `wake` and `self` are the caller's to set. */
extern const struct hr_ingest_config hr_ingest_defaults;

/* What the peer may do with the stream that it opens. */
struct hr_ingest_right {
	bool own_jobs; /* only streams of jobs of user `uid` */
	bool node;     /* a node, root or the collector's user: knows whose a job's id is */
	uint32_t uid;
	char peer[HR_STREAM_PEER_BYTES]; /* for `state` and messages */
};

enum hr_answer_kind {
	HR_ANSWER_RELEASED, /* `bytes` of frames have left memory */
	HR_ANSWER_OPENED,
	HR_ANSWER_ACK,
	HR_ANSWER_NACK,
	HR_ANSWER_GONE, /* after hr_ingest_close: the last; nothing of the channel is in memory any more */
};

struct hr_answer {
	enum hr_answer_kind kind;
	void *self;	    /* of hr_ingest_open */
	uint64_t mark;	    /* OPENED, ACK, NACK */
	size_t bytes;	    /* RELEASED */
	const char *reason; /* NACK, as in Nack.reason */
	const char *text;   /* NACK, for people */
	uint32_t retry_ms;
	bool closed; /* NACK: the channel is over; the loop still calls hr_ingest_close */
	bool alarm;  /* NACK: the collector's own trouble, or somebody who forges: to be logged */
};

struct hr_ingest;
struct hr_channel;

int hr_ingest_new(const struct hr_ingest_config *config, struct hr_ingest **ret);

/* Begins to open; OPENED or NACK follows. Copies what it needs. -ENOMEM. */
int hr_ingest_open(struct hr_ingest *in, void *self, const Headrace__Open *open,
		   const struct hr_ingest_right *right, struct hr_channel **ret);

/* Takes a frame that hr_frame_check_any has accepted; `buf` is malloc'ed and belongs to it from now on. -ENOMEM. */
int hr_ingest_frame(struct hr_channel *ch, uint8_t *buf, size_t bytes);

/* What round trips say of a node's clock. */
struct hr_node_clock {
	bool known;
	int64_t offset_ns; /* the node's wall clock minus ours */
	uint64_t error_ns;
};

/* A sign of life of the channel's daemon. */
int hr_ingest_clock(struct hr_channel *ch, const struct hr_node_clock *clock);

/*
 * After it no answer comes for the channel but GONE, when what was queued before has been done with; none after hr_ingest_stop.
 * Accepts NULL.
 */
void hr_ingest_close(struct hr_channel *ch);

/* Hands out what has gathered. `take` may call hr_ingest_close. */
void hr_ingest_answers(struct hr_ingest *in, void (*take)(void *context, const struct hr_answer *a),
		       void *context);

/* Sums since the start, and what is now; any thread. */
#define HR_INGEST_COMMIT_STEPS 8u
extern const double hr_ingest_commit_steps[HR_INGEST_COMMIT_STEPS]; /* seconds, upper bounds */
struct hr_ingest_stats {
	uint64_t frames, bytes; /* that were appended */
	uint64_t repeated;	/* frames that were there already */
	uint64_t acks, nacks;
	uint64_t commits[HR_INGEST_COMMIT_STEPS + 1]; /* of each step, and above the last */
	uint64_t commit_ns;
	uint64_t streams, connected; /* open now, and those of them with a daemon */
	uint64_t silent;    /* streams without a daemon that have not ended, for at most a day */
	uint64_t silent_ms; /* for how long the first of them */
};
void hr_ingest_stats(struct hr_ingest *in, struct hr_ingest_stats *ret);

/* No further calls but _answers, _close, _stopped, _free: what has come is committed, segments are sealed. Returns at once. */
void hr_ingest_stop(struct hr_ingest *in);
bool hr_ingest_stopped(struct hr_ingest *in); /* all is on disk; the last `wake` said so */
void hr_ingest_free(struct hr_ingest *in);    /* stops, and waits for it; accepts NULL */

#endif
