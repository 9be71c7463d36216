/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_internal.h - the inside of ingest
 *
 * ingest.c queues and threads; ingest_open.c permission to open a stream, ingest_limit.c limits per
 * user; ingest_frame.c appending; ingest_commit.c syncs, `state` files, and idle streams;
 * ingest_stats.c counters. All but ingest.c runs in store threads, and a worker uses only its own
 * streams.
 */
#ifndef HEADRACE_COLLECTOR_INGEST_INTERNAL_H
#define HEADRACE_COLLECTOR_INGEST_INTERNAL_H

#include <pthread.h>

#include "common/arena.h"
#include "collector/ingest.h"
#include "store/store.h"

#define HR__BUCKETS 1024u

enum hr__item_kind { HR__ITEM_OPEN, HR__ITEM_FRAME, HR__ITEM_HEARD, HR__ITEM_CLOSE };

struct hr__item {
	struct hr__item *next;
	enum hr__item_kind kind;
	struct hr_channel *channel;
	uint8_t *frame;
	size_t bytes;
	struct hr_node_clock clock;
};

struct hr__answer {
	struct hr__answer *next;
	struct hr_channel *channel;
	struct hr_answer view;
	char *text;
};

/* Owned by the loop until it is queued; then by the store thread, except `detached` and `self`. */
struct hr_channel {
	struct hr_ingest *ingest;
	struct hr__worker *worker;
	void *self;
	bool detached; /* for the loop: hr_ingest_close was called */
	struct hr_ingest_right right;
	Headrace__Open *open;
	struct hr__ingest_stream *stream; /* NULL: opening, or over */
	uint64_t order;			  /* number of its Open in the worker's order */
	struct hr_channel *next_waiting;
	bool waiting;	   /* to be opened again: in worker->waiting */
	bool full_sent;	   /* the peer has a Nack full */
	bool nacked;	   /* frames after mark + 1 are ignored */
	uint64_t last_seq; /* of the last frame that came */
	size_t released;   /* bytes since the last RELEASED */
	bool in_released;
	struct hr_channel *next_released;
	struct hr__item close;	/* its last item and its last answer: */
	struct hr__answer gone; /* allocated ahead: a close must not fail for lack of memory */
};

struct hr__ingest_stream {
	struct hr__ingest_stream *next; /* in its bucket */
	char *cluster, *job, *node, *boot_id;
	struct hr_stream_id id; /* of the texts above */
	struct hr_writer *writer;
	struct hr_channel *owner; /* NULL: no daemon has it open */
	struct hr_stream_state state;
	uint64_t durable; /* all up to here is on disk */
	bool changed;	  /* in worker->changed */
	bool begins;	  /* the store had none of its frames before */
	bool opening;	  /* `owner` waits for OPENED */
	int error;	  /* error of its own part of a commit */
	bool ack_due;
	bool ended;	 /* its last frame is a StreamEnd */
	bool state_late; /* `state` is newer than its file */
	uint64_t state_ms;
	uint64_t idle_since_ms; /* when its owner disconnected */
	struct hr__ingest_stream *next_changed;
};

/* A stream that has not ended and has no daemon. */
struct hr__silent {
	uint64_t key;
	uint64_t since_ms;
};

struct hr__worker {
	struct hr_ingest *ingest;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t there; /* items, or stop */
	struct hr__item *first, **last;
	bool stop;
	struct hr_ingest_stats published; /* as of the last round */
	uint64_t published_silent_ms;	  /* when the first one became silent; 0: none is */
	/* The store thread's own: */
	struct hr__ingest_stream *buckets[HR__BUCKETS];
	size_t n_streams, max_streams;
	struct hr__ingest_stream *changed;
	size_t n_changed;
	struct hr_channel *waiting;
	uint64_t opens;
	struct hr_channel *released;
	struct hr__answer *answers, **answers_last;
	struct hr_arena unpacked; /* of one frame */
	size_t unpacked_bytes;
	uint64_t ticked_ms;
	/* its counters; the other values are computed when they are published */
	struct hr_ingest_stats stats;
	struct hr__silent *silent; /* whose writers are closed */
	size_t n_silent, silent_room;
};

/* How many streams a user has begun in 24 hours, which start with the first of them. */
struct hr__begun {
	uint32_t uid;
	uint64_t n;
	uint64_t since_ms;
};

struct hr_ingest {
	struct hr_ingest_config config;
	char *store;
	int store_fd; /* for syncfs: it reports every error since the descriptor was opened */
	pthread_mutex_t lock; /* of answers and `running` */
	struct hr__answer *answers, **answers_last;
	unsigned running;
	pthread_mutex_t begun_lock;
	struct hr__begun *begun; /* users that have begun any since the collector started */
	size_t n_begun, begun_room;
	struct hr__worker workers[];
};

uint64_t hr__now_ms(void); /* CLOCK_MONOTONIC */

/* ---- ingest.c: answers ------------------------------------------------------------------------- */

void hr__answer(struct hr__worker *w, struct hr_channel *ch, enum hr_answer_kind kind,
		uint64_t mark);

struct hr__nack {
	const char *reason;
	uint64_t mark;
	uint32_t retry_ms;
	bool closed, alarm;
};
__attribute__((format(printf, 4, 5))) void hr__nack(struct hr__worker *w, struct hr_channel *ch,
						    const struct hr__nack *n, const char *format,
						    ...);

/* Passes the worker's answers to the loop. */
void hr__answers_flush(struct hr__worker *w);

/* ---- ingest_limit.c ---------------------------------------------------------------------------- */

/* Whether user `uid` may begin another stream now. */
bool hr__may_begin(struct hr_ingest *in, uint32_t uid);
void hr__has_begun(struct hr_ingest *in, uint32_t uid);

/* ---- ingest_open.c ----------------------------------------------------------------------------- */

void hr__channel_open(struct hr__worker *w, struct hr_channel *ch);
void hr__channel_close(struct hr__worker *w, struct hr_channel *ch);
/* The store cannot take it now (no space or descriptor, another writer): it is tried again. */
void hr__wait_for_room(struct hr__worker *w, struct hr_channel *ch, int error);
void hr__waiting_retry(struct hr__worker *w); /* tries those again that could not be opened */

/* The stream has no daemon now. */
void hr__stream_leave(struct hr__ingest_stream *s);

/* Removes it from the table. `seal`: or abandon its writer. */
void hr__stream_drop(struct hr__worker *w, struct hr__ingest_stream *s, bool seal);

/* ---- ingest_frame.c ---------------------------------------------------------------------------- */

void hr__channel_frame(struct hr__worker *w, struct hr_channel *ch, const uint8_t *frame,
		       size_t bytes);
/* Nack: the channel is over. */
__attribute__((format(printf, 5, 6))) void hr__channel_end(struct hr__worker *w,
							   struct hr_channel *ch,
							   const char *reason, bool alarm,
							   const char *format, ...);

/* ---- ingest_commit.c --------------------------------------------------------------------------- */

void hr__stream_changed(struct hr__worker *w, struct hr__ingest_stream *s);
void hr__commit(struct hr__worker *w);
void hr__tick(struct hr__worker *w);	 /* once a second or so */
void hr__seal_all(struct hr__worker *w); /* at the end */

/* ---- ingest_stats.c ---------------------------------------------------------------------------- */

void hr__stats_commit(struct hr__worker *w, uint64_t ns);
/* Closes the writer of a stream that has not ended; it is opened again when needed. */
void hr__stats_silent(struct hr__worker *w, const struct hr__ingest_stream *s);
void hr__stats_back(struct hr__worker *w, const struct hr__ingest_stream *s);
void hr__stats_log(struct hr__worker *w); /* called regularly */

/* Writes `state`, if the folder has space for it. */
int hr__state_write(struct hr__ingest_stream *s, bool sync);

#endif
