/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - stores frames of streams, and acknowledges them once they are on disk or in ClickHouse
 *
 * Purpose   Stores each frame exactly once. The mark of a stream is the number of its last stored
 *           frame; a frame is appended only if its number is mark + 1. It is acknowledged after a
 *           successful fsync. Ingest uses no sockets, so that tests can drive it.
 * Owner     The server. A channel is a stream that a daemon has opened. The caller of
 *           hr_ingest_open also closes the channel.
 * Threads   Ingest starts store threads. A hash of the names of a stream selects its store thread.
 *           One other thread, that of the event loop, calls these functions, which return at once.
 *
 *      loop                                          store thread, in rounds
 *      ----                                          -----------------------
 *      hr_ingest_open, _frame, _clock, _close ---->  takes all items: unpacks, checks, appends
 *      hr_ingest_answers  <---- RELEASED, NACK ----  frees the frames
 *                                                    group commit: fdatasync of each stream that changed, or one syncfs
 *      hr_ingest_answers  <---- OPENED, ACK -------
 *
 * States of a channel (the store thread changes the state, the event loop receives answers):
 *
 *      opening --OPENED--> open --NACK closed--> over
 *         +------NACK closed-------------------^     (denied, limit, in_use, malformed, behind, version, error)
 *      open --NACK full, gap--> open: frames after mark + 1 are ignored until mark + 1 comes
 *      opening --NACK full--> opening: the store is full; OPENED follows later
 */
#ifndef HEADRACE_COLLECTOR_INGEST_H
#define HEADRACE_COLLECTOR_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/stream_state.h"
#include "proto/wire.pb-c.h"

struct hr_ch_target;

struct hr_ingest_config {
	const char *store;
	/* Keep frames there instead of in the folder `store`. NULL: in the folder. */
	const struct hr_ch_target *clickhouse;
	unsigned threads;
	/* up to so many changed streams are synced by fdatasync each; more, by one syncfs */
	unsigned sync_each;
	/* after this time without a connection, the last segment of a stream is sealed */
	uint64_t idle_ms;
	uint64_t state_ms;   /* smallest time between two writes of the file `state` of a stream */
	uint32_t retry_ms;   /* first value of Nack.retry_ms if frames cannot be stored */
	size_t index_bytes;  /* memory limit for the index of an open segment */
	size_t unpack_bytes; /* memory limit for an unpacked frame */
	/* limit of open streams, because each needs descriptors; 0: no limit */
	size_t max_streams;
	/* limit of new streams of a user (`own_jobs`) in 24 hours; 0: no limit */
	uint64_t max_new;
	uint64_t (*real_ns)(void); /* wall clock */
	void (*wake)(void *self);  /* any thread calls this when answers are available */
	void *self;
};

/* Default values of a collector. The caller sets `store`, `wake` and `self`. */
extern const struct hr_ingest_config hr_ingest_defaults;

struct hr_ingest_right {
	bool own_jobs; /* the peer may open only streams of jobs of the user `uid` */
	/* the peer is a node, root or the collector's user, and decides which user owns a job */
	bool node;
	uint32_t uid;
	char peer[HR_STREAM_PEER_BYTES]; /* name of the peer, for `state` and messages */
};

enum hr_answer_kind {
	HR_ANSWER_RELEASED, /* `bytes`: size of frames that were freed */
	HR_ANSWER_OPENED,
	HR_ANSWER_ACK,
	HR_ANSWER_NACK,
	/* the last answer after hr_ingest_close, after which ingest does not use the channel */
	HR_ANSWER_GONE,
};

struct hr_answer {
	enum hr_answer_kind kind;
	void *self;	    /* argument of hr_ingest_open */
	uint64_t mark;	    /* OPENED, ACK, NACK: number of the last stored frame */
	size_t bytes;	    /* RELEASED: bytes of the frames */
	const char *reason; /* NACK: see Nack.reason */
	const char *text;   /* NACK: text for people */
	uint32_t retry_ms;
	bool closed; /* NACK: the channel has ended, but needs a call of hr_ingest_close */
	/* NACK: log it, because the collector has an error, or the peer may be an attacker */
	bool alarm;
};

struct hr_ingest;
struct hr_channel;

int hr_ingest_new(const struct hr_ingest_config *config, struct hr_ingest **ret);

/* Begins to open a stream; OPENED or NACK follows. Copies the arguments. Returns 0 or -ENOMEM. */
int hr_ingest_open(struct hr_ingest *in, void *self, const Headrace__Open *open,
		   const struct hr_ingest_right *right, struct hr_channel **ret);

/* Queues a frame that hr_frame_check_any accepted. Frees `buf`. Returns 0 or -ENOMEM. */
int hr_ingest_frame(struct hr_channel *ch, uint8_t *buf, size_t bytes);

struct hr_node_clock {
	bool known;
	int64_t offset_ns; /* wall clock of the node minus that of the collector */
	uint64_t error_ns;
};

/* Call it when the daemon of the channel has sent any message. Returns 0 or -ENOMEM. */
int hr_ingest_clock(struct hr_channel *ch, const struct hr_node_clock *clock);

/* Closes a channel. GONE follows, after all other answers of the channel. Accepts NULL. */
void hr_ingest_close(struct hr_channel *ch);

/* Passes the available answers to `take`, which may call hr_ingest_close. */
void hr_ingest_answers(struct hr_ingest *in, void (*take)(const struct hr_answer *a));

/* Totals since the start, and current values. Any thread may call hr_ingest_stats. */
#define HR_INGEST_COMMIT_STEPS 8u
/* longest duration of each step, in seconds */
extern const double hr_ingest_commit_steps[HR_INGEST_COMMIT_STEPS];
struct hr_ingest_stats {
	uint64_t frames, bytes;
	uint64_t repeated; /* frames that the store already had */
	uint64_t acks, nacks;
	/* commits by duration; the last entry counts those longer than all steps */
	uint64_t commits[HR_INGEST_COMMIT_STEPS + 1];
	uint64_t commit_ns;
	uint64_t streams, connected; /* open streams; open streams with a connected daemon */
	uint64_t silent;    /* streams without a daemon and without an end, for at most a day */
	uint64_t silent_ms; /* time since the first of these streams lost its daemon */
};
void hr_ingest_stats(struct hr_ingest *in, struct hr_ingest_stats *ret);

/*
 * Makes the store threads commit, seal all segments and end. Returns at once. After this, call only
 * hr_ingest_answers, _close, _stopped and _free.
 */
void hr_ingest_stop(struct hr_ingest *in);
/* Returns whether the threads have stored everything. They call `wake` when they have. */
bool hr_ingest_stopped(struct hr_ingest *in);
void hr_ingest_free(struct hr_ingest *in); /* waits for the threads; accepts NULL */

#endif
