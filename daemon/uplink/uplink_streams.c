/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fnv.h"
#include "common/now.h"
#include "daemon/node/recover.h"

/* ---- waiting time of frames ------------------------------------------------------------------ */

static void thin_out(struct hr__sending *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->n_points; i += 2)
		s->points[kept++] = s->points[i];
	s->n_points = kept;
}

/* Stores that frame `seq` was the newest at the time `ms`. */
static void add_point(const struct hr_uplink *u, struct hr__sending *s, uint64_t seq, uint64_t ms)
{
	if (s->n_points && ms < s->points[s->n_points - 1].ms + u->c.waiting_ms)
		return;
	if (s->n_points == HR__UPLINK_POINTS)
		thin_out(s);
	s->points[s->n_points].seq = seq;
	s->points[s->n_points++].ms = ms;
}

static void drop_points(struct hr__sending *s)
{
	unsigned gone = 0;

	while (gone < s->n_points && s->points[gone].seq <= s->acked)
		gone++;
	s->n_points -= gone;
	memmove(s->points, s->points + gone, s->n_points * sizeof(s->points[0]));
}

static uint64_t waiting_ms(const struct hr_uplink *u, const struct hr__sending *s)
{
	return s->newest > s->acked && s->n_points ? hr__uplink_now(u) - s->points[0].ms : 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

struct hr__sending *hr__streams_by_channel(struct hr_uplink *u, uint32_t channel)
{
	struct hr__sending *s = u->streams;

	while (s && (s->channel != channel || !channel))
		s = s->next;
	return s;
}

static struct hr__sending *stream_in(const struct hr_uplink *u, const char *folder)
{
	struct hr__sending *s = u->streams;

	while (s && strcmp(s->stream->folder, folder) != 0)
		s = s->next;
	return s;
}

static void sending_free(struct hr__sending *s)
{
	hr_spool_stream_free(s->stream);
	free(s->flights);
	free(s->held);
	free(s);
}

static void uplink_streams_forget(struct hr_uplink *u, struct hr__sending *s)
{
	struct hr__sending **link = &u->streams;

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	if (u->turn == s)
		u->turn = s->next;
	u->known--;
	sending_free(s);
}

void hr__streams_free(struct hr_uplink *u)
{
	while (u->streams)
		uplink_streams_forget(u, u->streams);
}

static uint64_t age_ms(int64_t time_ns)
{
	int64_t age = ((int64_t)hr_now_ns(CLOCK_REALTIME) - time_ns) / 1000000;

	return age > 0 ? (uint64_t)age : 0;
}

/* Adds a stream to the list, which then owns `st`. NULL: no memory. */
static struct hr__sending *uplink_streams_add(struct hr_uplink *u, struct hr_spool_stream *st,
					      bool own)
{
	struct hr__sending *s = calloc(1, sizeof(*s));
	uint64_t now = hr__uplink_now(u), age = own ? 0 : age_ms(st->time_ns);

	if (!s) {
		hr_spool_stream_free(st);
		return NULL;
	}
	s->stream = st;
	s->own = own;
	s->ends = !own;
	s->acked = s->sent = st->first_seq - 1;
	s->newest = st->last_seq;
	if (st->acked > s->acked)
		s->acked = st->acked < s->newest ? st->acked : s->newest;
	add_point(u, s, s->newest, age < now ? now - age : 0);
	s->next = u->streams;
	u->streams = s;
	u->known++;
	if (!st->has_secret)
		hr__send_aside(
		    u, s, "denied",
		    "its file `secret` was removed: no collector can identify its owner");
	return s;
}

/* ---- finding streams ------------------------------------------------------------------------- */

/* Returns whether the journal is so old that no keeper will restart the killed daemon. */
static bool is_orphan(struct hr_uplink *u, const char *folder)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, folder, strlen(folder)), now = hr__uplink_now(u);

	if (u->c.recover_ms == 0)
		return true;
	if (u->c.recover_ms == HR_UPLINK_NEVER)
		return false;
	for (unsigned i = 0; i < u->n_orphans; i++)
		if (u->orphans[i].folder == hash)
			return now - u->orphans[i].since_ms >= u->c.recover_ms;
	if (u->n_orphans < HR__UPLINK_ORPHANS)
		u->orphans[u->n_orphans++] = (struct hr__orphan){hash, now};
	return false;
}

static void no_orphan(struct hr_uplink *u, const char *folder)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, folder, strlen(folder));

	for (unsigned i = 0; i < u->n_orphans; i++)
		if (u->orphans[i].folder == hash)
			u->orphans[i] = u->orphans[--u->n_orphans];
}

static int recover(struct hr_uplink *u, const struct hr_spool_stream *st)
{
	struct hr_stream_id id = {.cluster = st->id->cluster,
				  .job = st->id->job,
				  .attempt = st->id->attempt,
				  .node = st->id->node,
				  .boot_id = st->id->boot_id,
				  .instance = st->id->instance};

	return hr_stream_recover(hr_spool_path(u->c.spool), &id);
}

/* Returns whether this uplink may send another daemon's stream. If needed, recovers the stream. */
static bool uplink_streams_take_over(struct hr_uplink *u, struct hr_spool_stream *st)
{
	enum hr_spool_end end = hr_spool_stream_end(st);

	if (end != HR_SPOOL_JOURNAL)
		no_orphan(u, st->folder);
	if (end == HR_SPOOL_WRITTEN) {
		u->elsewhere++;
		return false;
	}
	if (end == HR_SPOOL_JOURNAL && (!is_orphan(u, st->folder) || recover(u, st) < 0)) {
		u->waiting_journals++;
		return false;
	}
	return hr_spool_stream_refresh(st, true) == 0;
}

static bool aimed_here(const struct hr_uplink *u, const char *aim)
{
	struct hr_address to[HR_ADDRESSES_MAX];
	size_t n;

	if (u->c.all || !*aim || hr_address_parse_list(aim, to, HR_ADDRESSES_MAX, &n) < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < u->c.n_collectors; k++)
			if (to[i].local == u->c.collectors[k].local &&
			    to[i].port == u->c.collectors[k].port &&
			    strcmp(to[i].host, u->c.collectors[k].host) == 0)
				return true;
	return false;
}

/* Returns whether a daemon was killed before it wrote the secret of its new stream. */
static bool is_unborn(const struct hr_spool_stream *st)
{
	return !st->has_secret && st->last_seq <= 1;
}

static int see(void *arg, const char *folder, int dir_fd)
{
	struct hr_uplink *u = arg;
	struct hr_spool_live live;
	struct hr_spool_stream *st;
	struct hr__sending *s;
	int r;

	(void)dir_fd;
	if (stream_in(u, folder))
		return 0;
	if (hr_spool_live(u->c.spool, &live) && strcmp(live.folder, folder) == 0)
		return 0; /* hr__streams_wake adds this stream */
	if (u->known >= HR__UPLINK_STREAMS) {
		u->unseen++;
		return 0;
	}
	r = hr_spool_stream_open(u->c.spool, folder, &st);
	if (r == -EBUSY)
		u->elsewhere++;
	if (r)
		return 0;
	if (!aimed_here(u, st->aim) || (!u->c.all && strcmp(st->id->node, u->c.node) != 0) ||
	    !uplink_streams_take_over(u, st)) {
		hr_spool_stream_free(st);
		return 0;
	}
	if (is_unborn(st)) {
		(void)hr_spool_stream_remove(st);
		hr_spool_stream_free(st);
		return 0;
	}
	s = uplink_streams_add(u, st, false);
	if (s) /* all frames may already be acknowledged */
		hr__streams_settle(u, s);
	return 0;
}

void hr__streams_scan(struct hr_uplink *u)
{
	u->elsewhere = u->waiting_journals = u->unseen = 0;
	(void)hr_spool_each(u->c.spool, see, u);
	u->searches++;
	hr__streams_publish(u);
}

static struct hr__sending *own_stream(struct hr_uplink *u, const struct hr_spool_live *live)
{
	struct hr_spool_stream *st;
	struct hr__sending *s = stream_in(u, live->folder);

	if (s || hr_spool_stream_open(u->c.spool, live->folder, &st))
		return s; /* NULL: another uplink may have the stream for a moment */
	st->last_seq = live->mark;
	return uplink_streams_add(u, st, true);
}

void hr__streams_wake(struct hr_uplink *u)
{
	struct hr_spool_live live;
	struct hr__sending *s;

	s = hr_spool_live(u->c.spool, &live) ? own_stream(u, &live) : NULL;
	if (!s) /* this process writes no stream, or all of its stream was sent */
		return;
	if (live.mark != s->newest)
		add_point(u, s, live.mark, hr__uplink_now(u));
	s->newest = live.mark;
	s->ends = !live.open;
	hr__streams_settle(u, s);
}

/* ---- finished streams ------------------------------------------------------------------------ */

void hr__streams_settle(struct hr_uplink *u, struct hr__sending *s)
{
	bool keep = s->own && u->c.keep;

	drop_points(s);
	(void)hr_spool_stream_acknowledge(s->stream, s->acked, keep);
	if (s->state == HR__SENDING_ASIDE || !s->ends || s->acked < s->newest)
		return;
	/* the next process then need not connect for this stream */
	if (keep && !s->noted)
		s->noted = hr_spool_stream_note(s->stream, s->acked) == 0;
	if (keep)
		return;
	hr__send_close(u, s);
	if (hr_spool_stream_remove(s->stream) == 0)
		uplink_streams_forget(u, s);
}

static void publish_own(struct hr_uplink_stats *stats, const struct hr__sending *s)
{
	stats->own = true;
	stats->own_gone = false;
	stats->own_aside = s->state == HR__SENDING_ASIDE;
	stats->own_frames = s->newest;
	stats->own_acked = s->acked;
}

void hr__streams_publish(struct hr_uplink *u)
{
	struct hr_uplink_stats *stats = &u->stats;
	uint64_t oldest_ms = 0;
	struct hr_spool_live live;

	pthread_mutex_lock(&u->lock);
	/* Before a search is complete, its numbers are too small. */
	if (stats->searches != u->searches) {
		stats->elsewhere = u->elsewhere;
		stats->waiting_journals = u->waiting_journals;
		stats->unseen = u->unseen;
		stats->searches = u->searches;
	}
	stats->streams = stats->aside = 0;
	stats->frames = stats->bytes = 0;
	stats->own_gone = stats->own; /* the loop below sets false if it finds the stream */
	if (stats->own && hr_spool_live(u->c.spool, &live))
		stats->own_frames = stats->own_acked = live.mark;
	for (const struct hr__sending *s = u->streams; s; s = s->next) {
		stats->aside += s->state == HR__SENDING_ASIDE;
		stats->streams += s->state != HR__SENDING_ASIDE;
		stats->bytes += s->stream->bytes;
		stats->frames += s->newest > s->acked ? s->newest - s->acked : 0;
		if (s->own)
			publish_own(stats, s);
		if (waiting_ms(u, s) > oldest_ms)
			oldest_ms = waiting_ms(u, s);
	}
	stats->oldest_ns = oldest_ms * 1000000;
	pthread_mutex_unlock(&u->lock);
}
