/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_clickhouse.c - keeps frames in ClickHouse
 *
 * A store thread collects the rows of many streams for up to a second or until they fill a block,
 * and inserts them. A frame is acknowledged when ClickHouse has confirmed all of its rows. If an
 * insert fails, the daemons send the frames again, which begins new generations
 * (clickhouse/sink.h).
 */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/sink.h"
#include "common/log.h"
#include "common/now.h"

#define INSERT_MS 1000u	 /* longest time that a frame waits for others */
#define PAUSE_MS  30000u /* longest time until daemons try again */
#define START_SEQ 1u	 /* the StreamStart, whose content the generations have */

struct hr__ch_worker {
	struct hr_ch_sink *sink;
	uint64_t oldest_ms; /* when the first of the waiting rows came; 0: none waits */
	bool damage_logged;
};

static struct hr_ch_sink *sink_of(const struct hr__worker *w)
{
	return w->ch->sink;
}

/* ---- a store thread ---- */

static void clickhouse_end(struct hr__worker *w)
{
	if (w->ch)
		hr_ch_sink_free(w->ch->sink);
	free(w->ch);
	w->ch = NULL;
}

static int clickhouse_start(struct hr__worker *w)
{
	char *error = NULL;
	int r;

	w->ch = calloc(1, sizeof(*w->ch));
	if (!w->ch)
		return -ENOMEM;
	r = hr_ch_sink_new(w->ingest->config.clickhouse, &w->ch->sink, &error);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "%s", error ? error : strerrordesc_np(-r));
	free(error);
	if (r < 0)
		clickhouse_end(w);
	return r;
}

/* ---- streams ---- */

static int clickhouse_load(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s)
{
	struct hr_ch_sink_stream *k;

	s->ch = calloc(1, sizeof(*s->ch));
	if (!s->ch)
		return -ENOMEM;
	k = s->ch;
	k->origin = (struct hr_ch_origin){.cluster = s->cluster,
					  .job = s->job,
					  .node = s->node,
					  .attempt = s->id.attempt,
					  .uid = -1,
					  .by_node = ch->right.node};
	k->boot_id = s->boot_id;
	k->peer = s->state.peer;
	k->instance = s->id.instance;
	k->opening = ch->open->opening;
	memcpy(s->state.secret, ch->open->secret.data, HR_STREAM_SECRET_BYTES);
	k->secret = s->state.secret;
	k->secret_bytes = HR_STREAM_SECRET_BYTES;
	hr_ch_sink_identify(sink_of(w), k);
	s->unknown = true;
	return 0;
}

static void clickhouse_unload(struct hr__ingest_stream *s, bool seal)
{
	(void)seal;
	free(s->ch);
	s->ch = NULL;
}

static int clickhouse_skip(struct hr__ingest_stream *s, uint64_t mark)
{
	s->mark = s->durable = mark;
	hr_ch_sink_failed(s->ch); /* the rows in between are another generation's */
	return 0;
}

static const char *clickhouse_where(const struct hr__ingest_stream *s)
{
	(void)s;
	return "ClickHouse";
}

/* ---- opening ---- */

/* The streams whose owners and marks ClickHouse is asked for. */
struct unknown {
	struct hr__ingest_stream **list;
	struct hr_ch_sink_stream **sinks;
	/*
	 * For each stream, who owns its job: the user of the peer or others; named by nodes or by
	 * users.
	 */
	struct owners {
		bool same_by_node, other_by_node, other;
	} * owners;
	size_t n;
	bool users; /* one of the peers may stream only own jobs */
};

static void unknown_free(struct unknown *u)
{
	free(u->list);
	free(u->sinks);
	free(u->owners);
}

static int unknown_list(const struct hr__worker *w, struct unknown *u)
{
	u->list = calloc(w->n_changed + 1, sizeof(*u->list));
	u->sinks = calloc(w->n_changed + 1, sizeof(*u->sinks));
	u->owners = calloc(w->n_changed + 1, sizeof(*u->owners));
	if (!u->list || !u->sinks || !u->owners)
		return -ENOMEM;
	for (struct hr__ingest_stream *s = w->changed; s; s = s->next_changed) {
		if (!s->unknown)
			continue;
		u->users |= s->owner && s->owner->right.own_jobs;
		u->sinks[u->n] = s->ch;
		u->list[u->n++] = s;
	}
	return 0;
}

static void take_owner(void *self, size_t stream, bool by_node, uint32_t uid)
{
	struct unknown *u = self;
	const struct hr_channel *ch = u->list[stream]->owner;
	struct owners *o = &u->owners[stream];
	bool same = ch && ch->right.uid == uid;

	o->same_by_node |= by_node && same;
	o->other_by_node |= by_node && !same;
	o->other |= !by_node && !same;
}

/* The last frame that need not come: what the daemon knows to be acknowledged. */
static uint64_t mark_of(const Headrace__Open *o)
{
	return o->acked_seq > START_SEQ ? o->acked_seq : START_SEQ;
}

/* Decides as backend_folder.c does, from what ClickHouse has. Returns false after a Nack. */
static bool may_continue(struct hr__worker *w, struct hr__ingest_stream *s, const struct owners *o)
{
	const struct hr_ch_sink_stream *k = s->ch;
	struct hr_channel *ch = s->owner;

	s->begins = !k->begun;
	s->state.has_secret = !k->begun || k->same_secret;
	s->state.by_node = ch->right.node;
	s->state.uid_known = k->owner_known;
	s->state.uid = k->owner;
	s->mark = s->durable = mark_of(ch->open);
	if (hr__stream_denied(w, ch, &s->state))
		return false;
	if (ch->right.own_jobs && !o->same_by_node && (o->other_by_node || o->other)) {
		hr__job_denied(w, ch);
		return false;
	}
	if (s->begins && !hr__stream_may_begin(w, ch))
		return false;
	if (ch->right.own_jobs) {
		s->state.uid_known = true;
		s->state.uid = ch->right.uid;
		if (s->begins)
			hr__has_begun(w->ingest, ch->right.uid);
	}
	if (s->state.uid_known)
		s->ch->origin.uid = s->state.uid;
	s->unknown = false;
	return hr__stream_join(w, ch, s) == 0;
}

static void remove_changed(struct hr__worker *w, struct hr__ingest_stream *s)
{
	struct hr__ingest_stream **at = &w->changed;

	while (*at != s)
		at = &(*at)->next_changed;
	*at = s->next_changed;
	w->n_changed--;
	s->changed = false;
}

/* Opens the streams, or leaves them waiting if ClickHouse does not answer. */
static void open_unknown(struct hr__worker *w)
{
	struct unknown u = {0};
	char *error = NULL;
	int r = unknown_list(w, &u);

	if (r == 0 && u.n > 0)
		r = hr_ch_sink_find(sink_of(w), u.sinks, u.n, &error);
	if (r == 0 && u.users)
		r = hr_ch_sink_owners(sink_of(w), u.sinks, u.n, take_owner, &u, &error);
	for (size_t i = 0; i < u.n; i++) {
		struct hr__ingest_stream *s = u.list[i];
		struct hr_channel *ch = s->owner;

		if (r == 0 && ch && may_continue(w, s, &u.owners[i])) {
			hr__opened(w, s);
			continue;
		}
		remove_changed(w, s);
		hr__stream_drop(w, s, false);
		if (r < 0 && ch)
			hr__wait_for_room(w, ch, error ? error : strerrordesc_np(-r));
	}
	free(error);
	unknown_free(&u);
}

/* ---- frames ---- */

/* Ends the rows that wait for shard `shard`: they are stored (`error` NULL), or come again. */
static void finish_shard(struct hr__worker *w, unsigned shard, const char *error)
{
	struct hr__ingest_stream *s = w->changed, *next;

	w->changed = NULL;
	w->n_changed = 0;
	for (; s; s = next) {
		next = s->next_changed;
		s->changed = false;
		if (s->unknown || s->ch->shard != shard) {
			hr__stream_changed(w, s);
		} else if (error && s->mark > s->durable) {
			hr_ch_sink_failed(s->ch);
			hr__commit_failed(w, s, false, "%s", error);
		} else {
			hr__committed(w, s);
		}
	}
}

/* The longer ClickHouse fails, the longer the daemons wait, because each sends all again. */
static void set_pause(struct hr__worker *w, bool failed)
{
	uint32_t first_ms = w->ingest->config.retry_ms;

	if (!failed)
		w->retry_ms = first_ms;
	else
		w->retry_ms = w->retry_ms < PAUSE_MS / 2 ? 2 * w->retry_ms : PAUSE_MS;
}

static void insert_shard(struct hr__worker *w, unsigned shard)
{
	uint64_t start_ns = hr_now_ns(CLOCK_MONOTONIC);
	char *error = NULL;
	int r = hr_ch_sink_insert(sink_of(w), shard, &error);

	if (r < 0)
		hr_log(HR_LOG_ERROR, "cannot insert into ClickHouse: %s",
		       error ? error : strerrordesc_np(-r));
	set_pause(w, r < 0);
	finish_shard(w, shard, r < 0 ? error ? error : strerrordesc_np(-r) : NULL);
	free(error);
	hr__stats_commit(w, hr_now_ns(CLOCK_MONOTONIC) - start_ns);
}

/* A later generation of another collector may have begun, so neither mark nor generation hold. */
static void clickhouse_forget(struct hr__worker *w, struct hr__ingest_stream *s)
{
	if (s->mark > s->durable)
		insert_shard(w, s->ch->shard);
	if (s->changed)
		remove_changed(w, s);
}

static int clickhouse_append(struct hr__worker *w, struct hr__ingest_stream *s,
			     Headrace__Frame *msg, const uint8_t *frame, size_t bytes)
{
	struct hr_ch_sink_stream *k = s->ch;
	int r;

	if (s->unknown)
		return -ERANGE;
	if (hr_ch_sink_full(sink_of(w), k->shard))
		insert_shard(w, k->shard);
	if (msg->seq <= s->mark)
		return -EALREADY;
	if (msg->seq != s->mark + 1)
		return -ERANGE;
	r = hr_ch_sink_add(sink_of(w), k, msg, frame, bytes, w->ingest->config.real_ns());
	if (r == -ENOMEM) {
		hr_ch_sink_clear(sink_of(w), k->shard);
		hr_ch_sink_failed(k);
		finish_shard(w, k->shard, "out of memory");
		return r;
	}
	if (r < 0 && !w->ch->damage_logged) {
		w->ch->damage_logged = true;
		hr_log(HR_LOG_WARNING,
		       "frame %llu of job %s on %s contradicts itself: its rows are left out",
		       (unsigned long long)msg->seq, s->job, s->node);
	}
	if (w->ch->oldest_ms == 0)
		w->ch->oldest_ms = hr__now_ms();
	s->mark = msg->seq;
	return 0;
}

static bool is_due(struct hr__worker *w)
{
	bool stop;

	pthread_mutex_lock(&w->lock);
	stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return stop || (w->ch->oldest_ms > 0 && hr__now_ms() - w->ch->oldest_ms >= INSERT_MS);
}

/* Answers streams that only repeated frames, or changed their owner. */
static void answer_unchanged(struct hr__worker *w)
{
	struct hr__ingest_stream *s = w->changed, *next;

	w->changed = NULL;
	w->n_changed = 0;
	for (; s; s = next) {
		next = s->next_changed;
		s->changed = false;
		if (!s->unknown && s->mark == s->durable) {
			hr__committed(w, s);
			continue;
		}
		if (!s->unknown)
			hr__opened(w, s);
		hr__stream_changed(w, s);
	}
}

static void clickhouse_commit(struct hr__worker *w)
{
	unsigned shards = w->ingest->config.clickhouse->n_shards;

	if (!w->changed)
		return;
	open_unknown(w);
	answer_unchanged(w);
	if (!is_due(w))
		return;
	w->ch->oldest_ms = 0;
	for (unsigned i = 0; i < shards; i++)
		if (hr_ch_sink_waiting(sink_of(w), i) > 0)
			insert_shard(w, i);
}

const struct hr__backend hr__backend_clickhouse = {
    .start = clickhouse_start,
    .end = clickhouse_end,
    .load = clickhouse_load,
    .unload = clickhouse_unload,
    .forget = clickhouse_forget,
    .skip = clickhouse_skip,
    .append = clickhouse_append,
    .commit = clickhouse_commit,
    .where = clickhouse_where,
};
