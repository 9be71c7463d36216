/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies a peer in a thread of libuv, because munged and the user database may be slow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/peers_internal.h"
#include "net/wire.h"

#define WINDOW_LEAST ((size_t)256 << 10)

struct question {
	uv_work_t work;
	struct hr__peer *peer;
	struct hr_who_rules rules;
	struct hr_conn_peer about;
	char *credential;
	uint32_t version;
	struct hr_who who;
	char *error;
	int result;
};

static void question_free(struct question *q)
{
	free(q->credential);
	free(q->error);
	free(q);
}

static void peer_hello_decide(uv_work_t *work)
{
	struct question *q = work->data;

	q->result = hr_who_decide(&q->rules, &q->about, q->credential, &q->who, &q->error);
}

/*
 * A node gets a smaller window if there are many, so that all of them can wait for a slow store
 * without using up the memory. Else the collector would have to stop reading from them, and would
 * also not get the live picture, which comes after their frames.
 */
static size_t share_of_memory(const struct hr_peers *peers)
{
	size_t share = peers->config.memory_bytes / 2 / peers->n;

	share = share > WINDOW_LEAST ? share : WINDOW_LEAST;
	return share < peers->config.window_bytes ? share : peers->config.window_bytes;
}

static void welcome(struct hr__peer *p, uint32_t version)
{
	const struct hr_peers_config *c = &p->peers->config;
	Headrace__HelloAck ack = HEADRACE__HELLO_ACK__INIT;

	ack.version = version;
	ack.software = "headrace-collector " HEADRACE_VERSION;
	ack.who = p->who.text;
	ack.ping_ms = (uint32_t)c->ping_ms;
	ack.window_bytes = p->window_bytes = share_of_memory(p->peers);
	ack.max_frame_bytes = c->max_frame_bytes;
	ack.munge = c->rules.munge;
	hr_conn_limit(p->conn, c->max_frame_bytes);
	(void)hr_conn_send_now(p->conn, HR_WIRE(HELLO_ACK, hello_ack, &ack));
	hr__peer_ping(p); /* the Pong gives a first estimate of the clock of the node */
}

/* Returns whether the user or node has too many connections. Root and anonymous have no limit. */
static bool has_share(const struct hr__peer *p)
{
	size_t most = HR__SHARE(p->peers->config.max_connections), n = 0;

	if (p->who.any_node || p->who.anonymous || p->peers->n <= most)
		return false;
	for (const struct hr__peer *q = p->peers->first; q; q = q->next)
		n += q->state == HR__PEER_KNOWN && strcmp(q->who.text, p->who.text) == 0;
	return n > most;
}

static void decided(uv_work_t *work, int status)
{
	struct question *q = work->data;
	struct hr__peer *p = q->peer;

	p->asking = false;
	if (!p->conn) {
		hr__peer_free(p);
	} else if (p->state == HR__PEER_LEAVING) {
		; /* the peer was disconnected meanwhile */
	} else if (status == 0 && q->result == 0) {
		p->who = q->who;
		p->state = HR__PEER_KNOWN;
		p->resumed_ms = uv_now(p->peers->loop);
		if (has_share(p)) {
			hr__peer_complain(p, "share", "too many connections");
			hr__peer_refuse(p, "limit", "too many connections of %s", p->who.text);
		} else {
			welcome(p, q->version);
			if (!p->peers->stopping)
				hr_conn_pause(p->conn, false);
		}
	} else {
		const char *why = q->error ? q->error : "cannot identify the other side";

		hr__peer_complain(p, "identity", "%s", why);
		hr__peer_refuse(p, "identity", "%s", why);
	}
	question_free(q);
}

static bool common_version(struct hr__peer *p, const Headrace__Hello *hello, uint32_t *ret)
{
	if (hello->min_version <= HR_WIRE_VERSION && hello->max_version >= HR_WIRE_VERSION_MIN &&
	    hello->min_version <= hello->max_version) {
		*ret = hello->max_version < HR_WIRE_VERSION ? hello->max_version : HR_WIRE_VERSION;
		return true;
	}
	hr__peer_complain(p, "version", "%s supports protocols %u to %u", hello->software,
			  hello->min_version, hello->max_version);
	hr__peer_refuse(
	    p, "version",
	    "this collector (" HEADRACE_VERSION
	    ") supports protocols %u to %u, the other side %u to %u: update the older one",
	    HR_WIRE_VERSION_MIN, HR_WIRE_VERSION, hello->min_version, hello->max_version);
	return false;
}

void hr__peer_hello(struct hr__peer *p, const Headrace__Hello *hello)
{
	struct question *q;
	uint32_t version;

	if (!common_version(p, hello, &version))
		return;
	snprintf(p->node, sizeof(p->node), "%s", hello->node);
	q = calloc(1, sizeof(*q));
	if (q)
		q->credential = strdup(hello->munge);
	if (!q || !q->credential) {
		free(q);
		hr__peer_refuse(p, "busy", "out of memory");
		return;
	}
	q->work.data = q;
	q->peer = p;
	q->rules = p->peers->config.rules;
	q->about = p->about;
	q->version = version;
	p->state = HR__PEER_ASKED;
	p->peers->n_strange--;
	p->asking = true;
	hr_conn_pause(p->conn, true);
	if (uv_queue_work(p->peers->loop, &q->work, peer_hello_decide, decided) < 0) {
		p->asking = false;
		question_free(q);
		hr__peer_refuse(p, "busy", "cannot start a thread");
	}
}
