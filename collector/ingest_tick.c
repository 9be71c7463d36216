/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_tick.c - answers the daemons of changed streams after a commit, and closes streams without
 * a connected daemon
 */
#include "collector/ingest_internal.h"

#include <stdarg.h>
#include <stdio.h>

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

int hr__state_write(struct hr__worker *w, struct hr__ingest_stream *s, bool sync)
{
	const struct hr__backend *k = w->ingest->backend;

	return k->write_state ? k->write_state(s, sync) : 0;
}

static void tick_stream(struct hr__worker *w, struct hr__ingest_stream *s, uint64_t now_ms)
{
	const struct hr_ingest_config *c = &w->ingest->config;

	if (s->state_late && now_ms - s->state_ms >= c->state_ms)
		(void)hr__state_write(w, s, false);
	/* A stream that has ended is closed earlier. */
	if (!s->owner && !s->changed &&
	    now_ms - s->idle_since_ms >= (s->ended ? c->idle_ms / 60 : c->idle_ms))
		hr__stream_drop(w, s, true);
}

void hr__tick(struct hr__worker *w)
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

void hr__seal_all(struct hr__worker *w)
{
	w->ingest->backend->commit(w);
	for (unsigned b = 0; b < HR__BUCKETS; b++) {
		while (w->buckets[b]) {
			struct hr__ingest_stream *s = w->buckets[b];

			s->state.connected = false;
			(void)hr__state_write(w, s, false);
			hr__stream_drop(w, s, true);
		}
	}
}
