/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_commit.c - syncs changed streams, and closes streams without a connected daemon
 *
 * A frame is acknowledged only after a successful fsync. A failed fsync is never repeated: the
 * kernel has dropped the unwritten pages, so the next fsync would succeed without them. Instead,
 * the frames after the last successful fsync are cut off, and the daemon sends them again.
 */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/now.h"

void hr__stream_changed(struct hr__worker *w, struct hr__ingest_stream *s)
{
	if (s->changed)
		return;
	s->changed = true;
	s->next_changed = w->changed;
	w->changed = s;
	w->n_changed++;
}

int hr__state_write(struct hr__ingest_stream *s, bool sync)
{
	int fd = open(hr_writer_dir(s->writer), O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	s->state.mark = s->durable;
	r = hr_stream_state_write(fd, &s->state, sync);
	close(fd);
	s->state_late = r < 0;
	s->state_ms = hr__now_ms();
	return r;
}

static void committed(struct hr__worker *w, struct hr__ingest_stream *s)
{
	s->durable = hr_writer_mark(s->writer);
	if (!s->owner)
		return;
	if (s->opening)
		hr__answer(w, s->owner, HR_ANSWER_OPENED, s->durable);
	else if (s->ack_due)
		hr__answer(w, s->owner, HR_ANSWER_ACK, s->durable);
	w->stats.acks += s->ack_due && !s->opening;
	s->opening = s->ack_due = false;
}

static void ingest_commit_failed(struct hr__worker *w, struct hr__ingest_stream *s, int error)
{
	struct hr_channel *ch = s->owner;
	uint64_t sent = hr_writer_mark(s->writer);
	int r = error == -ESTALE ? error : hr_writer_rewind(s->writer);

	s->ack_due = false;
	if (s->opening && ch) {
		hr__stream_drop(w, s, false);
		hr__wait_for_room(w, ch, error);
		return;
	}
	if (r < 0) {
		if (ch)
			hr__channel_end(w, ch, "error", true, "%s %s: %s", hr_writer_dir(s->writer),
					r == -ESTALE ? "was removed while the collector used it"
						     : "cannot be written to disk",
					strerrordesc_np(-error));
		hr__stream_drop(w, s, false);
		return;
	}
	s->durable = hr_writer_mark(s->writer);
	s->ended = false;
	if (!ch)
		return;
	ch->nacked = true;
	/* one Nack is enough for the frames that the daemon has sent already */
	ch->last_seq = sent;
	hr__nack(w, ch,
		 &(struct hr__nack){.reason = "full",
				    .mark = s->durable,
				    .retry_ms = w->ingest->config.retry_ms,
				    .alarm = true},
		 "cannot write %s to disk: %s", hr_writer_dir(s->writer), strerrordesc_np(-error));
}

static int sync_one(struct hr__ingest_stream *s)
{
	int r = s->opening ? hr__state_write(s, true) : 0;

	return r < 0 ? r : hr_writer_sync(s->writer);
}

static void sync_all(struct hr__worker *w)
{
	int r;

	for (struct hr__ingest_stream *s = w->changed; s; s = s->next_changed)
		s->error = s->opening ? hr__state_write(s, false) : 0;
	r = syncfs(w->ingest->store_fd) < 0 ? -errno : 0;
	for (struct hr__ingest_stream *s = w->changed; s; s = s->next_changed) {
		if (r < 0)
			s->error = r;
		else
			hr_writer_synced(s->writer);
	}
}

void hr__commit(struct hr__worker *w)
{
	bool each = w->n_changed <= w->ingest->config.sync_each;
	struct hr__ingest_stream *s = w->changed, *next;
	uint64_t start_ns = hr_now_ns(CLOCK_MONOTONIC);

	if (!s)
		return;
	if (!each)
		sync_all(w);
	w->changed = NULL;
	w->n_changed = 0;
	for (; s; s = next) {
		if (each)
			s->error = sync_one(s);
		if (s->error == 0 && hr_writer_removed(s->writer))
			s->error = -ESTALE;
		next = s->next_changed;
		s->changed = false;
		if (s->error < 0)
			ingest_commit_failed(w, s, s->error);
		else
			committed(w, s);
	}
	hr__stats_commit(w, hr_now_ns(CLOCK_MONOTONIC) - start_ns);
}

static void tick_stream(struct hr__worker *w, struct hr__ingest_stream *s, uint64_t now_ms)
{
	const struct hr_ingest_config *c = &w->ingest->config;

	if (s->state_late && now_ms - s->state_ms >= c->state_ms)
		(void)hr__state_write(s, false);
	/* A stream that has ended is closed earlier. */
	if (!s->owner && now_ms - s->idle_since_ms >= (s->ended ? c->idle_ms / 60 : c->idle_ms))
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
	hr__commit(w);
	hr__answers_flush(w);
}

void hr__seal_all(struct hr__worker *w)
{
	for (unsigned b = 0; b < HR__BUCKETS; b++) {
		while (w->buckets[b]) {
			struct hr__ingest_stream *s = w->buckets[b];

			s->state.connected = false;
			(void)hr__state_write(s, false);
			hr__stream_drop(w, s, true);
		}
	}
}
