/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a frame, which is untrusted, and appends it to its stream. */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"

/* Allocates memory for a message, up to a limit: a frame of 64 KiB can unpack to gigabytes. */
static void *get(void *self, size_t bytes)
{
	struct hr__worker *w = self;

	if (bytes > w->ingest->config.unpack_bytes - w->unpacked_bytes)
		return NULL;
	w->unpacked_bytes += bytes;
	return hr_arena_get(&w->unpacked, bytes);
}

static void ingest_frame_give(void *self, void *memory)
{
	(void)self;
	(void)memory; /* hr__channel_frame frees all memory at once */
}

static Headrace__Frame *unpack(struct hr__worker *w, const uint8_t *frame, size_t bytes)
{
	ProtobufCAllocator allocator = {
	    .alloc = get, .free = ingest_frame_give, .allocator_data = w};
	Headrace__Frame *msg;

	w->unpacked_bytes = 0;
	return hr_frame_unpack_into(frame, bytes, &allocator, &msg) == 0 ? msg : NULL;
}

/* Returns whether a StreamStart of the daemon equals the one in the store. */
static bool same_start(const struct hr__ingest_stream *s, const Headrace__Frame *msg)
{
	const Headrace__StreamStart *a = msg->stream_start;

	return msg->seq <= s->mark && a->version <= HR_STORE_VERSION && a->incompatible == 0 &&
	       a->attempt == s->id.attempt && a->instance == s->id.instance &&
	       strcmp(a->cluster, s->cluster) == 0 && strcmp(a->job, s->job) == 0 &&
	       strcmp(a->node, s->node) == 0 && strcmp(a->boot_id, s->boot_id) == 0;
}

/* Returns whether the batch of events has at most the sizes that decoders accept. */
static bool sound_batch(const Headrace__EventBatch *b)
{
	return b->count <= HR_BATCH_EVENTS && b->n_task_proc <= b->count &&
	       b->n_files <= 2 * (size_t)HR_BATCH_EVENTS && b->ops.len <= HR_BATCH_EVENTS / 8;
}

static const char *wrong(const struct hr__ingest_stream *s, const Headrace__Frame *msg)
{
	if (!msg)
		return "a frame that cannot be decoded";
	if (msg->seq == 0)
		return "a frame without a number";
	switch (msg->body_case) {
	case HEADRACE__FRAME__BODY_INDEX:
	case HEADRACE__FRAME__BODY_STREAM_STATE:
		return "a frame of a kind that does not belong in a stream";
	case HEADRACE__FRAME__BODY_STREAM_START:
		return same_start(s, msg) ? NULL : "the StreamStart of another stream";
	case HEADRACE__FRAME__BODY_EVENTS:
		return sound_batch(msg->events) ? NULL : "an invalid batch of events";
	default:
		return NULL;
	}
}

/* Returns whether the user of the peer owns the job. The first JobEvent sets the owner. */
static bool owns_job(struct hr__worker *w, struct hr_channel *ch, const Headrace__JobEvent *job)
{
	struct hr_stream_state *state = &ch->stream->state;

	if (ch->right.own_jobs && job->uid != ch->right.uid) {
		hr__channel_end(w, ch, "denied", true,
				"user %u owns the job, but user %u streams it", job->uid,
				ch->right.uid);
		return false;
	}
	if (!state->uid_known) {
		state->uid_known = true;
		state->uid = job->uid;
		ch->stream->state_late = true;
		if (state->by_node)
			hr__state_write(w, ch->stream);
	}
	return true;
}

/* Sends a Nack for the first frame after a gap, and if the daemon then sends an earlier number. */
static void gap(struct hr__worker *w, struct hr_channel *ch, uint64_t seq)
{
	uint64_t mark = ch->stream->mark;

	if (!ch->nacked || seq <= ch->last_seq)
		hr__nack(w, ch, &(struct hr__nack){.reason = "gap", .mark = mark},
			 "received frame %llu, expected %llu", (unsigned long long)seq,
			 (unsigned long long)mark + 1);
	ch->nacked = true;
	ch->last_seq = seq;
}

static void ingest_frame_refuse(struct hr__worker *w, struct hr_channel *ch, uint64_t seq,
				int error)
{
	ch->nacked = true;
	ch->last_seq = seq;
	hr__nack(
	    w, ch,
	    &(struct hr__nack){
		.reason = "full", .mark = ch->stream->mark, .retry_ms = w->retry_ms, .alarm = true},
	    "%s: %s", w->ingest->backend->where(ch->stream),
	    error == -ENOSPC || error == -EDQUOT ? "no space left" : strerrordesc_np(-error));
}

static void ingest_frame_append(struct hr__worker *w, struct hr_channel *ch, Headrace__Frame *msg,
				const uint8_t *frame, size_t bytes)
{
	struct hr__ingest_stream *s = ch->stream;
	int r = w->ingest->backend->append(w, s, msg, frame, bytes);

	if (r == -ERANGE) {
		gap(w, ch, msg->seq);
		return;
	}
	if (r < 0 && r != -EALREADY) {
		ingest_frame_refuse(w, ch, msg->seq, r);
		return;
	}
	ch->nacked = false;
	ch->last_seq = msg->seq;
	s->ack_due = true;
	if (r == 0) {
		s->ended = msg->body_case == HEADRACE__FRAME__BODY_STREAM_END;
		w->stats.frames++;
		w->stats.bytes += bytes;
	} else {
		w->stats.repeated++;
	}
	hr__stream_changed(w, s);
}

void hr__channel_frame(struct hr__worker *w, struct hr_channel *ch, const uint8_t *frame,
		       size_t bytes)
{
	struct hr__ingest_stream *s = ch->stream;
	Headrace__Frame *msg = unpack(w, frame, bytes);
	const char *what = wrong(s, msg);

	s->state.heard_ns = w->ingest->config.real_ns();
	s->state_late = true;
	if (what)
		hr__channel_end(w, ch, "malformed", true, "job %s on %s: %s", s->job, s->node,
				what);
	else if (msg->body_case != HEADRACE__FRAME__BODY_JOB || owns_job(w, ch, msg->job))
		ingest_frame_append(w, ch, msg, frame, bytes);
	hr_arena_free(&w->unpacked);
}
