/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 500u

static uint64_t real_ns(void)
{
	return hr_now_ns(CLOCK_REALTIME);
}

const struct hr_ingest_config hr_ingest_defaults = {
    .threads = 2,
    .sync_each = 8,
    .idle_ms = 60000,
    .state_ms = 10000,
    .retry_ms = 1000,
    .index_bytes = 16u << 20,
    .unpack_bytes = 256u << 20,
    .real_ns = real_ns,
};

/* ---- answers ---- */

static void channel_free(struct hr_channel *ch)
{
	if (ch->open)
		headrace__open__free_unpacked(ch->open, NULL);
	free(ch);
}

void hr_ingest_answers(struct hr_ingest *in, void (*take)(const struct hr_answer *a))
{
	struct hr__answer *a, *next;

	pthread_mutex_lock(&in->lock);
	a = in->answers;
	in->answers = NULL;
	in->answers_last = &in->answers;
	pthread_mutex_unlock(&in->lock);
	for (; a; a = next) {
		bool gone = a->view.kind == HR_ANSWER_GONE;

		next = a->next;
		a->view.self = a->channel->self;
		if (gone || !a->channel->detached)
			take(&a->view);
		if (gone) { /* `a` is a member of the channel */
			channel_free(a->channel);
			continue;
		}
		free(a->text);
		free(a);
	}
}

/* ---- store threads ---- */

static void item_free(struct hr__item *item)
{
	if (item->kind == HR__ITEM_CLOSE) /* the item is a member of the channel */
		return;
	free(item->frame);
	free(item);
}

static void note_received(struct hr__ingest_stream *s, const struct hr__item *item, uint64_t now_ns)
{
	s->state.heard_ns = now_ns;
	if (item->clock.known) {
		s->state.clock_known = true;
		s->state.clock_offset_ns = item->clock.offset_ns;
		s->state.clock_error_ns = item->clock.error_ns;
	}
	s->state_late = true;
}

static void ingest_release(struct hr__worker *w, struct hr_channel *ch, size_t bytes)
{
	ch->released += bytes;
	if (ch->in_released)
		return;
	ch->in_released = true;
	ch->next_released = w->released;
	w->released = ch;
}

static void work_on(struct hr__worker *w, struct hr__item *item)
{
	struct hr_channel *ch = item->channel;

	switch (item->kind) {
	case HR__ITEM_OPEN:
		hr__channel_open(w, ch);
		break;
	case HR__ITEM_FRAME:
		if (ch->stream)
			hr__channel_frame(w, ch, item->frame, item->bytes);
		ingest_release(w, ch, item->bytes);
		break;
	case HR__ITEM_HEARD:
		if (ch->stream)
			note_received(ch->stream, item, w->ingest->config.real_ns());
		break;
	case HR__ITEM_CLOSE:
		hr__channel_close(w, ch);
		break;
	}
}

/* Queues GONE, after all other answers of the channel. */
static void put_gone(struct hr__worker *w, struct hr_channel *ch)
{
	ch->gone = (struct hr__answer){.channel = ch, .view.kind = HR_ANSWER_GONE};
	*w->answers_last = &ch->gone;
	w->answers_last = &ch->gone.next;
}

static void round_of(struct hr__worker *w, struct hr__item *items)
{
	struct hr__item *next, *closed = NULL;

	for (struct hr__item *i = items; i; i = next) {
		next = i->next;
		work_on(w, i);
		if (i->kind == HR__ITEM_CLOSE) {
			i->next = closed;
			closed = i;
		}
		item_free(i);
	}
	hr__answers_flush(w);
	w->ingest->backend->commit(w);
	for (struct hr__item *i = closed; i; i = next) {
		next = i->next;
		put_gone(w, i->channel);
	}
	hr__answers_flush(w);
}

/* Waits for items or the next tick, and returns the items. *ret_stop: the thread must end. */
static struct hr__item *take_items(struct hr__worker *w, bool *ret_stop)
{
	struct hr__item *items;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)TICK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->stop) {
		if (w->n_streams == 0 && !w->waiting)
			pthread_cond_wait(&w->there, &w->lock);
		else if (pthread_cond_timedwait(&w->there, &w->lock, &until) == ETIMEDOUT)
			break;
	}
	items = w->first;
	w->first = NULL;
	w->last = &w->first;
	*ret_stop = w->stop && !items;
	pthread_mutex_unlock(&w->lock);
	return items;
}

/* ---- ticks ---- */

static void tick_stream(struct hr__worker *w, struct hr__ingest_stream *s, uint64_t now_ms)
{
	const struct hr_ingest_config *c = &w->ingest->config;

	if (s->state_late && now_ms - s->state_ms >= c->state_ms)
		hr__state_write(w, s);
	/* A stream that has ended is closed earlier. */
	if (!s->owner && !s->changed &&
	    now_ms - s->idle_since_ms >= (s->ended ? c->idle_ms / 60 : c->idle_ms))
		hr__stream_drop(w, s, true);
}

static void tick(struct hr__worker *w)
{
	uint64_t now_ms = hr__now_ms();

	for (unsigned b = 0; b < HR__BUCKETS; b++) {
		struct hr__ingest_stream *next;

		for (struct hr__ingest_stream *s = w->buckets[b]; s; s = next) {
			next = s->next;
			tick_stream(w, s, now_ms);
		}
	}
	if (!w->waiting)
		return;
	hr__waiting_retry(w);
	w->ingest->backend->commit(w);
	hr__answers_flush(w);
}

static void seal_all(struct hr__worker *w)
{
	w->ingest->backend->commit(w);
	for (unsigned b = 0; b < HR__BUCKETS; b++) {
		while (w->buckets[b]) {
			struct hr__ingest_stream *s = w->buckets[b];

			s->state.connected = false;
			hr__state_write(w, s);
			hr__stream_drop(w, s, true);
		}
	}
}

/* ---- store threads ---- */

static void *store_thread(void *self)
{
	struct hr__worker *w = self;
	struct hr_ingest *in = w->ingest;
	bool stop, due;

	for (;;) {
		struct hr__item *items = take_items(w, &stop);

		if (stop)
			break;
		round_of(w, items);
		due = hr__now_ms() - w->ticked_ms >= TICK_MS;
		if (due) {
			tick(w);
			w->ticked_ms = hr__now_ms();
		}
		/* because a thread without streams does not wait for ticks */
		if (due || w->n_streams == 0)
			hr__stats_log(w);
	}
	seal_all(w);
	hr__answers_flush(w);
	pthread_mutex_lock(&in->lock);
	in->running--;
	pthread_mutex_unlock(&in->lock);
	in->config.wake(in->config.self);
	return NULL;
}

/* ---- the loop's side ---- */

static void queue_item(struct hr_channel *ch, struct hr__item *item)
{
	struct hr__worker *w = ch->worker;

	pthread_mutex_lock(&w->lock);
	*w->last = item;
	w->last = &item->next;
	pthread_cond_signal(&w->there);
	pthread_mutex_unlock(&w->lock);
}

static int push(struct hr_channel *ch, const struct hr__item *filled)
{
	struct hr__item *item = malloc(sizeof(*item));

	if (!item)
		return -ENOMEM;
	*item = *filled;
	item->channel = ch;
	queue_item(ch, item);
	return 0;
}

int hr_ingest_open(struct hr_ingest *in, void *self, const Headrace__Open *open,
		   const struct hr_ingest_right *right, struct hr_channel **ret)
{
	struct hr_channel *ch = calloc(1, sizeof(*ch));
	int r = -ENOMEM;

	if (!ch)
		return -ENOMEM;
	ch->ingest = in;
	ch->worker = &in->workers[hr__stream_hash(open->job, open->node, open->instance) %
				  in->config.threads];
	ch->self = self;
	ch->right = *right;
	ch->open = hr_message_copy(&open->base);
	if (ch->open)
		r = push(ch, &(struct hr__item){.kind = HR__ITEM_OPEN});
	if (r < 0)
		channel_free(ch);
	else
		*ret = ch;
	return r;
}

int hr_ingest_frame(struct hr_channel *ch, uint8_t *buf, size_t bytes)
{
	int r = push(ch, &(struct hr__item){.kind = HR__ITEM_FRAME, .frame = buf, .bytes = bytes});

	if (r < 0)
		free(buf);
	return r;
}

int hr_ingest_clock(struct hr_channel *ch, const struct hr_node_clock *clock)
{
	return push(ch, &(struct hr__item){.kind = HR__ITEM_HEARD, .clock = *clock});
}

void hr_ingest_close(struct hr_channel *ch)
{
	if (!ch)
		return;
	ch->detached = true;
	ch->close = (struct hr__item){.kind = HR__ITEM_CLOSE, .channel = ch};
	queue_item(ch, &ch->close);
}

/* ---- beginning and end ---- */

static int start_worker(struct hr_ingest *in, struct hr__worker *w)
{
	pthread_condattr_t attr;
	int r = 0;

	w->ingest = in;
	w->retry_ms = in->config.retry_ms;
	w->max_streams = in->config.max_streams / in->config.threads;
	w->last = &w->first;
	w->answers_last = &w->answers;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->there, &attr);
	pthread_condattr_destroy(&attr);
	if (in->backend->start)
		r = in->backend->start(w);
	if (r < 0)
		return r;
	pthread_mutex_lock(&in->lock);
	in->running++;
	pthread_mutex_unlock(&in->lock);
	r = -pthread_create(&w->thread, NULL, store_thread, w);
	w->started = r == 0;
	if (r < 0) {
		pthread_mutex_lock(&in->lock);
		in->running--;
		pthread_mutex_unlock(&in->lock);
	}
	return r;
}

static int open_store(struct hr_ingest *in)
{
	in->store = strdup(in->config.store);
	if (!in->store)
		return -ENOMEM;
	in->store_fd = open(in->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return in->store_fd < 0 ? -errno : 0;
}

int hr_ingest_new(const struct hr_ingest_config *config, struct hr_ingest **ret)
{
	unsigned threads = config->threads ? config->threads : 1;
	struct hr_ingest *in = calloc(1, sizeof(*in) + threads * sizeof(in->workers[0]));
	int r = 0;

	if (!in)
		return -ENOMEM;
	in->config = *config;
	in->backend = config->clickhouse ? &hr__backend_clickhouse : &hr__backend_folder;
	in->config.threads = threads;
	in->answers_last = &in->answers;
	pthread_mutex_init(&in->lock, NULL);
	pthread_mutex_init(&in->begun_lock, NULL);
	in->store_fd = -1;
	if (!config->clickhouse)
		r = open_store(in);
	for (unsigned i = 0; i < threads && r == 0; i++)
		r = start_worker(in, &in->workers[i]);
	if (r < 0)
		hr_ingest_free(in);
	else
		*ret = in;
	return r;
}

void hr_ingest_stop(struct hr_ingest *in)
{
	for (unsigned i = 0; i < in->config.threads; i++) {
		struct hr__worker *w = &in->workers[i];

		if (!w->started)
			continue;
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->there);
		pthread_mutex_unlock(&w->lock);
	}
}

bool hr_ingest_stopped(struct hr_ingest *in)
{
	bool stopped;

	pthread_mutex_lock(&in->lock);
	stopped = in->running == 0;
	pthread_mutex_unlock(&in->lock);
	return stopped;
}

static void drop_answer(const struct hr_answer *a)
{
	(void)a;
}

/* Frees items that were queued after the thread had ended. */
static void worker_done(struct hr__worker *w)
{
	struct hr__item *next;

	for (struct hr__item *i = w->first; i; i = next) {
		next = i->next;
		if (i->kind == HR__ITEM_CLOSE)
			channel_free(i->channel);
		else
			item_free(i);
	}
	if (w->ingest->backend->end)
		w->ingest->backend->end(w);
	free(w->silent);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->there);
}

void hr_ingest_free(struct hr_ingest *in)
{
	if (!in)
		return;
	hr_ingest_stop(in);
	for (unsigned i = 0; i < in->config.threads; i++)
		if (in->workers[i].started)
			pthread_join(in->workers[i].thread, NULL);
	hr_ingest_answers(in, drop_answer);
	for (unsigned i = 0; i < in->config.threads; i++)
		if (in->workers[i].started)
			worker_done(&in->workers[i]);
	pthread_mutex_destroy(&in->lock);
	pthread_mutex_destroy(&in->begun_lock);
	free(in->begun);
	if (in->store_fd >= 0)
		close(in->store_fd);
	free(in->store);
	free(in);
}
