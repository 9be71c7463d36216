/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collector.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/frame.h"
#include "net/munge.h"
#include "net/tls_find.h"

/* ---- identity -------------------------------------------------------------------------------- */

static int find_certificate(struct hr_collector *c)
{
	const struct hr_tls_files none = {0};
	struct hr_tls_paths paths = {0};
	struct hr_tls_files files;
	int r;

	if (c->to.local) /* the kernel identifies the peer */
		return 0;
	r = hr_tls_find(&none, &paths, &c->why);
	if (r == 0 && paths.cert != NULL) {
		files = hr_tls_paths_files(&paths);
		r = hr_tls_new(&files, false, &c->tls, &c->why);
	}
	hr_tls_paths_done(&paths);
	return r;
}

/*
 * Call it if the collector accepts a MUNGE credential and has not identified the user: a
 * certificate may not. Connects again with one. Returns false if this machine has none, or the
 * collector did not accept it.
 */
static bool try_again(struct hr_collector *c)
{
	char *error = NULL;

	if (c->munge != NULL)
		return false;
	if (hr_munge_encode(getenv("HEADRACE_MUNGE_SOCKET"), &c->munge, &error) < 0)
		c->munge = NULL;
	free(error); /* If there is no MUNGE, the refusal of the collector gives advice. */
	if (c->munge == NULL)
		return false;
	c->again = true;
	hr_conn_close(c->conn, true);
	return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void collector_changed(struct hr_collector *c)
{
	if (c->events->changed != NULL)
		c->events->changed(c->self);
}

static void collector_fail(struct hr_collector *c, int error, const char *why)
{
	if (c->closed)
		return;
	c->error = error;
	c->why = strdup(why);
	c->advice = c->welcome ? "" : hr_conn_advice(&c->to, c->tls != NULL, error);
	hr_collector_close(c);
	collector_changed(c);
}

static void on_late(uv_timer_t *timer)
{
	struct hr_collector *c = timer->data;
	char text[sizeof(c->software) + 32];

	snprintf(text, sizeof(text), "%s does not answer", c->software);
	collector_fail(c, -ETIMEDOUT,
		       c->welcome ? text
				  : "connected, but the other side does not answer as a collector");
}

static void on_ready(void *self)
{
	struct hr_collector *c = self;

	hr_conn_peer(c->conn, &c->peer);
	c->sent_ms = uv_now(&c->loop);
	hr_conn_hello(c->conn, c->name, c->munge);
	hr_collector_expect(c);
}

static void copy_tame(char *ret, size_t bytes, char *text)
{
	hr_wire_sanitize(text, false);
	snprintf(ret, bytes, "%s", text);
}

static void take_ack(struct hr_collector *c, const Headrace__HelloAck *ack)
{
	if (c->welcome || (ack->munge != 0 && try_again(c)))
		return;
	uv_timer_stop(&c->timer);
	c->welcome = true;
	c->version = ack->version;
	c->ping_ms = ack->ping_ms;
	copy_tame(c->software, sizeof(c->software), ack->software);
	copy_tame(c->who, sizeof(c->who), ack->who);
	hr_conn_limit(c->conn, HR_WIRE_MAX_BYTES + HR_FRAME_HDR_BYTES);
	collector_changed(c);
}

static void take_refusal(struct hr_collector *c, const Headrace__Refusal *refusal)
{
	if (!c->welcome && strcmp(refusal->reason, "identity") == 0 && try_again(c))
		return;
	copy_tame(c->reason, sizeof(c->reason), refusal->reason);
	hr_wire_sanitize(refusal->text, false);
	collector_fail(c, -EACCES, refusal->text);
}

static int on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct hr_collector *c = self;
	Headrace__Wire *msg;
	int r = control ? hr_wire_unpack(frame, bytes, &msg) : -EBADMSG;

	free(frame);
	if (r < 0)
		return r;
	if (!c->closed && !c->again) {
		switch (msg->body_case) {
		case HEADRACE__WIRE__BODY_HELLO_ACK:
			take_ack(c, msg->hello_ack);
			break;
		case HEADRACE__WIRE__BODY_REFUSAL:
			take_refusal(c, msg->refusal);
			break;
		case HEADRACE__WIRE__BODY_PING:
			hr_collector_pong(c, msg->ping->id);
			break;
		default:
			if (c->welcome && c->events->take != NULL)
				return c->events->take(c->self, msg);
		}
	}
	headrace__wire__free_unpacked(msg, NULL);
	return 0;
}

static void collector_dial(struct hr_collector *c);

static void on_closed(void *self, int error, const char *why)
{
	struct hr_collector *c = self;

	c->conn = NULL;
	if (c->again && error == 0 && !c->closed)
		collector_dial(c);
	else
		collector_fail(c, error < 0 ? error : -ECONNRESET,
			       error < 0 ? why : "the collector has closed the connection");
}

static void collector_dial(struct hr_collector *c)
{
	static const struct hr_conn_events events = {
	    .ready = on_ready, .frame = on_frame, .closed = on_closed};
	int r = hr_conn_connect(&c->loop, &c->to, c->tls, &events, c, &c->conn);

	c->again = false;
	uv_timer_stop(&c->timer);
	if (r == 0)
		return;
	c->conn = NULL;
	collector_fail(c, r, strerrordesc_np(-r));
}

/* ---- the connection -------------------------------------------------------------------------- */

static void no_work(uv_work_t *work)
{
	(void)work;
}

/* Starts the threads of libuv with all signals blocked, which the caller handles. */
static void start_threads(uv_loop_t *loop)
{
	uv_work_t work;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	uv_queue_work(loop, &work, no_work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
}

bool hr_collector_parse(const char *prefix, const char *text, struct hr_address *to, size_t max,
			size_t *ret_n)
{
	char *error = NULL;
	int r = hr_address_parse_targets(text, to, max, ret_n, &error);

	if (r < 0)
		hr_report("%s%s", prefix, error != NULL ? error : "out of memory");
	free(error);
	return r == 0;
}

int hr_collector_init(struct hr_collector *c, const struct hr_address *to)
{
	*c = (struct hr_collector){.to = *to, .advice = ""};
	hr_address_text(to, c->shown, sizeof(c->shown));
	uv_loop_init(&c->loop);
	start_threads(&c->loop);
	uv_timer_init(&c->loop, &c->timer);
	c->timer.data = c;
	c->error = find_certificate(c);
	return c->error;
}

void hr_collector_connect(struct hr_collector *c, const char *name,
			  const struct hr_collector_events *events, void *self)
{
	c->name = name;
	c->events = events;
	c->self = self;
	collector_dial(c);
}

void hr_collector_send(struct hr_collector *c, const Headrace__Wire *msg)
{
	c->sent_ms = uv_now(&c->loop);
	if (c->conn != NULL)
		hr_conn_send_now(c->conn, msg);
}

void hr_collector_pong(struct hr_collector *c, uint64_t id)
{
	c->sent_ms = uv_now(&c->loop);
	if (c->conn != NULL)
		hr_conn_pong(c->conn, id);
}

void hr_collector_expect(struct hr_collector *c)
{
	uv_update_time(&c->loop); /* the loop may not have run since the last answer */
	uv_timer_start(&c->timer, on_late, HR_COLLECTOR_ANSWER_MS, 0);
}

void hr_collector_close(struct hr_collector *c)
{
	if (c->closed)
		return;
	c->closed = true;
	uv_timer_stop(&c->timer);
	if (c->conn != NULL)
		hr_conn_close(c->conn, true);
}

void hr_collector_done(struct hr_collector *c)
{
	hr_collector_close(c);
	uv_close((uv_handle_t *)&c->timer, NULL);
	uv_run(&c->loop, UV_RUN_DEFAULT);
	uv_loop_close(&c->loop);
	hr_tls_unref(c->tls);
	free(c->munge);
	free(c->why);
}

char *hr_collector_text(const struct hr_collector *c)
{
	const char *why = hr_collector_why(c);
	/* a certificate is not that of the collector */
	bool named = c->events == NULL || strstr(why, c->shown) != NULL;
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", named ? "" : c->shown, named ? "" : ": ", why,
		     c->advice[0] != '\0' ? "; " : "", c->advice) < 0)
		return NULL;
	return text;
}
