/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/now.h"

#define TURN_BYTES (256u << 10) /* a stream sends this much before another stream may send */
/* Maximum bytes that wait in the kernel; more would only use memory. */
#define QUEUE_BYTES  (2u << 20)
#define GAP_MS	     300u  /* a Nack that repeats a gap within this time is not a new gap */
#define REST_MS	     1000u /* default, if the Nack has no value */
#define REST_MOST_MS 30000u
/* How long the uplink waits before it opens a failed or busy stream again. */
#define LATER_MS 10000u

/* ---- frames under way ------------------------------------------------------------------------ */

static int push_flight(struct hr__sending *s, uint64_t seq, size_t bytes)
{
	size_t used = s->first_flight + s->n_flights;

	if (used == s->flights_room && s->first_flight > 0) {
		memmove(s->flights, s->flights + s->first_flight,
			s->n_flights * sizeof(*s->flights));
		s->first_flight = 0;
		used = s->n_flights;
	}
	if (!hr_array_reserve(s->flights, used, s->flights_room))
		return -ENOMEM;
	s->flights[used] = (struct hr__flight){seq, bytes};
	s->n_flights++;
	return 0;
}

/* ---- channels -------------------------------------------------------------------------------- */

void hr__send_now(struct hr_uplink *u, struct hr_now_message *now)
{
	for (const struct hr__sending *s = u->streams; s && now; s = s->next) {
		if (!s->own || s->state != HR__SENDING_OPEN)
			continue;
		now->m.channel = s->channel;
		hr__send_message(u, HR_WIRE(NOW, now, &now->m));
		break;
	}
	hr_now_message_free(now);
}

static void open_channel(struct hr_uplink *u, struct hr__sending *s)
{
	const Headrace__StreamStart *id = s->stream->id;
	Headrace__Open open = HEADRACE__OPEN__INIT;
	uint64_t real_ns = hr_now_ns(CLOCK_REALTIME);

	/* Reads the list again: segments may be removed, frames dropped. */
	if (hr_spool_stream_refresh(s->stream, false) < 0) {
		s->retry_ms = hr__uplink_now(u) + LATER_MS;
		return;
	}
	if (++u->last_channel == 0)
		u->last_channel = 1;
	s->channel = u->last_channel;
	s->state = HR__SENDING_OPENING;
	u->channels++;
	open.channel = s->channel;
	open.cluster = id->cluster;
	open.job = id->job;
	open.attempt = id->attempt;
	open.node = id->node;
	open.boot_id = id->boot_id;
	open.instance = id->instance;
	open.secret.data = s->stream->secret;
	open.secret.len = sizeof(s->stream->secret);
	open.first_seq = s->stream->first_seq;
	open.last_seq = s->newest;
	open.acked_seq = s->acked;
	/* A later process may continue the stream, so the numbers come from the clock. */
	s->opening = real_ns > s->opening ? real_ns : s->opening + 1;
	open.opening = s->opening;
	hr__send_message(u, HR_WIRE(OPEN, open, &open));
}

static bool needs_channel(const struct hr_uplink *u, const struct hr__sending *s)
{
	return s->state == HR__SENDING_KNOWN && s->newest > s->acked &&
	       hr__uplink_now(u) >= s->retry_ms;
}

/* Opens channels. The stream of this process is first, because a user may wait for it. */
static void open_channels(struct hr_uplink *u)
{
	for (int own = 1; own >= 0; own--)
		for (struct hr__sending *s = u->streams; s; s = s->next)
			if (s->own == own && u->channels < HR__UPLINK_CHANNELS &&
			    needs_channel(u, s))
				open_channel(u, s);
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool fits(const struct hr_uplink *u, size_t bytes)
{
	/* A frame that is larger than the window is sent when nothing else is in flight. */
	return u->in_flight == 0 || u->in_flight + bytes <= u->window_bytes;
}

static bool hold(struct hr_uplink *u, struct hr__sending *s)
{
	int r;

	if (s->held)
		return true;
	r = hr_spool_stream_read(s->stream, s->sent + 1, &s->held, &s->held_bytes);
	if (r == 0 && s->held_bytes <= u->max_frame_bytes)
		return true;
	if (r == 0) {
		hr__send_aside(u, s, "too large",
			       "the collector does not accept a frame of this size");
		return false;
	}
	s->held = NULL;
	if (r == -EBADMSG || r == -ENOENT)
		hr__send_aside(u, s, "damaged", "cannot read a frame in the spool");
	else {
		hr__send_close(u, s);
		s->state = HR__SENDING_KNOWN;
		s->retry_ms = hr__uplink_now(u) + LATER_MS;
	}
	return false;
}

static void use(struct hr_uplink *u, const struct hr__sending *s)
{
	Headrace__Use m = HEADRACE__USE__INIT;

	if (u->used_channel == s->channel)
		return;
	u->used_channel = s->channel;
	m.channel = s->channel;
	hr__send_message(u, HR_WIRE(USE, use, &m));
}

static bool send_held(struct hr_uplink *u, struct hr__sending *s)
{
	uint8_t *frame = s->held;

	use(u, s);
	if (u->link != HR__LINK_UP || push_flight(s, s->sent + 1, s->held_bytes) < 0)
		return false;
	s->held = NULL;
	s->sent++;
	u->in_flight += s->held_bytes;
	if (hr_conn_send(u->conn, frame, s->held_bytes) < 0) {
		hr__link_broken(u, "cannot send");
		return false;
	}
	return true;
}

/* Sends frames of one stream. Returns false if it can send nothing now. */
static bool uplink_send_take_turn(struct hr_uplink *u, struct hr__sending *s)
{
	size_t bytes = 0;

	while (s->state == HR__SENDING_OPEN && s->sent < s->newest && bytes < TURN_BYTES) {
		if (hr_conn_queued(u->conn) > QUEUE_BYTES || !hold(u, s) ||
		    !fits(u, s->held_bytes) || !send_held(u, s))
			break;
		bytes += s->held_bytes;
	}
	return bytes > 0;
}

void hr__send_pump(struct hr_uplink *u)
{
	unsigned idle = 0, n = 0;

	if (u->link != HR__LINK_UP)
		return;
	open_channels(u);
	for (struct hr__sending *s = u->streams; s; s = s->next)
		n++;
	while (u->link == HR__LINK_UP && idle < n) {
		struct hr__sending *s = u->turn ? u->turn : u->streams;

		u->turn = s->next;
		idle = uplink_send_take_turn(u, s) ? 0 : idle + 1;
	}
}

static void note_acknowledged(struct hr_uplink *u, struct hr__sending *s, uint64_t seq)
{
	if (seq <= s->acked)
		return;
	pthread_mutex_lock(&u->lock);
	u->stats.sent_frames += seq - s->acked;
	pthread_mutex_unlock(&u->lock);
	s->acked = seq;
}

/* ---- messages of the collector --------------------------------------------------------------- */

int hr__send_opened(struct hr_uplink *u, const Headrace__Opened *m)
{
	struct hr__sending *s = hr__streams_by_channel(u, m->channel);
	uint64_t oldest;

	if (!s || s->state != HR__SENDING_OPENING)
		return s ? -EPROTO : 0;
	s->state = HR__SENDING_OPEN;
	oldest = s->stream->first_seq - 1;
	if (m->mark > s->newest && !s->ends) {
		hr__send_aside(u, s, "behind",
			       "the collector has more frames than the spool (was its end lost?), "
			       "so new frames would reuse numbers");
		return 0;
	}
	if (m->mark > s->acked)
		hr__link_good(u);
	note_acknowledged(u, s, m->mark < s->newest ? m->mark : s->newest);
	/*
	 * If the collector lacks frames before the spool's first frame, it may answer with a gap.
	 */
	hr__send_rewind(u, s, m->mark < oldest ? oldest : m->mark);
	hr__streams_settle(u, s);
	return 0;
}

int hr__send_ack(struct hr_uplink *u, const Headrace__Ack *m)
{
	struct hr__sending *s = hr__streams_by_channel(u, m->channel);

	if (!s || (s->state != HR__SENDING_OPEN && s->state != HR__SENDING_RESTING))
		return 0; /* the channel was closed in between */
	if (m->seq > s->sent && m->seq > s->acked)
		return -EPROTO; /* this frame was never sent */
	hr__flights_land(u, s, m->seq);
	hr__link_good(u);
	if (m->seq > s->acked) {
		note_acknowledged(u, s, m->seq);
		hr__streams_settle(u, s);
	}
	return 0;
}

static void on_gap(struct hr_uplink *u, struct hr__sending *s, uint64_t mark)
{
	uint64_t now = hr__uplink_now(u);

	if (mark + 1 < s->stream->first_seq) {
		hr__send_aside(u, s, "gap",
			       "the collector lacks frames that another one has acknowledged, and "
			       "does not continue after them");
		return;
	}
	/* The collector sends this Nack for each frame that was under way when the gap arose. */
	s->gap_again = mark == s->gap_mark && now - s->gap_ms < GAP_MS;
	if (s->gap_again) /* hr__send_tick checks whether the gap has closed */
		return;
	s->gap_mark = mark;
	s->gap_ms = now;
	hr__send_rewind(u, s, mark);
}

static void on_full(struct hr_uplink *u, struct hr__sending *s, const Headrace__Nack *m)
{
	uint32_t ms = m->retry_ms ? m->retry_ms : REST_MS;

	hr__send_rewind(u, s, m->mark >= s->stream->first_seq - 1 ? m->mark : s->acked);
	s->state = HR__SENDING_RESTING;
	s->retry_ms = hr__uplink_now(u) + (ms < REST_MOST_MS ? ms : REST_MOST_MS);
}

static bool is_final(const char *reason)
{
	static const char *const reasons[] = {"denied", "malformed", "version", "behind",
					      "retired"};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reasons[i], reason) == 0)
			return true;
	return false;
}

/* Stores for the status why the stream is not sent. */
static void note_wait(struct hr_uplink *u, const char *what, const char *why)
{
	pthread_mutex_lock(&u->lock);
	snprintf(u->stats.error, sizeof(u->stats.error), "%s: %s", what, why);
	pthread_mutex_unlock(&u->lock);
}

int hr__send_nack(struct hr_uplink *u, const Headrace__Nack *m)
{
	struct hr__sending *s = hr__streams_by_channel(u, m->channel);

	if (!s)
		return 0;
	if (m->mark > s->sent && m->mark > s->acked && s->state != HR__SENDING_OPENING)
		return -EPROTO; /* this frame was never sent */
	if (strcmp(m->reason, "gap") == 0 && s->state != HR__SENDING_OPENING) {
		on_gap(u, s, m->mark);
	} else if (strcmp(m->reason, "full") == 0) {
		note_wait(u, "the store of the collector accepts no data", m->text);
		/* For an OPENING stream, the collector sends Opened as soon as it has room. */
		if (s->state != HR__SENDING_OPENING)
			on_full(u, s, m);
	} else if (strcmp(m->reason, "behind") == 0 && s->ends && m->mark >= s->newest) {
		hr__channel_lost(u, s); /* The stream has ended, and the collector has all of it. */
		s->state = HR__SENDING_KNOWN;
		note_acknowledged(u, s, s->newest);
		hr__streams_settle(u, s);
	} else if (is_final(m->reason)) {
		hr__channel_lost(u, s); /* the collector has closed the channel */
		hr__send_aside(u, s, m->reason, m->text);
	} else {
		if (strcmp(m->reason, "limit") == 0)
			note_wait(u, "the collector accepts no new stream now", m->text);
		hr__channel_lost(u, s);
		s->state = HR__SENDING_KNOWN;
		s->retry_ms = hr__uplink_now(u) + (m->retry_ms ? m->retry_ms : LATER_MS);
	}
	return 0;
}

/* ---- the connection comes and goes ----------------------------------------------------------- */

void hr__send_connected(struct hr_uplink *u)
{
	u->last_channel = u->used_channel = 0;
	for (struct hr__sending *s = u->streams; s; s = s->next)
		if (s->state == HR__SENDING_ASIDE && s->aside_at != u->at && s->stream->has_secret)
			s->state = HR__SENDING_KNOWN;
}

void hr__send_disconnected(struct hr_uplink *u)
{
	for (struct hr__sending *s = u->streams; s; s = s->next) {
		hr__channel_lost(u, s);
		s->gap_mark = s->gap_ms = 0;
		s->gap_again = false;
		s->retry_ms = 0;
		if (s->state != HR__SENDING_ASIDE)
			s->state = HR__SENDING_KNOWN;
	}
}

/* After a gap, the frames were sent again. If they did not arrive either, sends them once more. */
static void close_gap(struct hr_uplink *u, struct hr__sending *s)
{
	if (!s->gap_again || hr__uplink_now(u) - s->gap_ms < GAP_MS)
		return;
	s->gap_again = false;
	s->gap_ms = hr__uplink_now(u);
	if (s->state == HR__SENDING_OPEN && s->acked <= s->gap_mark)
		hr__send_rewind(u, s, s->gap_mark);
}

void hr__send_tick(struct hr_uplink *u)
{
	for (struct hr__sending *s = u->streams; s; s = s->next) {
		if (s->state == HR__SENDING_RESTING && hr__uplink_now(u) >= s->retry_ms)
			s->state = HR__SENDING_OPEN;
		close_gap(u, s);
	}
}
