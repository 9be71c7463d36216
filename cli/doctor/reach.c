/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire.h"

#define GREETING_MS 10000

struct attempt {
	struct hr_reach *p;
	uv_loop_t loop;
	uv_timer_t timer;
	struct hr_conn *conn;
	bool over;	  /* `p` contains the result */
	bool understands; /* the collector accepts MUNGE credentials */
};

static void reach_end(struct attempt *a, enum hr_reach_end how, int error, const char *why)
{
	if (a->over)
		return;
	a->over = true;
	a->p->end = how;
	a->p->error = error;
	snprintf(a->p->why, sizeof(a->p->why), "%s", why);
	uv_close((uv_handle_t *)&a->timer, NULL);
	if (a->conn != NULL)
		hr_conn_close(a->conn, true);
}

static void on_silence(uv_timer_t *timer)
{
	reach_end(timer->data, HR_REACH_CLOSED, -ETIMEDOUT,
		  "connected, but the other side does not answer as a collector");
}

static void reach_on_ready(void *self)
{
	struct attempt *a = self;

	hr_conn_peer(a->conn, &a->p->peer);
	hr_conn_hello(a->conn, "headrace doctor " HEADRACE_VERSION, a->p->identity.munge);
	uv_timer_start(&a->timer, on_silence, GREETING_MS, 0);
}

static void copy_tame(char *ret, size_t bytes, char *text)
{
	hr_wire_sanitize(text, false);
	snprintf(ret, bytes, "%s", text);
}

static void reach_take(struct attempt *a, Headrace__Wire *msg)
{
	struct hr_reach *p = a->p;

	if (msg->body_case == HEADRACE__WIRE__BODY_HELLO_ACK) {
		a->understands = msg->hello_ack->munge != 0;
		p->version = msg->hello_ack->version;
		copy_tame(p->software, sizeof(p->software), msg->hello_ack->software);
		copy_tame(p->who, sizeof(p->who), msg->hello_ack->who);
		reach_end(a, HR_REACH_WELCOME, 0, "");
	} else if (msg->body_case == HEADRACE__WIRE__BODY_REFUSAL) {
		copy_tame(p->reason, sizeof(p->reason), msg->refusal->reason);
		a->understands = strcmp(p->reason, "identity") == 0;
		hr_wire_sanitize(msg->refusal->text, false);
		reach_end(a, HR_REACH_REFUSED, 0, msg->refusal->text);
	}
}

static int reach_on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	Headrace__Wire *msg;
	int r = control ? hr_wire_unpack(frame, bytes, &msg) : -EBADMSG;

	free(frame);
	if (r < 0)
		return r;
	reach_take(self, msg);
	headrace__wire__free_unpacked(msg, NULL);
	return 0;
}

static void reach_on_closed(void *self, int error, const char *why)
{
	struct attempt *a = self;

	a->conn = NULL;
	reach_end(a, HR_REACH_CLOSED, error,
		  error == 0 ? "the collector has closed the connection" : why);
}

/* Tries to connect once. Returns true if another try with a MUNGE credential could succeed. */
static bool try(struct hr_reach *p)
{
	static const struct hr_conn_events events = {
	    .ready = reach_on_ready, .frame = reach_on_frame, .closed = reach_on_closed};
	struct attempt a = {.p = p};
	int r;

	uv_loop_init(&a.loop);
	uv_timer_init(&a.loop, &a.timer);
	a.timer.data = &a;
	r = hr_conn_connect(&a.loop, &p->to, p->identity.tls, &events, &a, &a.conn);
	if (r < 0)
		reach_end(&a, HR_REACH_CLOSED, r, strerrordesc_np(-r));
	uv_run(&a.loop, UV_RUN_DEFAULT);
	uv_loop_close(&a.loop);
	return a.understands;
}

static int reach_resolve(struct hr_reach *p)
{
	struct sockaddr_storage found[HR_ADDRESSES_MAX];
	size_t n = 0, at = 0;
	int r = hr_address_resolve(&p->to, false, found, HR_ADDRESSES_MAX, &n);

	for (size_t i = 0; i < n && at < sizeof(p->addresses); i++) {
		char text[64];

		hr_sockaddr_text(&found[i], text, sizeof(text));
		at += (size_t)snprintf(p->addresses + at, sizeof(p->addresses) - at, "%s%s",
				       i > 0 ? ", " : "", text);
	}
	return r;
}

void hr_reach_run(const struct hr_address *to, struct hr_reach *ret)
{
	char *error = NULL;

	*ret = (struct hr_reach){.to = *to, .end = HR_REACH_NO_ADDRESS};
	hr_address_text(to, ret->shown, sizeof(ret->shown));
	ret->error = reach_resolve(ret);
	if (ret->error < 0)
		return;
	ret->error = hr_identity_init(&ret->identity, to, &error);
	if (ret->error < 0) {
		ret->end = HR_REACH_NO_CERTIFICATE;
		snprintf(ret->why, sizeof(ret->why), "%s", error != NULL ? error : "out of memory");
		free(error);
		return;
	}
	if (try(ret) && hr_identity_credential(&ret->identity))
		try(ret);
}

void hr_reach_done(struct hr_reach *p)
{
	hr_identity_done(&p->identity);
}
