/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_open.c - opens streams and makes room for them; channels that cannot be opened wait */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_DIVIDE 4u	 /* one user may open 1/USER_DIVIDE of max_streams */
#define RETRIES_MAX 512u /* number of waiting channels that one tick tries to open */

static struct hr__ingest_stream *ingest_open_find(struct hr__worker *w, const Headrace__Open *o)
{
	struct hr__ingest_stream *s =
	    w->buckets[hr__stream_bucket(o->job, o->node, o->instance, o->attempt)];

	while (s && (s->id.instance != o->instance || s->id.attempt != o->attempt ||
		     strcmp(s->job, o->job) != 0 || strcmp(s->node, o->node) != 0))
		s = s->next;
	return s;
}

static struct hr__ingest_stream *stream_new(const Headrace__Open *o)
{
	struct hr__ingest_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cluster = strdup(o->cluster);
	s->job = strdup(o->job);
	s->node = strdup(o->node);
	s->boot_id = strdup(o->boot_id);
	if (!s->cluster || !s->job || !s->node || !s->boot_id) {
		hr__ingest_stream_free(s);
		return NULL;
	}
	s->id = (struct hr_stream_id){.cluster = s->cluster,
				      .job = s->job,
				      .attempt = o->attempt,
				      .node = s->node,
				      .boot_id = s->boot_id,
				      .instance = o->instance};
	return s;
}

static void ingest_open_put(struct hr__worker *w, struct hr__ingest_stream *s)
{
	unsigned b = hr__stream_bucket(s->job, s->node, s->id.instance, s->id.attempt);

	s->next = w->buckets[b];
	w->buckets[b] = s;
	w->n_streams++;
	hr__stats_back(w, s);
}

/*
 * Counts the open streams of the user `of` (NULL: of all users). *ret_idle: of those without an
 * owner, the one that lost it first; or NULL.
 */
static size_t count_streams(struct hr__worker *w, const struct hr_ingest_right *of,
			    struct hr__ingest_stream **ret_idle)
{
	size_t n = 0;

	*ret_idle = NULL;
	for (unsigned b = 0; b < HR__BUCKETS; b++) {
		for (struct hr__ingest_stream *s = w->buckets[b]; s; s = s->next) {
			if (of && (!s->state.uid_known || s->state.uid != of->uid))
				continue;
			n++;
			if (!s->owner && !s->changed &&
			    (!*ret_idle || s->idle_since_ms < (*ret_idle)->idle_since_ms))
				*ret_idle = s;
		}
	}
	return n;
}

/* At the limit, closes the stream that has no owner for the longest time. -EMFILE: all have one. */
static int room_for_one(struct hr__worker *w, const struct hr_ingest_right *right)
{
	const struct hr_ingest_right *of = right->own_jobs ? right : NULL;
	struct hr__ingest_stream *idle;

	if (w->max_streams == 0 ||
	    (w->n_streams < w->max_streams &&
	     (!of || count_streams(w, of, &idle) < w->max_streams / USER_DIVIDE + 1)))
		return 0;
	(void)count_streams(w, w->n_streams < w->max_streams ? of : NULL, &idle);
	if (!idle)
		return -EMFILE;
	hr__stream_drop(w, idle, true);
	return 0;
}

static int ingest_open_load(struct hr__worker *w, struct hr_channel *ch,
			    struct hr__ingest_stream **ret)
{
	struct hr__ingest_stream *s = stream_new(ch->open);
	int r = s ? room_for_one(w, &ch->right) : -ENOMEM;

	if (r == 0)
		r = w->ingest->backend->load(w, ch, s);
	if (r == 0) {
		if (s->begins && ch->right.own_jobs)
			hr__has_begun(w->ingest, ch->right.uid);
		ingest_open_put(w, s);
		*ret = s;
	} else if (s) {
		w->ingest->backend->unload(s, false);
		hr__ingest_stream_free(s);
	}
	return r;
}

static bool sound(struct hr__worker *w, struct hr_channel *ch, const struct hr__ingest_stream *s)
{
	const Headrace__Open *o = ch->open;

	if (o->secret.len != HR_STREAM_SECRET_BYTES)
		hr__channel_end(w, ch, "malformed", true, "the secret must have %u bytes",
				HR_STREAM_SECRET_BYTES);
	else if (o->job[0] == '\0' || o->node[0] == '\0' || o->instance == 0)
		hr__channel_end(w, ch, "malformed", true,
				"a stream must have a job, a node and an instance");
	else if (s && (strcmp(s->boot_id, o->boot_id) != 0 || strcmp(s->cluster, o->cluster) != 0))
		hr__channel_end(w, ch, "malformed", true,
				"the stream of job %s on %s has another boot or cluster", o->job,
				o->node);
	else
		return true;
	return false;
}

static void in_use(struct hr__worker *w, struct hr_channel *ch, const struct hr__ingest_stream *s)
{
	hr__channel_end(w, ch, "in_use", false,
			"another connection has opened the stream of job %s on %s", s->job,
			s->node);
}

/* Gives the stream to the newer channel, because the daemon of the older one may be dead. */
static void ingest_open_take_over(struct hr__worker *w, struct hr_channel *ch,
				  struct hr__ingest_stream *s)
{
	struct hr_channel *older = s->owner;

	if (older && older != ch)
		in_use(w, older, s);
	s->owner = ch;
	ch->stream = s;
	ch->nacked = false;
	ch->last_seq = 0;
	s->opening = true;
	s->state.connected = true;
	s->state.heard_ns = w->ingest->config.real_ns();
	snprintf(s->state.peer, sizeof(s->state.peer), "%s", ch->right.peer);
	hr__stream_changed(w, s);
}

/* Drops a stream that other collectors may have continued since. It is then loaded again. */
static void ingest_open_forget(struct hr__worker *w, struct hr_channel *ch,
			       struct hr__ingest_stream *s)
{
	w->ingest->backend->forget(w, s);
	if (s->owner && s->owner != ch)
		in_use(w, s->owner, s);
	hr__stream_drop(w, s, false);
}

void hr__channel_open(struct hr__worker *w, struct hr_channel *ch)
{
	struct hr__ingest_stream *s = ingest_open_find(w, ch->open);
	int r = 0;

	if (ch->order == 0)
		ch->order = ++w->opens;
	if (!sound(w, ch, s))
		return;
	/* A channel that waited can be older than the current owner of the stream. */
	if (s && s->owner && s->owner->order > ch->order) {
		in_use(w, ch, s);
		return;
	}
	if (s && s->unknown) { /* the first peer may not own it */
		hr__wait_for_room(w, ch, "another connection opens it");
		return;
	}
	if (s && hr__stream_denied(w, ch, &s->state))
		return;
	if (s && w->ingest->backend->forget) {
		ingest_open_forget(w, ch, s);
		s = NULL;
	}
	if (!s)
		r = ingest_open_load(w, ch, &s);
	if (r == 0 && !s->unknown)
		r = hr__stream_join(w, ch, s);
	if (r == 0)
		ingest_open_take_over(w, ch, s);
	else if (r == -EINVAL || r == -ENAMETOOLONG)
		hr__channel_end(w, ch, "malformed", true, "the names of job and node are too long");
	else if (r < 0 && r != -ECANCELED && r != -EBADMSG)
		hr__wait_for_room(
		    w, ch, r == -EBUSY ? "another process writes to it" : strerrordesc_np(-r));
	else if (r == -EBADMSG)
		hr__channel_end(
		    w, ch, "error", true,
		    "the file `state` of job %s on %s is damaged: an operator must check it",
		    ch->open->job, ch->open->node);
	if (s && !s->owner && s->idle_since_ms == 0)
		s->idle_since_ms = hr__now_ms();
}

static void stop_waiting(struct hr__worker *w, struct hr_channel *ch)
{
	struct hr_channel **at = &w->waiting;

	while (*at && *at != ch)
		at = &(*at)->next_waiting;
	if (*at)
		*at = ch->next_waiting;
	ch->waiting = false;
}

/* Tries again to open waiting channels: some per tick, because each try reads the disk. */
void hr__waiting_retry(struct hr__worker *w)
{
	struct hr_channel *ch = w->waiting, *next, **end;

	w->waiting = NULL;
	for (unsigned n = 0; ch && n < RETRIES_MAX; n++, ch = next) {
		next = ch->next_waiting;
		ch->waiting = false;
		hr__channel_open(w, ch);
	}
	if (!ch)
		return;
	for (end = &ch; *end; end = &(*end)->next_waiting)
		;
	*end = w->waiting;
	w->waiting = ch;
}

void hr__channel_close(struct hr__worker *w, struct hr_channel *ch)
{
	if (ch->waiting)
		stop_waiting(w, ch);
	if (ch->stream)
		hr__stream_leave(w, ch->stream);
}
