/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool/appender.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/batch.h"

#define COMPRESS_FROM_BYTES 512u /* shorter messages hardly shrink */

struct hr_appender {
	pthread_t thread;
	bool joined;
	pthread_mutex_t lock;
	pthread_cond_t given_some; /* signalled when frames were given to the thread */
	pthread_cond_t done_some;  /* signalled when the thread has stored frames */
	struct hr_out_list inbox;
	uint64_t given, done; /* number of frames and markers given, and done */
	uint64_t progress_seen;
	bool cornered; /* set by the drain thread, which has no free half of the journal */
	bool stop;
	int error;
	uint64_t stored_bytes;
	/* Only the thread uses these fields. After the thread has ended, the caller uses them. */
	struct hr_writer *writer;
	struct hr_batch_pool *pool;
	struct hr_journal *journal;
	struct hr_spool *spool; /* NULL: the store is not a spool */
	struct hr_encoder *encoder;
	Headrace__EventBatch events; /* the batch of events that was encoded last */
	ZSTD_CCtx *zstd;	     /* compresses all frames except events */
	struct hr_out_list kept;     /* frames that are not stored yet */
	uint64_t kept_bytes;
};

/* ---- packing --------------------------------------------------------------------------------- */

/*
 * Encodes and compresses a frame. The frame's message stays valid; a message of events only until
 * the next batch is encoded.
 */
static int pack(struct hr_appender *a, struct hr_out *o)
{
	bool compress = !o->batch && o->arena.bytes >= COMPRESS_FROM_BYTES;
	int r = 0;

	if (o->batch) {
		r = hr_batch_encode(a->encoder, o->batch->events, o->batch->n, o->batch->tasks,
				    o->batch->n_tasks, &a->events);
		o->frame.events = &a->events;
	}
	if (!r) /* the columns of a batch of events are already compressed */
		r = hr_frame_pack_with(&o->frame, compress ? a->zstd : NULL, &o->packed,
				       &o->packed_bytes);
	if (r && o->batch)
		o->frame.events = NULL;
	return r;
}

static void keep_bytes(struct hr_appender *a, struct hr_out *o)
{
	o->frame.events = NULL; /* the messages are a union, so this clears any of them */
	hr_batch_put(a->pool, o->batch);
	o->batch = NULL;
	hr_arena_free(&o->arena);
	a->kept_bytes += o->packed_bytes;
}

/* Packs a frame that is not packed yet, and frees its message and events. */
static int appender_pack(struct hr_appender *a, struct hr_out *o)
{
	int r;

	if (o->packed || o->retire_gen)
		return 0;
	r = pack(a, o);
	if (!r)
		keep_bytes(a, o);
	return r;
}

/* Replaces a frame by a Loss frame with the same number. */
static int replace(struct hr_appender *a, struct hr_out *o)
{
	Headrace__LossRow row = HEADRACE__LOSS_ROW__INIT, *rows[] = {&row};
	Headrace__Loss loss = HEADRACE__LOSS__INIT;
	uint8_t *packed;
	size_t bytes;
	int r;

	row.reason = (char *)hr_loss_name(o->absence.reason);
	row.count = o->absence.count;
	row.bytes = o->absence.bytes;
	loss.n_rows = 1;
	loss.rows = rows;
	o->frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	o->frame.loss = &loss;
	r = hr_frame_pack(&o->frame, 0, &packed, &bytes);
	if (r)
		return r;
	hr_batch_put(a->pool, o->batch);
	o->batch = NULL;
	hr_arena_free(&o->arena);
	a->kept_bytes -= o->packed_bytes;
	free(o->packed);
	o->packed = packed;
	o->packed_bytes = bytes;
	a->kept_bytes += bytes;
	return 0;
}

/* Replaces frames by Loss frames until the kept frames need at most HR_KEPT_BYTES. */
static void appender_give_up(struct hr_appender *a)
{
	static const Headrace__Frame__BodyCase order[] = {
	    HEADRACE__FRAME__BODY_EVENTS,
	    HEADRACE__FRAME__BODY_FILE_RECORDS,
	    HEADRACE__FRAME__BODY_ROLLUPS,
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (struct hr_out *o = a->kept.first; o && a->kept_bytes > HR_KEPT_BYTES;
		     o = o->next)
			if (!o->retire_gen && o->frame.body_case == order[i])
				replace(a, o);
}

/* ---- storing --------------------------------------------------------------------------------- */

static void note_done(struct hr_appender *a, uint64_t n, int error)
{
	pthread_mutex_lock(&a->lock);
	a->done += n;
	__atomic_store_n(&a->error, error, __ATOMIC_RELAXED);
	__atomic_store_n(&a->stored_bytes, hr_writer_bytes(a->writer), __ATOMIC_RELAXED);
	if (a->spool)
		hr_spool_appended(a->spool, hr_writer_mark(a->writer));
	pthread_cond_broadcast(&a->done_some);
	pthread_mutex_unlock(&a->lock);
}

static int appender_make_room(struct hr_appender *a, const struct hr_out *o)
{
	return a->spool ? hr_spool_make_room(a->spool, a->writer, o->packed_bytes) : 0;
}

static int appender_append(struct hr_appender *a, const struct hr_out *o)
{
	int r = appender_make_room(a, o);

	return r ? r : hr_writer_append(a->writer, o->packed, o->packed_bytes);
}

static int appender_store(struct hr_appender *a, struct hr_out *o)
{
	int r;

	if (o->packed)
		return appender_append(a, o);
	r = pack(a, o);
	if (r && r != -ENOMEM) { /* the frame is too large, or headraced has a bug */
		r = replace(a, o);
		return r ? r : appender_append(a, o);
	}
	if (r)
		return r;
	r = appender_make_room(a, o);
	/* The writer also gets the message, so that it need not unpack the frame for its index. */
	if (!r)
		r = hr_writer_append_packed(a->writer, &o->frame, o->packed, o->packed_bytes);
	keep_bytes(a, o);
	return r;
}

/* Appends the kept frames in order, until the store fails. */
static int append_kept(struct hr_appender *a)
{
	uint64_t n = 0;
	int r = 0;

	while (a->kept.first) {
		struct hr_out *o = a->kept.first;

		if (o->retire_gen) {
			if (a->journal)
				hr_journal_retire(a->journal, o->retire_gen);
		} else {
			r = appender_store(a, o);
			if (r && r != -EALREADY)
				break;
			r = 0;
			a->kept_bytes -= o->packed_bytes;
		}
		hr_out_free(hr_out_list_pop(&a->kept), a->pool);
		n++;
	}
	note_done(a, n, r);
	return r;
}

static bool take_cornered(struct hr_appender *a)
{
	bool cornered;

	pthread_mutex_lock(&a->lock);
	cornered = a->cornered;
	a->cornered = false;
	pthread_mutex_unlock(&a->lock);
	return cornered;
}

/*
 * After the store has failed: encodes the waiting frames, which frees their batches. A kill loses
 * nothing until both halves of the journal are full. Then this function retires the older half, so
 * that the drain thread can continue.
 */
static void appender_keep(struct hr_appender *a)
{
	bool cornered = take_cornered(a);

	for (struct hr_out *o = a->kept.first; o; o = o->next) {
		if (o->retire_gen && a->journal && cornered)
			hr_journal_retire(a->journal, o->retire_gen);
		if (appender_pack(a, o))
			replace(a, o);
	}
	appender_give_up(a);
}

/* Waits for frames, at most a second if some are kept. False: the thread must end. */
static bool take_inbox(struct hr_appender *a)
{
	struct timespec until;
	bool go_on;

	pthread_mutex_lock(&a->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	while (!a->inbox.first && !a->stop && !(a->cornered && a->error)) {
		if (!a->kept.first)
			pthread_cond_wait(&a->given_some, &a->lock);
		else if (pthread_cond_timedwait(&a->given_some, &a->lock, &until) == ETIMEDOUT)
			break;
	}
	hr_out_list_join(&a->kept, &a->inbox);
	go_on = !a->stop;
	pthread_mutex_unlock(&a->lock);
	return go_on;
}

static void *appender_run(void *arg)
{
	struct hr_appender *a = arg;
	bool go_on = true;

	while (go_on) {
		go_on = take_inbox(a);
		if (append_kept(a))
			appender_keep(a);
	}
	return NULL;
}

/* ---- functions that other threads call ------------------------------------------------------- */

int hr_appender_new(struct hr_writer *w, struct hr_batch_pool *pool, struct hr_journal *journal,
		    struct hr_spool *spool, struct hr_appender **ret)
{
	struct hr_appender *a = calloc(1, sizeof(*a));
	pthread_condattr_t attr;
	int r;

	if (!a)
		return -ENOMEM;
	r = hr_encoder_new(&a->encoder);
	if (r) {
		free(a);
		return r;
	}
	a->zstd = ZSTD_createCCtx(); /* NULL: frames are not compressed */
	a->writer = w;
	a->pool = pool;
	a->journal = journal;
	a->spool = spool;
	a->stored_bytes = hr_writer_bytes(w);
	hr_out_list_init(&a->inbox);
	hr_out_list_init(&a->kept);
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->given_some, &attr);
	pthread_cond_init(&a->done_some, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&a->thread, NULL, appender_run, a);
	if (r) {
		ZSTD_freeCCtx(a->zstd);
		hr_encoder_free(a->encoder);
		free(a);
		return -r;
	}
	*ret = a;
	return 0;
}

void hr_appender_give(struct hr_appender *a, struct hr_out_list *list)
{
	uint64_t n = 0;

	for (struct hr_out *o = list->first; o; o = o->next)
		n++;
	if (!n)
		return;
	pthread_mutex_lock(&a->lock);
	hr_out_list_join(&a->inbox, list);
	a->given += n;
	pthread_cond_signal(&a->given_some);
	pthread_mutex_unlock(&a->lock);
}

int hr_appender_retire(struct hr_appender *a, uint64_t gen)
{
	struct hr_out *o = hr_out_new();
	struct hr_out_list list;

	if (!o)
		return -ENOMEM;
	o->retire_gen = gen;
	hr_out_list_init(&list);
	hr_out_list_push(&list, o);
	hr_appender_give(a, &list);
	return 0;
}

int hr_appender_wait(struct hr_appender *a)
{
	uint64_t target;
	int r;

	pthread_mutex_lock(&a->lock);
	target = a->given;
	while (a->done < target && !a->error)
		pthread_cond_wait(&a->done_some, &a->lock);
	r = a->done < target ? a->error : 0;
	pthread_mutex_unlock(&a->lock);
	return r;
}

void hr_appender_make_room(struct hr_appender *a)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 20000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&a->lock);
	a->cornered = true;
	pthread_cond_signal(&a->given_some);
	if (a->progress_seen == a->done)
		pthread_cond_timedwait(&a->done_some, &a->lock, &until);
	a->progress_seen = a->done;
	a->cornered = false;
	pthread_mutex_unlock(&a->lock);
}

int hr_appender_error(const struct hr_appender *a)
{
	return __atomic_load_n(&a->error, __ATOMIC_RELAXED);
}

uint64_t hr_appender_stored_bytes(const struct hr_appender *a)
{
	return __atomic_load_n(&a->stored_bytes, __ATOMIC_RELAXED);
}

int hr_appender_stop(struct hr_appender *a)
{
	if (!a->joined) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->given_some);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
		a->joined = true;
	}
	return a->kept.first ? a->error : 0;
}

int hr_appender_free(struct hr_appender *a)
{
	struct hr_out *o;
	int r;

	if (!a)
		return 0;
	r = hr_appender_stop(a);
	while ((o = hr_out_list_pop(&a->kept)))
		hr_out_free(o, a->pool);
	ZSTD_freeCCtx(a->zstd);
	hr_encoder_free(a->encoder);
	pthread_cond_destroy(&a->given_some);
	pthread_cond_destroy(&a->done_some);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return r;
}

/*
 * ---- the end of a stream on a full disk ----
 *
 * Stores the frames that fit, and the number of lost operations. No journal will be replayed again,
 * so frames may get new numbers. Names are first, then sums, then events, because totals are more
 * useful than events and need less room.
 */

enum turn { NAMES, SUMS, EVENTS, ENDINGS };

static enum turn turn_of(const struct hr_out *o)
{
	switch (o->frame.body_case) {
	case HEADRACE__FRAME__BODY_PROCESSES:
	case HEADRACE__FRAME__BODY_PATHS:
		return NAMES;
	case HEADRACE__FRAME__BODY_EVENTS:
		return EVENTS;
	case HEADRACE__FRAME__BODY_JOB:
	case HEADRACE__FRAME__BODY_LEVELS:
	case HEADRACE__FRAME__BODY_STREAM_END:
		return ENDINGS;
	default:
		return SUMS;
	}
}

static int renumber(struct hr_out *o, uint64_t seq)
{
	Headrace__Frame *msg;
	uint8_t *packed;
	size_t bytes;
	int r;

	if (o->frame.seq == seq)
		return 0;
	r = hr_frame_unpack(o->packed, o->packed_bytes, &msg);
	if (r)
		return r;
	msg->seq = seq;
	/* The columns of a batch of events are already compressed. */
	r = hr_frame_pack(msg, msg->body_case != HEADRACE__FRAME__BODY_EVENTS, &packed, &bytes);
	headrace__frame__free_unpacked(msg, NULL);
	if (r)
		return r;
	free(o->packed);
	o->packed = packed;
	o->packed_bytes = bytes;
	o->frame.seq = seq;
	return 0;
}

static int end_store(struct hr_appender *a, struct hr_out *o, bool ending)
{
	int r = appender_pack(a, o);

	if (!r)
		r = renumber(o, hr_writer_mark(a->writer) + 1);
	if (r)
		return r;
	return ending ? hr_writer_append_last(a->writer, o->packed, o->packed_bytes)
		      : appender_append(a, o);
}

/*
 * Adds the rows of a Loss frame that did not fit to the sums in `lost`: one row per reason, because
 * these few rows fit.
 */
static void take_losses(struct hr_losses *lost, const struct hr_out *o)
{
	Headrace__Frame *msg;

	if (o->frame.body_case != HEADRACE__FRAME__BODY_LOSS || !o->packed ||
	    hr_frame_unpack(o->packed, o->packed_bytes, &msg))
		return;
	for (size_t i = 0; i < msg->loss->n_rows; i++) {
		const Headrace__LossRow *row = msg->loss->rows[i];
		int reason = hr_loss_by_name(row->reason);

		if (reason >= 0)
			hr_losses_add(lost, &(struct hr_loss){.reason = (uint32_t)reason,
							      .count = row->count,
							      .bytes = row->bytes,
							      .dur_ns = row->dur_ns});
	}
	headrace__frame__free_unpacked(msg, NULL);
}

static int store_losses(struct hr_appender *a, const struct hr_losses *lost)
{
	Headrace__LossRow rows[HR_LOSS_REASONS], *pointers[HR_LOSS_REASONS];
	Headrace__Loss loss = HEADRACE__LOSS__INIT;
	struct hr_out o = {.frame = HEADRACE__FRAME__INIT};
	int r;

	for (uint32_t i = 0; i < lost->n; i++) {
		pointers[i] = &rows[i];
		headrace__loss_row__init(&rows[i]);
		rows[i].reason = (char *)hr_loss_name(lost->v[i].reason);
		rows[i].count = lost->v[i].count;
		rows[i].bytes = lost->v[i].bytes;
		rows[i].dur_ns = lost->v[i].dur_ns;
	}
	loss.n_rows = lost->n;
	loss.rows = pointers;
	o.frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	o.frame.loss = &loss;
	o.frame.seq = hr_writer_mark(a->writer) + 1;
	r = end_store(a, &o, true);
	free(o.packed);
	return r;
}

/* Stores the frames of one turn. If a frame does not fit, adds what it contains to `lost`. */
static void end_take_turn(struct hr_appender *a, enum turn turn, struct hr_losses *lost)
{
	for (struct hr_out *o = a->kept.first; o; o = o->next) {
		if (o->retire_gen || turn_of(o) != turn || end_store(a, o, turn == ENDINGS) == 0)
			continue;
		if (o->absence.count)
			hr_losses_add(lost, &o->absence);
		else
			take_losses(lost, o);
	}
}

void hr_appender_settle(struct hr_appender *a, struct hr_given_up *ret)
{
	struct hr_losses lost = {0};
	struct hr_out *o;

	for (enum turn turn = NAMES; turn <= EVENTS; turn++)
		end_take_turn(a, turn, &lost);
	*ret = (struct hr_given_up){.reported = true};
	for (uint32_t i = 0; i < lost.n; i++) {
		if (lost.v[i].reason != HR_LOSS_STORE_FULL)
			continue;
		ret->count = lost.v[i].count;
		ret->bytes = lost.v[i].bytes;
	}
	if (lost.n)
		ret->reported = store_losses(a, &lost) == 0;
	end_take_turn(a, ENDINGS, &lost);
	hr_losses_done(&lost);
	while ((o = hr_out_list_pop(&a->kept)))
		hr_out_free(o, a->pool);
}
