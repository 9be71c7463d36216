/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.c - one peer: messages to it, its channels, and its end. Channels pass frames to ingest, and
 * answers of ingest to the peer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/peers_internal.h"
#include "common/log.h"
#include "common/now.h"
#include "net/wire.h"

#define CHANNELS_MAX 4096u
/* limit of channels that are opening or closing; above it, reading pauses */
#define BUSY_MAX   256u
#define OPEN_BYTES 4096u   /* size limit of an Open message, whose names become file names */
#define NODE_JOB   "_node" /* name of the job whose streams describe nodes */

/*
 * ---- messages ----
 *
 * Errors of sending are ignored: the connection is closing, or memory is short, which the peer
 * notices.
 */

void hr__peer_complain(const struct hr__peer *p, const char *about, const char *format, ...)
{
	char key[256], text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(key, sizeof(key), "%s %s", p->host, about);
	hr_log_about(HR_LOG_WARNING, key, "%s%s%s: %s", p->address, p->who.text[0] ? " " : "",
		     p->who.text, text);
}

/* ---- channels ---- */

static size_t senders(const struct hr_peers *peers)
{
	size_t n = 0;

	for (const struct hr__peer *p = peers->first; p; p = p->next)
		n += p->in_flight > 0;
	return n > 0 ? n : 1;
}

static bool takes_too_much(const struct hr__peer *p)
{
	const struct hr_peers_config *c = &p->peers->config;

	if (p->in_flight > 2 * p->window_bytes)
		return true;
	if (p->n_busy > BUSY_MAX)
		return true;
	if (p->peers->in_flight <= c->memory_bytes)
		return false;
	return p->in_flight >= c->memory_bytes / senders(p->peers) ||
	       p->peers->in_flight > c->memory_bytes + c->memory_bytes / 4;
}

static void pause_peer(struct hr__peer *p, bool paused)
{
	if (p->paused == paused || !p->conn)
		return;
	p->paused = paused;
	if (paused)
		p->peers->n_paused++;
	else
		p->peers->n_paused--;
	p->resumed_ms = uv_now(p->peers->loop);
	if (!p->peers->stopping)
		hr_conn_pause(p->conn, paused);
}

static void resume_peers(struct hr_peers *peers)
{
	if (peers->n_paused == 0 || peers->in_flight > peers->config.memory_bytes / 2)
		return;
	for (struct hr__peer *p = peers->first; p; p = p->next)
		if (p->paused && p->in_flight <= p->window_bytes && p->n_busy <= BUSY_MAX / 2)
			pause_peer(p, false);
}

static void chan_release(struct hr__chan *chan, size_t bytes)
{
	chan->in_flight -= bytes;
	if (chan->peer)
		chan->peer->in_flight -= bytes;
	chan->peers->in_flight -= bytes;
}

static void chan_put(struct hr__chan *chan, struct hr__chan **list)
{
	chan->next = *list;
	chan->at = list;
	if (chan->next)
		chan->next->at = &chan->next;
	*list = chan;
}

static void take_out(struct hr__chan *chan)
{
	*chan->at = chan->next;
	if (chan->next)
		chan->next->at = chan->at;
}

/* Returns the pointer to the channel with this number, or where to insert this channel. */
static struct hr__chan **place_of(struct hr__peer *p, uint32_t number)
{
	struct hr__chan **at = &p->by_number[number % HR__CHAN_BUCKETS];

	while (*at && (*at)->number != number)
		at = &(*at)->next_number;
	return at;
}

struct hr__chan *hr__peer_chan(struct hr__peer *p, uint32_t number)
{
	return p->by_number ? *place_of(p, number) : NULL;
}

static void opened(struct hr__chan *chan)
{
	chan->peer->n_busy -= chan->opening;
	chan->opening = false;
}

/* Closes a channel, so that the peer can use its number again. Ingest answers GONE later. */
static void drop(struct hr__chan *chan)
{
	struct hr__peer *p = chan->peer;

	if (p->current == chan)
		p->current = NULL;
	opened(chan);
	*place_of(p, chan->number) = chan->next_number;
	chan->next_number = NULL;
	chan->number = 0;
	p->n_busy++;
	hr_fleet_remove(chan->live);
	chan->live = NULL;
	hr_ingest_close(chan->channel);
}

static void gone(struct hr__chan *chan)
{
	chan_release(chan, chan->in_flight);
	take_out(chan);
	if (chan->peer) {
		chan->peer->n_chans--;
		chan->peer->n_busy--;
	}
	free(chan);
}

void hr__peer_close_chan(struct hr__peer *p, uint32_t number)
{
	struct hr__chan *chan = hr__peer_chan(p, number);

	if (chan)
		drop(chan);
}

void hr__peer_close_chans(struct hr__peer *p)
{
	struct hr__chan *chan;

	while ((chan = p->chans) != NULL) {
		if (chan->number)
			drop(chan);
		take_out(chan);
		chan_put(chan, &p->peers->orphans);
		chan->peer = NULL;
	}
	p->in_flight = p->n_chans = p->n_busy = 0;
}

static void nack(struct hr__peer *p, uint32_t number, const struct hr_answer *a)
{
	Headrace__Nack msg = HEADRACE__NACK__INIT;

	msg.channel = number;
	msg.reason = (char *)a->reason;
	msg.text = (char *)a->text;
	msg.mark = a->mark;
	msg.retry_ms = a->retry_ms;
	(void)hr_conn_send_now(p->conn, HR_WIRE(NACK, nack, &msg));
}

/* Returns why the peer may not open this stream; NULL: it may. */
static const char *refusal(const struct hr__peer *p, const Headrace__Open *o)
{
	const struct hr_who *w = &p->who;

	if (w->any_node || w->anonymous)
		return NULL;
	if (w->one_node)
		return hr_who_is_node(w, o->node) ? NULL
						  : "the certificate belongs to another node";
	if (!w->user)
		return "this connection may not stream";
	return strcmp(o->job, NODE_JOB) == 0 ? "a user may stream jobs, but not node data" : NULL;
}

void hr__peer_open(struct hr__peer *p, const Headrace__Open *o)
{
	struct hr_ingest_right right = {.own_jobs = hr_who_own_jobs(&p->who),
					.node = p->who.any_node || p->who.one_node,
					.uid = p->who.uid};
	const char *why = refusal(p, o);
	struct hr__chan *chan;

	hr__peer_close_chan(p, o->channel);
	if (!why && o->channel == 0)
		why = "channel numbers begin at 1";
	if (!why && p->n_chans >= CHANNELS_MAX)
		why = "too many channels on one connection";
	if (!why && headrace__open__get_packed_size(o) > OPEN_BYTES)
		why = "the names are too long";
	if (why) {
		hr__peer_complain(p, why, "job %s on %s: %s", o->job, o->node, why);
		nack(p, o->channel, &(struct hr_answer){.reason = "denied", .text = why});
		return;
	}
	snprintf(right.peer, sizeof(right.peer), "%.*s", (int)sizeof(right.peer) - 1, p->who.text);
	if (!p->by_number)
		p->by_number = calloc(HR__CHAN_BUCKETS, sizeof(struct hr__chan *));
	chan = p->by_number ? calloc(1, sizeof(*chan)) : NULL;
	if (chan) {
		chan->peers = p->peers;
		chan->peer = p;
		chan->number = o->channel;
		chan->opening = true;
	}
	if (!chan || hr_ingest_open(p->peers->ingest, chan, o, &right, &chan->channel) < 0) {
		free(chan);
		nack(p, o->channel,
		     &(struct hr_answer){.reason = "error", .text = "out of memory"});
		return;
	}
	chan->live = hr_fleet_add(&p->peers->fleet, o);
	chan_put(chan, &p->chans);
	*place_of(p, o->channel) = chan;
	p->n_chans++;
	p->n_busy++;
	/* passes the clock now, because a short job may end before the next Pong */
	if (p->clock.best.known)
		(void)hr_ingest_clock(chan->channel, &p->clock.best);
	if (takes_too_much(p))
		pause_peer(p, true);
}

int hr__peer_data(struct hr__peer *p, uint8_t *frame, size_t bytes)
{
	struct hr__chan *chan = p->current;
	int r;

	if (!chan) { /* a Nack has closed the channel, but the peer had not read it */
		free(frame);
		return 0;
	}
	r = hr_ingest_frame(chan->channel, frame, bytes);
	if (r < 0)
		return r;
	hr_fleet_note_frame(chan->live, uv_now(p->peers->loop));
	chan->in_flight += bytes;
	p->in_flight += bytes;
	p->peers->in_flight += bytes;
	if (takes_too_much(p))
		pause_peer(p, true);
	return 0;
}

static void take_nack(struct hr__chan *chan, const struct hr_answer *a)
{
	opened(chan);
	if (a->alarm)
		hr__peer_complain(chan->peer, a->reason, "%s: %s", a->reason, a->text);
	nack(chan->peer, chan->number, a);
	if (a->closed)
		drop(chan);
}

static void answer_take(const struct hr_answer *a)
{
	Headrace__Opened words = HEADRACE__OPENED__INIT;
	Headrace__Ack ack = HEADRACE__ACK__INIT;
	struct hr__chan *chan = a->self;

	switch (a->kind) {
	case HR_ANSWER_RELEASED:
		chan_release(chan, a->bytes);
		break;
	case HR_ANSWER_OPENED:
		opened(chan);
		words.channel = chan->number;
		words.mark = a->mark;
		(void)hr_conn_send_now(chan->peer->conn, HR_WIRE(OPENED, opened, &words));
		break;
	case HR_ANSWER_ACK:
		ack.channel = chan->number;
		ack.seq = a->mark;
		(void)hr_conn_send_now(chan->peer->conn, HR_WIRE(ACK, ack, &ack));
		break;
	case HR_ANSWER_NACK:
		take_nack(chan, a);
		break;
	case HR_ANSWER_GONE:
		gone(chan);
		break;
	}
}

void hr_peers_answers(struct hr_peers *peers)
{
	hr_ingest_answers(peers->ingest, answer_take);
	resume_peers(peers);
}

void hr__peer_ping(struct hr__peer *p)
{
	Headrace__Ping ping = HEADRACE__PING__INIT;

	ping.id = ++p->ping_id;
	p->ping_open = true;
	p->pinged_ms = uv_now(p->peers->loop);
	p->ping_real_ns = hr_now_ns(CLOCK_REALTIME);
	(void)hr_conn_send_now(p->conn, HR_WIRE(PING, ping, &ping));
}

void hr__peer_pong(struct hr__peer *p, const Headrace__Pong *pong)
{
	uint64_t now_ns = hr_now_ns(CLOCK_MONOTONIC);

	if (!p->ping_open || pong->id != p->ping_id)
		return;
	p->ping_open = false;
	hr_node_clock_add(&p->clock, p->ping_real_ns, hr_now_ns(CLOCK_REALTIME), now_ns,
			  pong->real_ns);
	for (struct hr__chan *chan = p->chans; chan; chan = chan->next)
		if (chan->number)
			(void)hr_ingest_clock(chan->channel, &p->clock.best);
}

/* ---- the end ---- */

void hr__peer_frame_done(struct hr__peer *p)
{
	p->peers->begun -= p->begun;
	p->begun = 0;
}

void hr__peer_leave(struct hr__peer *p, bool now)
{
	if (p->state == HR__PEER_STRANGE)
		p->peers->n_strange--;
	hr__peer_frame_done(p);
	p->state = HR__PEER_LEAVING;
	hr__peer_close_chans(p);
	hr_queries_drop(p->peers->queries, p->conn);
	hr_conn_close(p->conn, now);
}

void hr__peer_refuse(struct hr__peer *p, const char *reason, const char *format, ...)
{
	Headrace__Refusal refusal = HEADRACE__REFUSAL__INIT;
	char text[512];
	va_list args;

	if (p->state == HR__PEER_LEAVING)
		return;
	p->peers->n_refused++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	refusal.reason = (char *)reason;
	refusal.text = text;
	(void)hr_conn_send_now(p->conn, HR_WIRE(REFUSAL, refusal, &refusal));
	hr__peer_leave(p, false);
}

void hr__peer_free(struct hr__peer *p)
{
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	else
		p->peers->last = p->at;
	p->peers->n--;
	free(p->by_number);
	free(p);
}
