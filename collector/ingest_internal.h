/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_internal.h - shared by ingest.c (queues, threads) and the code of store threads
 *
 *      ingest.c -> ingest_open.c, ingest_frame.c -> backend -> ingest_stream.c -> ingest_stats.c
 *
 * A backend stores frames: backend_folder.c in the folder of a store, backend_clickhouse.c in
 * ClickHouse. Calls go to the right only.
 */
#ifndef HEADRACE_COLLECTOR_INGEST_INTERNAL_H
#define HEADRACE_COLLECTOR_INGEST_INTERNAL_H

#include <pthread.h>
#include <string.h>

#include "collector/ingest.h"
#include "common/arena.h"
#include "common/fnv.h"
#include "common/now.h"
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

/* When its Open is queued, the channel belongs to a store thread, except `detached` and `self`. */
struct hr_channel {
	struct hr_ingest *ingest;
	struct hr__worker *worker;
	void *self;
	bool detached; /* the loop has called hr_ingest_close */
	struct hr_ingest_right right;
	Headrace__Open *open;
	/* NULL: the stream is not open yet, or the channel has ended */
	struct hr__ingest_stream *stream;
	/* counts Opens: of two channels, the one with the higher number is newer */
	uint64_t order;
	struct hr_channel *next_waiting;
	/* is in the list worker->waiting, to be opened later */
	bool waiting;
	bool full_sent;	   /* the peer has received a Nack with reason `full` */
	bool nacked;	   /* after a Nack: only the frame mark + 1 is accepted */
	uint64_t last_seq; /* number of the last received frame */
	size_t released;   /* bytes of freed frames since the last RELEASED */
	bool in_released;
	struct hr_channel *next_released;
	/* members, because a close must not fail if memory is short */
	struct hr__item close;
	struct hr__answer gone;
};

struct hr__ingest_stream {
	struct hr__ingest_stream *next;
	char *cluster, *job, *node, *boot_id;
	struct hr_stream_id id; /* its texts are the members above */
	union {			/* the backend's */
		struct hr_writer *writer;
		struct hr_ch_sink_stream *ch;
	};
	struct hr_channel *owner; /* NULL: no daemon has opened the stream */
	struct hr_stream_state state;
	/* The backend finds out who owns the stream and which frames are stored when it commits. */
	bool unknown;
	uint64_t mark;	  /* number of the last frame that the backend has taken */
	uint64_t durable; /* number of the last frame that is stored safely */
	bool changed;	  /* is in the list worker->changed */
	bool begins;	  /* the stream is new in the store */
	bool opening;	  /* OPENED must be sent to `owner` */
	int error;	  /* error of the current commit */
	bool ack_due;
	bool ended;	 /* the last frame is a StreamEnd */
	bool state_late; /* the file `state` is older than the member `state` */
	uint64_t state_ms;
	uint64_t idle_since_ms; /* when the owner disconnected */
	struct hr__ingest_stream *next_changed;
};

struct hr__worker;

/* The functions of a backend. Only store threads call them. NULL members do nothing. */
struct hr__backend {
	int (*start)(struct hr__worker *w); /* before the thread; 0 or -errno, logged */
	void (*end)(struct hr__worker *w);  /* after the thread */
	/*
	 * Prepares a new stream, and sets `mark` or `unknown`. Returns 0; -ECANCELED after a Nack;
	 * -EBADMSG: the file `state` is damaged; -EINVAL, -ENAMETOOLONG: the names are not valid;
	 * other errors: try again later.
	 */
	int (*load)(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s);
	void (*unload)(struct hr__ingest_stream *s, bool seal);
	/*
	 * For a store that other collectors write to: a daemon opens the stream again, and may have
	 * been at another collector since. Stores what was taken from the stream, and makes it
	 * unchanged. Then the stream is dropped and loaded again. NULL: no other process writes.
	 */
	void (*forget)(struct hr__worker *w, struct hr__ingest_stream *s);
	int (*skip)(struct hr__ingest_stream *s, uint64_t mark); /* see hr_writer_skip */
	/*
	 * Takes a frame, and sets `mark`. -EALREADY: it is stored; -ERANGE: a gap; other errors: it
	 * cannot be stored now.
	 */
	int (*append)(struct hr__worker *w, struct hr__ingest_stream *s, Headrace__Frame *msg,
		      const uint8_t *frame, size_t bytes);
	/* Stores what was taken from the streams of worker->changed, and answers their daemons. */
	void (*commit)(struct hr__worker *w);
	int (*write_state)(struct hr__ingest_stream *s, bool sync);
	const char *(*where)(const struct hr__ingest_stream *s); /* for messages */
};
extern const struct hr__backend hr__backend_folder, hr__backend_clickhouse;

struct hr__silent {
	uint64_t key;
	uint64_t since_ms;
};

struct hr__worker {
	struct hr_ingest *ingest;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t there; /* signaled for new items and for `stop` */
	struct hr__item *first, **last;
	bool stop;
	struct hr_ingest_stats published; /* values that other threads may read */
	/* when the first of the silent streams lost its daemon; 0: no stream is silent */
	uint64_t published_silent_ms;
	/* Only the store thread uses the following members. */
	struct hr__ingest_stream *buckets[HR__BUCKETS];
	size_t n_streams, max_streams;
	struct hr__ingest_stream *changed;
	size_t n_changed;
	struct hr_channel *waiting;
	uint64_t opens;
	struct hr_channel *released;
	struct hr__answer *answers, **answers_last;
	struct hr_arena unpacked; /* memory of the unpacked frame */
	size_t unpacked_bytes;
	uint64_t ticked_ms;
	/* current counters; hr__stats_log() publishes them */
	struct hr_ingest_stats stats;
	struct hr__silent *silent; /* silent streams that are closed */
	size_t n_silent, silent_room;
	struct hr__ch_worker *ch; /* of backend_clickhouse.c */
	uint32_t retry_ms;	  /* value of Nack.retry_ms if frames cannot be stored now */
};

/* How many new streams a user has begun in the 24 hours after since_ms. */
struct hr__begun {
	uint32_t uid;
	uint64_t n;
	uint64_t since_ms;
};

struct hr_ingest {
	struct hr_ingest_config config;
	const struct hr__backend *backend;
	char *store;
	int store_fd;	      /* opened early, because syncfs reports only errors after the open */
	pthread_mutex_t lock; /* protects the answers and `running` */
	struct hr__answer *answers, **answers_last;
	unsigned running;
	pthread_mutex_t begun_lock;
	struct hr__begun *begun; /* one entry per user */
	size_t n_begun, begun_room;
	struct hr__worker workers[];
};

static inline uint64_t hr__now_ms(void)
{
	return hr_now_ms(CLOCK_MONOTONIC);
}

static inline uint64_t hr__stream_hash(const char *job, const char *node, uint64_t instance)
{
	uint64_t h = hr_fnv(HR_FNV_BASIS, job, strlen(job) + 1);

	h = hr_fnv(h, node, strlen(node) + 1);
	return hr_fnv(h, &instance, sizeof(instance));
}

/* ---- ingest_stream.c ---- */
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

void hr__answers_flush(struct hr__worker *w);

/* Returns the index in worker->buckets. */
unsigned hr__stream_bucket(const char *job, const char *node, uint64_t instance, uint32_t attempt);
void hr__ingest_stream_free(struct hr__ingest_stream *s);
void hr__stream_changed(struct hr__worker *w, struct hr__ingest_stream *s);
void hr__stream_leave(struct hr__worker *w, struct hr__ingest_stream *s);
/* Frees a stream. `seal`: first closes its writer, which seals the segment. */
void hr__stream_drop(struct hr__worker *w, struct hr__ingest_stream *s, bool seal);
/* Makes the backend write the state of the stream. After a failure, a later tick tries again. */
void hr__state_write(struct hr__worker *w, struct hr__ingest_stream *s);
/* Sends a Nack that ends the channel. */
__attribute__((format(printf, 5, 6))) void hr__channel_end(struct hr__worker *w,
							   struct hr_channel *ch,
							   const char *reason, bool alarm,
							   const char *format, ...);
void hr__has_begun(struct hr_ingest *in, uint32_t uid); /* the user has begun a stream */
/*
 * Checks that the frames of the daemon continue those of the store, without a gap. A gap is allowed
 * if another collector has acknowledged the frames. Returns 0, or -ECANCELED after a Nack.
 */
int hr__stream_join(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s);
/* Sends a Nack and returns true unless the peer may continue a stream with this state. */
bool hr__stream_denied(struct hr__worker *w, struct hr_channel *ch,
		       const struct hr_stream_state *state);
void hr__job_denied(struct hr__worker *w, struct hr_channel *ch); /* it is another user's */
/* Sends a Nack and returns false if the user has begun too many streams. */
bool hr__stream_may_begin(struct hr__worker *w, struct hr_channel *ch);
/* Call it if the stream cannot be opened now. Sends a Nack; later ticks try again. */
void hr__wait_for_room(struct hr__worker *w, struct hr_channel *ch, const char *why);
/* Sends OPENED, if the owner waits for it. */
void hr__opened(struct hr__worker *w, struct hr__ingest_stream *s);
/* Call it after the frames up to `mark` were stored: sends OPENED or ACK. */
void hr__committed(struct hr__worker *w, struct hr__ingest_stream *s);
/*
 * Call it if frames after `durable` were not stored: sends a Nack, so the daemon repeats them.
 * `alarm`: the caller has not logged the reason.
 */
__attribute__((format(printf, 4, 5))) void hr__commit_failed(struct hr__worker *w,
							     struct hr__ingest_stream *s,
							     bool alarm, const char *format, ...);

/* ---- ingest_open.c ---- */
void hr__channel_open(struct hr__worker *w, struct hr_channel *ch);
void hr__channel_close(struct hr__worker *w, struct hr_channel *ch);
void hr__waiting_retry(struct hr__worker *w);

/* ---- ingest_frame.c ---- */
void hr__channel_frame(struct hr__worker *w, struct hr_channel *ch, const uint8_t *frame,
		       size_t bytes);

/* ---- ingest_stats.c ---- */
void hr__stats_commit(struct hr__worker *w, uint64_t ns);
/*
 * Call _silent before the writer of a stream is closed: without an end and a daemon, the stream
 * counts as silent. Call _back when a daemon opens the stream.
 */
void hr__stats_silent(struct hr__worker *w, const struct hr__ingest_stream *s);
void hr__stats_back(struct hr__worker *w, const struct hr__ingest_stream *s);
void hr__stats_log(struct hr__worker *w);

#endif
