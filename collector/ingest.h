/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - frames of streams go in, acknowledgements come out once they are on disk
 *
 * Purpose   Exactly once: a frame is appended only if it is mark + 1, and acknowledged after a
 *           successful fsync. Uses no sockets, so that tests can drive it.
 * Owner     The server. A channel is a stream that a daemon has opened; its opener closes it.
 * Threads   Store threads of its own; a stream belongs to one of them, by its hash. The functions
 *           here are for one other thread, the loop's, and return at once. Store threads call
 *           `wake`.
 *
 *      loop                                          store thread, in rounds
 *      ----                                          -----------------------
 *      hr_ingest_open, _frame, _clock, _close ---->  takes all items: unpacks, checks, appends
 *      hr_ingest_answers  <---- RELEASED, NACK ----  frees the frames
 *                                                    group commit: fdatasync of each stream that changed, or one syncfs
 *      hr_ingest_answers  <---- OPENED, ACK -------
 *
 * What a channel goes through (the store thread decides, the loop gets answers):
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
	unsigned sync_each; /* fdatasync up to this many changed streams, syncfs for more */
	/* time without a connection after which the segment is sealed */
	uint64_t idle_ms;
	uint64_t state_ms;   /* minimum time between two writes of a stream's `state` */
	uint32_t retry_ms;   /* Nack.retry_ms of a full disk */
	size_t index_bytes;  /* of memory for the index of an open segment */
	size_t unpack_bytes; /* of memory for an unpacked frame */
	size_t max_streams;  /* open streams, because of their descriptors; 0: no limit */
	/* new streams of a user (own_jobs) in 24 hours; 0: no limit */
	uint64_t max_new;
	uint64_t (*real_ns)(void); /* wall clock */
	void (*wake)(void *self);  /* called by any thread when answers are available */
	void *self;
};

/* For a collector of daemons. The caller sets `store`, `wake` and `self`. */
extern const struct hr_ingest_config hr_ingest_defaults;

struct hr_ingest_right {
	bool own_jobs; /* only streams of jobs of user `uid` */
	/* a node, root or the collector's user: its statement about a job's user counts */
	bool node;
	uint32_t uid;
	char peer[HR_STREAM_PEER_BYTES]; /* for `state` and messages */
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
	void *self;	    /* of hr_ingest_open */
	uint64_t mark;	    /* OPENED, ACK, NACK */
	size_t bytes;	    /* RELEASED */
	const char *reason; /* NACK, as in Nack.reason */
	const char *text;   /* NACK, for people */
	uint32_t retry_ms;
	bool closed; /* NACK: the channel is over; the loop must still call hr_ingest_close */
	bool alarm;  /* NACK: an error of the collector, or an attempt to forge: log it */
};

struct hr_ingest;
struct hr_channel;

int hr_ingest_new(const struct hr_ingest_config *config, struct hr_ingest **ret);

/* Begins to open a stream; OPENED or NACK follows. Copies its arguments. -ENOMEM. */
int hr_ingest_open(struct hr_ingest *in, void *self, const Headrace__Open *open,
		   const struct hr_ingest_right *right, struct hr_channel **ret);

/* Takes a frame that hr_frame_check_any has accepted, and frees `buf` (malloc'ed). -ENOMEM. */
int hr_ingest_frame(struct hr_channel *ch, uint8_t *buf, size_t bytes);

/* A node's clock, estimated from round trips. */
struct hr_node_clock {
	bool known;
	int64_t offset_ns; /* the node's wall clock minus ours */
	uint64_t error_ns;
};

/* The channel's daemon has sent something: it is alive. -ENOMEM. */
int hr_ingest_clock(struct hr_channel *ch, const struct hr_node_clock *clock);

/* GONE follows, after the answers to all items queued before. Accepts NULL. */
void hr_ingest_close(struct hr_channel *ch);

/* Passes the available answers to `take`, which may call hr_ingest_close. */
void hr_ingest_answers(struct hr_ingest *in, void (*take)(void *context, const struct hr_answer *a),
		       void *context);

/* Sums since the start, and current values; any thread. */
#define HR_INGEST_COMMIT_STEPS 8u
extern const double hr_ingest_commit_steps[HR_INGEST_COMMIT_STEPS]; /* seconds, upper bounds */
struct hr_ingest_stats {
	uint64_t frames, bytes; /* frames appended */
	uint64_t repeated;	/* frames that the store already had */
	uint64_t acks, nacks;
	uint64_t commits[HR_INGEST_COMMIT_STEPS + 1]; /* of each step, and above the last */
	uint64_t commit_ns;
	uint64_t streams, connected; /* open now; of these, with a daemon */
	uint64_t silent;    /* streams of the last day without a daemon that have not ended */
	uint64_t silent_ms; /* how long the first of these streams has been silent */
};
void hr_ingest_stats(struct hr_ingest *in, struct hr_ingest_stats *ret);

/* Commits, then seals; does not wait. Then call only _answers, _close, _stopped and _free. */
void hr_ingest_stop(struct hr_ingest *in);
/* everything is on disk; the last `wake` reported it */
bool hr_ingest_stopped(struct hr_ingest *in);
void hr_ingest_free(struct hr_ingest *in); /* stops, and waits; accepts NULL */

#endif
