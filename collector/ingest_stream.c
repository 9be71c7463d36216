/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_stream.c - answers to daemons, the state of a stream, and who may open it. Store threads
 * call these functions, from ingest.c, ingest_open.c, ingest_frame.c and the backends.
 */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"

#define LIMIT_MS 60000u /* value of Nack.retry_ms for a user with too many new streams */
#define DAY_MS	 UINT64_C(86400000)

/* ---- answers ---- */

static struct hr__answer *add_answer(struct hr__worker *w, struct hr_channel *ch,
				     enum hr_answer_kind kind)
{
	struct hr__answer *a = calloc(1, sizeof(*a));

	/* Without memory there is no answer, so the daemon sends the frames again. */
	if (!a)
		return NULL;
	a->channel = ch;
	a->view.kind = kind;
	*w->answers_last = a;
	w->answers_last = &a->next;
	return a;
}

void hr__answer(struct hr__worker *w, struct hr_channel *ch, enum hr_answer_kind kind,
		uint64_t mark)
{
	struct hr__answer *a = add_answer(w, ch, kind);

	if (a)
		a->view.mark = mark;
}

void hr__nack(struct hr__worker *w, struct hr_channel *ch, const struct hr__nack *n,
	      const char *format, ...)
{
	struct hr__answer *a = add_answer(w, ch, HR_ANSWER_NACK);
	va_list args;

	w->stats.nacks++;
	if (!a)
		return;
	va_start(args, format);
	if (vasprintf(&a->text, format, args) < 0)
		a->text = NULL;
	va_end(args);
	a->view.text = a->text ? a->text : "";
	a->view.reason = n->reason;
	a->view.mark = n->mark;
	a->view.retry_ms = n->retry_ms;
	a->view.closed = n->closed;
	a->view.alarm = n->alarm;
}

void hr__answers_flush(struct hr__worker *w)
{
	struct hr_ingest *in = w->ingest;

	for (struct hr_channel *ch = w->released; ch; ch = ch->next_released) {
		struct hr__answer *a = add_answer(w, ch, HR_ANSWER_RELEASED);

		if (a)
			a->view.bytes = ch->released;
		ch->released = 0;
		ch->in_released = false;
	}
	w->released = NULL;
	if (!w->answers)
		return;
	pthread_mutex_lock(&in->lock);
	*in->answers_last = w->answers;
	in->answers_last = w->answers_last;
	pthread_mutex_unlock(&in->lock);
	w->answers = NULL;
	w->answers_last = &w->answers;
	in->config.wake(in->config.self);
}

/* ---- commits ---- */

void hr__stream_changed(struct hr__worker *w, struct hr__ingest_stream *s)
{
	if (s->changed)
		return;
	s->changed = true;
	s->next_changed = w->changed;
	w->changed = s;
	w->n_changed++;
}

void hr__opened(struct hr__worker *w, struct hr__ingest_stream *s)
{
	if (s->owner && s->opening)
		hr__answer(w, s->owner, HR_ANSWER_OPENED, s->durable);
	s->opening = false;
}

void hr__committed(struct hr__worker *w, struct hr__ingest_stream *s)
{
	bool ack = s->owner && s->ack_due && !s->opening;

	s->durable = s->mark;
	hr__opened(w, s);
	if (ack)
		hr__answer(w, s->owner, HR_ANSWER_ACK, s->durable);
	w->stats.acks += ack;
	s->ack_due = false;
}

void hr__commit_failed(struct hr__worker *w, struct hr__ingest_stream *s, bool alarm,
		       const char *format, ...)
{
	struct hr_channel *ch = s->owner;
	uint64_t sent = s->mark;
	char text[512];
	va_list args;

	s->mark = s->durable;
	s->ack_due = s->ended = false;
	if (!ch)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ch->nacked = true;
	/* one Nack is enough for the frames that the daemon has sent already */
	ch->last_seq = sent;
	hr__nack(w, ch,
		 &(struct hr__nack){
		     .reason = "full", .mark = s->durable, .retry_ms = w->retry_ms, .alarm = alarm},
		 "%s", text);
}

void hr__state_write(struct hr__worker *w, struct hr__ingest_stream *s)
{
	if (w->ingest->backend->write_state)
		(void)w->ingest->backend->write_state(s, false);
}

/* ---- the end ---- */

void hr__channel_end(struct hr__worker *w, struct hr_channel *ch, const char *reason, bool alarm,
		     const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hr__nack(w, ch,
		 &(struct hr__nack){.reason = reason,
				    .mark = ch->stream ? ch->stream->durable : 0,
				    .closed = true,
				    .alarm = alarm},
		 "%s", text);
	if (ch->stream)
		hr__stream_leave(w, ch->stream);
}

unsigned hr__stream_bucket(const char *job, const char *node, uint64_t instance, uint32_t attempt)
{
	uint64_t h = hr_fnv(hr__stream_hash(job, node, instance), &attempt, sizeof(attempt));

	return (unsigned)((h ^ h >> 32) % HR__BUCKETS);
}

void hr__ingest_stream_free(struct hr__ingest_stream *s)
{
	free(s->cluster);
	free(s->job);
	free(s->node);
	free(s->boot_id);
	free(s);
}

void hr__stream_drop(struct hr__worker *w, struct hr__ingest_stream *s, bool seal)
{
	struct hr__ingest_stream **at =
	    &w->buckets[hr__stream_bucket(s->job, s->node, s->id.instance, s->id.attempt)];

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	w->n_streams--;
	hr__stats_silent(w, s);
	if (s->owner)
		s->owner->stream = NULL;
	w->ingest->backend->unload(s, seal);
	hr__ingest_stream_free(s);
}

void hr__stream_leave(struct hr__worker *w, struct hr__ingest_stream *s)
{
	s->owner->stream = NULL;
	s->owner = NULL;
	s->opening = s->ack_due = false;
	s->idle_since_ms = hr__now_ms();
	s->state.connected = false;
	hr__state_write(w, s);
}

/*
 * ---- how many streams a user may begin ----
 *
 * The folder and the three files of a stream exist until retention removes them, so one user could
 * use up the inodes of the store.
 */

static struct hr__begun *begun_find(struct hr_ingest *in, uint32_t uid)
{
	for (size_t i = 0; i < in->n_begun; i++)
		if (in->begun[i].uid == uid)
			return &in->begun[i];
	return NULL;
}

static bool may_begin(struct hr_ingest *in, uint32_t uid)
{
	const struct hr__begun *b;
	bool may;

	if (in->config.max_new == 0)
		return true;
	pthread_mutex_lock(&in->begun_lock);
	b = begun_find(in, uid);
	may = !b || b->n < in->config.max_new || hr__now_ms() - b->since_ms >= DAY_MS;
	pthread_mutex_unlock(&in->begun_lock);
	return may;
}

void hr__has_begun(struct hr_ingest *in, uint32_t uid)
{
	struct hr__begun *b;

	pthread_mutex_lock(&in->begun_lock);
	b = begun_find(in, uid);
	/* If memory is short, the new stream does not count. */
	if (!b && hr_array_reserve(in->begun, in->n_begun, in->begun_room)) {
		b = &in->begun[in->n_begun++];
		*b = (struct hr__begun){.uid = uid, .since_ms = hr__now_ms()};
	}
	if (b && hr__now_ms() - b->since_ms >= DAY_MS)
		*b = (struct hr__begun){.uid = uid, .since_ms = hr__now_ms()};
	if (b)
		b->n++;
	pthread_mutex_unlock(&in->begun_lock);
}

/*
 * ---- who may open a stream ----
 *
 * The first peer that opens a stream sends a secret. Later, only a peer with the same secret may
 * open the stream. The backend stores the secret before OPENED is sent.
 */

static bool same_secret(const struct hr_stream_state *state, const Headrace__Open *o)
{
	/* Compares all bytes, so that the duration does not depend on the difference. */
	uint8_t difference = 0;

	for (size_t i = 0; i < HR_STREAM_SECRET_BYTES; i++)
		difference |= state->secret[i] ^ o->secret.data[i];
	return state->has_secret && difference == 0;
}

bool hr__stream_denied(struct hr__worker *w, struct hr_channel *ch,
		       const struct hr_stream_state *state)
{
	const struct hr_ingest_right *right = &ch->right;

	if (!same_secret(state, ch->open)) {
		hr__channel_end(w, ch, "denied", true,
				"the stream of job %s on %s belongs to another daemon",
				ch->open->job, ch->open->node);
		return true;
	}
	if (right->own_jobs && state->uid_known && state->uid != right->uid) {
		hr__channel_end(w, ch, "denied", true, "job %s belongs to another user",
				ch->open->job);
		return true;
	}
	return false;
}

bool hr__stream_may_begin(struct hr__worker *w, struct hr_channel *ch)
{
	if (!ch->right.own_jobs || may_begin(w->ingest, ch->right.uid))
		return true;
	hr__nack(w, ch,
		 &(struct hr__nack){
		     .reason = "limit", .retry_ms = LIMIT_MS, .closed = true, .alarm = true},
		 "user %u has begun %llu streams within 24 hours, the limit per user "
		 "(new_streams_per_user): the stream of job %s has to wait",
		 ch->right.uid, (unsigned long long)w->ingest->config.max_new, ch->open->job);
	return false;
}

void hr__job_denied(struct hr__worker *w, struct hr_channel *ch)
{
	hr__channel_end(w, ch, "denied", true,
			"job %s belongs to another user: choose another name", ch->open->job);
}

int hr__stream_join(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s)
{
	const struct hr__backend *k = w->ingest->backend;
	const Headrace__Open *o = ch->open;
	uint64_t mark = s->mark;
	/* avoids `mark + 1`, which could overflow */
	bool ahead = o->first_seq > 0 && o->first_seq - 1 > mark;

	if (ahead && o->first_seq - 1 <= o->last_seq)
		return k->skip(s, o->first_seq - 1);
	if (ahead || (o->last_seq != 0 && o->last_seq < mark && mark > 1))
		hr__channel_end(w, ch, "behind", true,
				"the store has frames up to %llu, but the daemon has %llu to %llu",
				(unsigned long long)mark, (unsigned long long)o->first_seq,
				(unsigned long long)o->last_seq);
	else
		return 0;
	return -ECANCELED;
}

void hr__wait_for_room(struct hr__worker *w, struct hr_channel *ch, const char *why)
{
	if (!ch->waiting) {
		ch->waiting = true;
		ch->next_waiting = w->waiting;
		w->waiting = ch;
	}
	if (ch->full_sent)
		return;
	ch->full_sent = true;
	hr__nack(w, ch,
		 &(struct hr__nack){.reason = "full", .retry_ms = w->retry_ms, .alarm = true},
		 "cannot open the stream of job %s on %s: %s", ch->open->job, ch->open->node, why);
}
