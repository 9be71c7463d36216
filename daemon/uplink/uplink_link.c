/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uplink/uplink_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/munge.h"

#define GREETING_MS  10000u /* how long the uplink waits for HelloAck */
#define PING_MS	     10000u /* default, if HelloAck has no value */
#define SILENT_PINGS 3u
#define WINDOW_BYTES (32u << 20) /* default, if HelloAck has no value */
#define STEADY_MS    10000u	 /* a connection that lasted this long was good */

static void dial(struct hr_uplink *u);

/* ---- reconnecting ---------------------------------------------------------------------------- */

static void on_redial(uv_timer_t *timer)
{
	dial(timer->data);
}

static void round_failed(struct hr_uplink *u)
{
	u->next = 0;
	pthread_mutex_lock(&u->lock);
	u->stats.failed_rounds++;
	pthread_mutex_unlock(&u->lock);
	uv_timer_start(&u->redial, on_redial, hr_backoff_next_ms(&u->backoff), 0);
}

/* Connects again: to the first collector if the connection had `stood`, else to the next one. */
static void try_again(struct hr_uplink *u, bool stood)
{
	hr__link_set(u, HR__LINK_WAITING);
	if (!stood && u->next < u->c.n_collectors)
		uv_timer_start(&u->redial, on_redial, 0, 0);
	else
		round_failed(u);
}

static void uplink_link_on_closed(void *self, int error, const char *why)
{
	struct hr_uplink *u = self;
	bool stood = u->stats.connected, ours = u->link == HR__LINK_CLOSING;

	u->conn = NULL;
	hr__send_disconnected(u);
	pthread_mutex_lock(&u->lock);
	u->stats.connected = false;
	pthread_mutex_unlock(&u->lock);
	if (!ours && stood)
		hr__link_error(u, error ? why : "the collector ended the connection", "");
	else if (!ours)
		hr__link_error(u, why,
			       hr_conn_advice(&u->c.collectors[u->at], u->tls != NULL, error));
	if (u->ending)
		return;
	if (u->moving)
		u->next = 0;
	try_again(u, stood && !u->moving);
	u->moving = false;
}

/* ---- Hello ----------------------------------------------------------------------------------- */

/* Returns a MUNGE credential; NULL: none, or the kernel identifies the peer. */
static char *credential(struct hr_uplink *u)
{
	struct hr_conn_peer peer;
	char *text = NULL, *error = NULL;

	hr_conn_peer(u->conn, &peer);
	if (!peer.loopback && hr_munge_encode(getenv("HEADRACE_MUNGE_SOCKET"), &text, &error) < 0)
		text = NULL;
	free(error);
	return text;
}

static void uplink_link_on_ready(void *self)
{
	struct hr_uplink *u = self;
	Headrace__Hello hello = HEADRACE__HELLO__INIT;
	char *munge = credential(u);

	hr__link_set(u, HR__LINK_GREETING);
	hello.min_version = HR_WIRE_VERSION_MIN;
	hello.max_version = HR_WIRE_VERSION;
	hello.software = (char *)(uintptr_t)u->c.software;
	hello.node = (char *)(uintptr_t)u->c.node;
	hello.boot_id = (char *)(uintptr_t)u->c.boot_id;
	if (munge)
		hello.munge = munge;
	if (hr_conn_send_now(u->conn, HR_WIRE(HELLO, hello, &hello)) < 0)
		hr__link_broken(u, "cannot send");
	free(munge);
}

static int on_hello_ack(struct hr_uplink *u, const Headrace__HelloAck *m)
{
	if (u->link != HR__LINK_GREETING)
		return -EPROTO;
	if (m->version < HR_WIRE_VERSION_MIN || m->version > HR_WIRE_VERSION) {
		hr__link_broken(u,
				"the collector uses version %u of the protocol, and this headraced "
				"supports %u to %u",
				m->version, HR_WIRE_VERSION_MIN, HR_WIRE_VERSION);
		return 0;
	}
	u->ping_ms = m->ping_ms ? m->ping_ms : PING_MS;
	u->window_bytes = m->window_bytes ? m->window_bytes : WINDOW_BYTES;
	u->max_frame_bytes =
	    m->max_frame_bytes ? m->max_frame_bytes : HR_FRAME_HDR_BYTES + HR_FRAME_MAX_BYTES;
	u->better_at_ms = hr__uplink_now(u) + u->c.better_ms;
	u->next = 0;
	hr__link_set(u, HR__LINK_UP);
	pthread_mutex_lock(&u->lock);
	u->stats.connected = true;
	hr_address_text(&u->c.collectors[u->at], u->stats.collector, sizeof(u->stats.collector));
	pthread_mutex_unlock(&u->lock);
	hr__send_connected(u);
	return 0;
}

static int on_ack(struct hr_uplink *u, const Headrace__Ack *m)
{
	int r = hr__send_ack(u, m);

	hr__streams_publish(u); /* another thread may wait for the acknowledgement */
	return r;
}

static int on_message(struct hr_uplink *u, const Headrace__Wire *m)
{
	switch (m->body_case) {
	case HEADRACE__WIRE__BODY_HELLO_ACK:
		return on_hello_ack(u, m->hello_ack);
	case HEADRACE__WIRE__BODY_REFUSAL:
		hr_wire_sanitize(m->refusal->reason, false);
		hr_wire_sanitize(m->refusal->text, false);
		hr__link_broken(u, "the collector refuses the connection (%s): %s",
				m->refusal->reason, m->refusal->text);
		return 0;
	case HEADRACE__WIRE__BODY_PING:
		return hr_conn_pong(u->conn, m->ping->id);
	case HEADRACE__WIRE__BODY_OPENED:
		u->answer_ms = hr__uplink_now(u);
		return hr__send_opened(u, m->opened);
	case HEADRACE__WIRE__BODY_ACK:
		u->answer_ms = hr__uplink_now(u);
		return on_ack(u, m->ack);
	case HEADRACE__WIRE__BODY_NACK:
		u->answer_ms = hr__uplink_now(u);
		hr_wire_sanitize(m->nack->reason, false);
		hr_wire_sanitize(m->nack->text, false);
		return hr__send_nack(u, m->nack);
	default:
		return 0; /* a message that only newer collectors send */
	}
}

static int uplink_link_on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct hr_uplink *u = self;
	Headrace__Wire *msg;
	int r = control ? hr_wire_unpack(frame, bytes, &msg) : -EPROTO;

	free(frame);
	if (r)
		return r;
	r = u->link == HR__LINK_CLOSING ? 0 : on_message(u, msg);
	headrace__wire__free_unpacked(msg, NULL);
	if (!r && u->link == HR__LINK_UP)
		hr__send_pump(u);
	return r;
}

static void on_drained(void *self)
{
	hr__send_pump(self);
}

static const struct hr_conn_events events = {.ready = uplink_link_on_ready,
					     .frame = uplink_link_on_frame,
					     .drained = on_drained,
					     .closed = uplink_link_on_closed};

/* ---- life ------------------------------------------------------------------------------------ */

/*
 * Reads the certificates again, because sites renew them. After a failure, the old ones stay in
 * use.
 */
static bool read_certificates(struct hr_uplink *u)
{
	struct hr_tls *tls;
	char *error = NULL;
	int r = u->c.tls ? hr_tls_new(u->c.tls, false, &tls, &error) : 0;

	if (u->c.tls && r == 0) {
		hr_tls_unref(u->tls);
		u->tls = tls;
	} else if (r < 0) {
		hr__link_error(u, error ? error : strerrordesc_np(-r), "");
	}
	free(error);
	return r == 0 || u->tls;
}

static void dial(struct hr_uplink *u)
{
	int r;

	u->at = u->next++;
	hr__link_set(u, HR__LINK_DIALLING);
	if (!read_certificates(u)) {
		try_again(u, false);
		return;
	}
	r = hr_conn_connect(&u->loop, &u->c.collectors[u->at], u->tls, &events, u, &u->conn);
	if (!r)
		return;
	u->conn = NULL;
	hr__link_error(u, strerrordesc_np(-r), "");
	try_again(u, false);
}

void hr__link_start(struct hr_uplink *u)
{
	u->next = 0;
	dial(u);
}

/* Returns whether the uplink may change to a better collector: no frame waits for an answer. */
static bool may_try_better(const struct hr_uplink *u)
{
	return u->at > 0 && u->in_flight == 0 && hr__uplink_now(u) >= u->better_at_ms;
}

static bool owed(const struct hr_uplink *u)
{
	bool opening = false;

	for (const struct hr__sending *s = u->streams; s && !opening; s = s->next)
		opening = s->state == HR__SENDING_OPENING;
	return opening || u->in_flight > 0;
}

void hr__link_tick(struct hr_uplink *u)
{
	uint64_t now = hr__uplink_now(u);

	if (u->link == HR__LINK_GREETING && now - u->link_ms > GREETING_MS) {
		hr__link_broken(u, "connected, but the other side does not answer as a collector");
	} else if (u->link == HR__LINK_UP) {
		if (now - u->link_ms > STEADY_MS)
			hr__link_good(u);
		if (u->answer_ms < u->link_ms || !owed(u))
			u->answer_ms = now;
		if (now - hr_conn_received_ms(u->conn) > SILENT_PINGS * u->ping_ms) {
			hr__link_broken(u, "the collector has sent nothing for %llu s",
					(unsigned long long)(SILENT_PINGS * u->ping_ms / 1000));
		} else if (now - u->answer_ms > u->c.owed_ms) {
			hr__link_broken(
			    u, "the collector answers, but has acknowledged nothing for %llu s",
			    (unsigned long long)(u->c.owed_ms / 1000));
		} else if (may_try_better(u)) {
			u->moving = true;
			hr__link_set(u, HR__LINK_CLOSING);
			hr_conn_close(u->conn, false);
		}
	}
}

void hr__link_close(struct hr_uplink *u)
{
	u->ending = true;
	uv_close((uv_handle_t *)&u->redial, NULL);
	if (u->conn)
		hr_conn_close(u->conn, false);
}
