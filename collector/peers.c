/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/peers_internal.h"
#include "common/log.h"
#include "net/wire.h"

#define HELLO_MS     10000u
#define FRAME_MS     300000u /* time limit for a frame */
#define SILENT_PINGS 3u
/* a client of queries without a query is disconnected after so many Pings */
#define IDLE_PINGS 12u
#define UNREAD_MS  3600000u /* time limit for reading an answer */
/* limit of unread answers, far above the one at which a query pauses */
#define UNREAD_BYTES (4u << 20)

/* ---- messages ---- */

static void peers_ask(struct hr__peer *p, const Headrace__Query *query)
{
	int r = hr_queries_begin(p->peers->queries, p->conn, &p->who, query);

	p->asks = true;
	p->active_ms = uv_now(p->peers->loop);
	p->active_ping = p->ping_id;
	if (r == -EBUSY)
		hr__peer_refuse(p, "malformed", "only one query at a time on a connection");
	else if (r < 0 && r != -EACCES)
		hr__peer_refuse(p, "busy", "cannot start the query: %s", strerrordesc_np(-r));
}

static void take_known(struct hr__peer *p, const Headrace__Wire *msg)
{
	switch (msg->body_case) {
	case HEADRACE__WIRE__BODY_OPEN:
		hr__peer_open(p, msg->open);
		break;
	case HEADRACE__WIRE__BODY_USE:
		/* NULL if a Nack has closed the channel, and the peer has not read it yet */
		p->current = hr__peer_chan(p, msg->use->channel);
		break;
	case HEADRACE__WIRE__BODY_CLOSE:
		hr__peer_close_chan(p, msg->close->channel);
		break;
	case HEADRACE__WIRE__BODY_PONG:
		hr__peer_pong(p, msg->pong);
		break;
	case HEADRACE__WIRE__BODY_NOW:
		hr__peer_now(p, msg->now);
		break;
	case HEADRACE__WIRE__BODY_LOOK:
		hr__peer_look(p, msg->look);
		break;
	case HEADRACE__WIRE__BODY_QUERY:
		peers_ask(p, msg->query);
		break;
	case HEADRACE__WIRE__BODY_CANCEL:
		hr_queries_cancel(p->peers->queries, p->conn);
		break;
	case HEADRACE__WIRE__BODY_HELLO:
	case HEADRACE__WIRE__BODY_QUERY_ORDER:
		hr__peer_refuse(p, "malformed", "unexpected message");
		break;
	default: /* ignores messages of newer versions */
		break;
	}
}

static void take_control(struct hr__peer *p, const Headrace__Wire *msg)
{
	if (p->state == HR__PEER_KNOWN)
		take_known(p, msg);
	else if (p->state == HR__PEER_STRANGE && msg->body_case == HEADRACE__WIRE__BODY_HELLO)
		hr__peer_hello(p, msg->hello);
	else
		hr__peer_refuse(p, "malformed", "the first message must be Hello");
}

/* ---- events of a connection ---- */

static void peers_on_ready(void *self)
{
	struct hr__peer *p = self;
	char *colon;

	hr_conn_peer(p->conn, &p->about);
	hr_sockaddr_text(&p->about.address, p->address, sizeof(p->address));
	snprintf(p->host, sizeof(p->host), "%s", p->address);
	colon = strrchr(p->host, ':');
	if (colon)
		*colon = '\0';
	if (p->about.loopback) /* count all loopback addresses as one host */
		snprintf(p->host, sizeof(p->host), "this machine");
}

static struct hr__peer *slowest(struct hr_peers *peers)
{
	struct hr__peer *found = NULL;

	for (struct hr__peer *p = peers->first; p; p = p->next)
		if (p->begun > 0 && (!found || p->begun_ms < found->begun_ms))
			found = p;
	return found;
}

static void send_away(struct hr__peer *p, const char *why)
{
	hr__peer_complain(p, why, "%s: closed", why);
	hr__peer_leave(p, true);
}

static void on_begun(void *self, size_t bytes)
{
	struct hr__peer *p = self, *victim;
	struct hr_peers *peers = p->peers;

	if (p->state == HR__PEER_LEAVING)
		return;
	p->begun = bytes;
	p->begun_ms = uv_now(peers->loop);
	peers->begun += bytes;
	while (peers->begun > peers->config.memory_bytes && (victim = slowest(peers)) != p)
		send_away(victim, "the other side does not complete a frame");
}

static int peers_on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct hr__peer *p = self;
	Headrace__Wire *msg;
	int r;

	hr__peer_frame_done(p);
	p->frame_ms = uv_now(p->peers->loop);
	if (p->state != HR__PEER_LEAVING && hr_conn_queued(p->conn) > UNREAD_BYTES)
		send_away(p, "the client does not read the answers");
	if (p->state == HR__PEER_LEAVING || p->peers->stopping) {
		free(frame);
		return 0;
	}
	if (!control && p->state == HR__PEER_KNOWN)
		return hr__peer_data(p, frame, bytes);
	r = control ? hr_wire_unpack(frame, bytes, &msg) : -EBADMSG;
	free(frame);
	if (r < 0) {
		hr__peer_refuse(p, "malformed", "received something that is not a message");
		return 0;
	}
	take_control(p, msg);
	headrace__wire__free_unpacked(msg, NULL);
	return 0;
}

static void on_drained(void *self)
{
	struct hr__peer *p = self;

	if (p->state == HR__PEER_KNOWN)
		hr_queries_drained(p->peers->queries, p->conn);
}

static void peers_on_closed(void *self, int error, const char *why)
{
	struct hr__peer *p = self;

	if (p->state != HR__PEER_LEAVING) {
		if (error < 0)
			hr__peer_complain(p, why, "%s", why);
		if (p->state == HR__PEER_STRANGE)
			p->peers->n_strange--;
		hr__peer_frame_done(p);
		hr__peer_close_chans(p);
		hr_queries_drop(p->peers->queries, p->conn);
	}
	if (p->paused)
		p->peers->n_paused--;
	p->state = HR__PEER_LEAVING;
	p->conn = NULL;
	if (!p->asking)
		hr__peer_free(p);
}

/* ---- limits ---- */

/* Returns the oldest connection without Hello from `host` (NULL: from any host). */
static struct hr__peer *oldest_stranger(struct hr_peers *peers, const char *host)
{
	for (struct hr__peer *p = peers->first; p; p = p->next)
		if (p->state == HR__PEER_STRANGE && (!host || strcmp(p->host, host) == 0))
			return p;
	return NULL;
}

static size_t strangers_of(const struct hr_peers *peers, const char *host)
{
	size_t n = 0;

	for (const struct hr__peer *p = peers->first; p; p = p->next)
		n += p->state == HR__PEER_STRANGE && strcmp(p->host, host) == 0;
	return n;
}

static void peers_make_room(struct hr_peers *peers, struct hr__peer *newest)
{
	size_t max = peers->config.max_connections, share = HR__SHARE(max);
	struct hr__peer *victim = NULL;

	/* calls strangers_of() only if necessary, because it visits all peers */
	if (peers->n_strange > share && strangers_of(peers, newest->host) > share)
		victim = oldest_stranger(peers, newest->host);
	else if (peers->n > max)
		victim = oldest_stranger(peers, NULL);
	if (!victim)
		return;
	hr_log_about(HR_LOG_WARNING, "limit", "%s: too many connections (max_connections = %zu)",
		     victim->address, max);
	hr__peer_refuse(victim, "limit", "too many connections; try again later");
}

static const struct hr_conn_events peer_events = {.ready = peers_on_ready,
						  .frame = peers_on_frame,
						  .begun = on_begun,
						  .drained = on_drained,
						  .closed = peers_on_closed};

void hr_peers_accept(struct hr_peers *peers, uv_stream_t *listener, struct hr_tls *tls, bool plain)
{
	struct hr__peer *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (p) {
		p->peers = peers;
		p->came_ms = p->frame_ms = p->resumed_ms = p->pinged_ms = uv_now(peers->loop);
		r = hr_conn_accept(listener, tls, plain, &peer_events, p, &p->conn);
	}
	if (r < 0) {
		hr_log_about(HR_LOG_WARNING, "accept", "cannot accept a connection: %s",
			     strerrordesc_np(-r));
		free(p);
		return;
	}
	peers_on_ready(p); /* sets the address; the rest is known after the handshake */
	p->at = peers->last;
	*peers->last = p;
	peers->last = &p->next;
	peers->n++;
	peers->n_strange++;
	peers_make_room(peers, p);
}

/* ---- time ---- */

static bool is_being_answered(const struct hr__peer *p)
{
	return hr_queries_has(p->peers->queries, p->conn) || hr_conn_queued(p->conn) > 0;
}

/*
 * A client of queries whose output a pager blocks reads nothing, and so answers Pings late. A Pong
 * for a Ping after an answer shows that the client has read the answer. Keepalive detects dead
 * machines.
 */
static void tick_asking(struct hr__peer *p, uint64_t now_ms)
{
	bool read = !p->ping_open && p->ping_id > p->active_ping;

	if (is_being_answered(p)) {
		p->active_ms = now_ms;
		p->active_ping = p->ping_id + 1; /* number of the next Ping */
	} else if (now_ms - p->active_ms >=
		   (read ? IDLE_PINGS * p->peers->config.ping_ms : UNREAD_MS)) {
		hr__peer_refuse(p, "limit", "the connection sent no query for too long");
	}
}

static void tick(struct hr__peer *p, uint64_t now_ms)
{
	const struct hr_peers_config *c = &p->peers->config;
	uint64_t heard_ms = hr_conn_received_ms(p->conn);

	/*
	 * What a node sends while the collector does not read does not show whether it is silent.
	 */
	for (struct hr__chan *chan = p->chans; p->paused && chan; chan = chan->next)
		hr_fleet_note_frame(chan->live, now_ms);
	if (p->paused || p->state == HR__PEER_LEAVING || p->state == HR__PEER_ASKED)
		return;
	if (heard_ms < p->resumed_ms)
		heard_ms = p->resumed_ms;
	if (p->state == HR__PEER_STRANGE) {
		if (now_ms - p->came_ms >= HELLO_MS)
			hr__peer_refuse(p, "identity", "no Hello within %u s", HELLO_MS / 1000);
		return;
	}
	if (p->asks && (!p->chans || is_being_answered(p)))
		tick_asking(p, now_ms);
	else if (now_ms - heard_ms >= SILENT_PINGS * c->ping_ms ||
		 (p->frame_ms + FRAME_MS < now_ms && p->resumed_ms + FRAME_MS < now_ms))
		send_away(p, "the other side sends no data, or is too slow");
	if (p->state == HR__PEER_KNOWN && now_ms - p->pinged_ms >= c->ping_ms)
		hr__peer_ping(p);
}

void hr_peers_tick(struct hr_peers *peers)
{
	uint64_t now_ms = uv_now(peers->loop);
	struct hr__peer *next;

	for (struct hr__peer *p = peers->first; p; p = next) {
		next = p->next;
		if (p->conn)
			tick(p, now_ms);
	}
}

void hr_peers_pause(struct hr_peers *peers)
{
	peers->stopping = true;
	for (struct hr__peer *p = peers->first; p; p = p->next)
		if (p->conn)
			hr_conn_pause(p->conn, true);
}

void hr_peers_dismiss(struct hr_peers *peers)
{
	struct hr__peer *next;

	for (struct hr__peer *p = peers->first; p; p = next) {
		next = p->next;
		if (p->conn)
			hr__peer_refuse(p, "shutdown", "the collector is stopping");
	}
}

void hr_peers_rules(struct hr_peers *p, const struct hr_who_rules *rules)
{
	p->config.rules = *rules;
}

/* ---- beginning and end ---- */

int hr_peers_new(uv_loop_t *loop, const struct hr_peers_config *config, struct hr_ingest *ingest,
		 struct hr_queries *queries, struct hr_peers **ret)
{
	struct hr_peers *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->loop = loop;
	p->config = *config;
	p->ingest = ingest;
	p->queries = queries;
	p->last = &p->first;
	*ret = p;
	return 0;
}

void hr_peers_free(struct hr_peers *p)
{
	struct hr__chan *next;

	for (struct hr__chan *chan = p ? p->orphans : NULL; chan; chan = next) {
		next = chan->next;
		free(chan);
	}
	free(p);
}

size_t hr_peers_count(const struct hr_peers *p)
{
	return p->n;
}

void hr_peers_stats(const struct hr_peers *p, struct hr_peers_stats *ret)
{
	*ret = (struct hr_peers_stats){.strangers = p->n_strange,
				       .known = p->n - p->n_strange,
				       .paused = p->n_paused,
				       .in_flight_bytes = p->in_flight,
				       .refused = p->n_refused};
}
