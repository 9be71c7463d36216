/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "cli/fleet/fleet.h"
#include "cli/query/query_identity.h"
#include "common/frame.h"
#include "common/text.h"
#include "net/conn.h"
#include "net/wire.h"

#define ANSWER_MS 10000u

struct hr_fleet_link {
	struct hr_address to;
	char shown[HR_ADDRESS_HOST_BYTES + 32];
	struct hr_query_identity identity;
	uv_loop_t loop;
	uv_timer_t timer;
	struct hr_conn *conn; /* NULL: closed */
	bool welcome;	      /* the collector has answered Hello */
	bool munge;	      /* it accepts a MUNGE credential */
	bool refused;	      /* for want of an identity */
	bool late;
	char software[256]; /* of the collector */
	Headrace__Wire *answer;
	int error;
	char *why;
};

static void fleet_link_fail(struct hr_fleet_link *l, int error, const char *why)
{
	if (l->error != 0)
		return;
	l->error = error;
	l->why = strdup(why);
}

static void fleet_link_ready(void *self)
{
	struct hr_fleet_link *l = self;

	hr_conn_hello(l->conn, "headrace " HEADRACE_VERSION, l->identity.munge);
}

static void fleet_link_take(struct hr_fleet_link *l, Headrace__Wire *msg)
{
	switch (msg->body_case) {
	case HEADRACE__WIRE__BODY_HELLO_ACK:
		l->welcome = true;
		l->munge = msg->hello_ack->munge != 0;
		hr_wire_sanitize(msg->hello_ack->software, false);
		snprintf(l->software, sizeof(l->software), "%s", msg->hello_ack->software);
		hr_conn_limit(l->conn, HR_WIRE_MAX_BYTES + HR_FRAME_HDR_BYTES);
		break;
	case HEADRACE__WIRE__BODY_REFUSAL:
		l->refused = strcmp(msg->refusal->reason, "identity") == 0;
		hr_wire_sanitize(msg->refusal->text, false);
		fleet_link_fail(l, -EACCES, msg->refusal->text);
		break;
	case HEADRACE__WIRE__BODY_PING:
		hr_conn_pong(l->conn, msg->ping->id);
		break;
	case HEADRACE__WIRE__BODY_FLEET:
		headrace__wire__free_unpacked(l->answer, NULL);
		l->answer = msg;
		return;
	default: /* ignores messages of later versions */
		break;
	}
	headrace__wire__free_unpacked(msg, NULL);
}

static int fleet_link_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	Headrace__Wire *msg;
	int r = control ? hr_wire_unpack(frame, bytes, &msg) : -EBADMSG;

	free(frame);
	if (r == 0)
		fleet_link_take(self, msg);
	return r;
}

static void fleet_link_closed(void *self, int error, const char *why)
{
	struct hr_fleet_link *l = self;
	const char *advice = hr_conn_advice(&l->to, l->identity.tls != NULL, error);
	char *text;

	l->conn = NULL;
	if (error == 0)
		why = "the collector has closed the connection";
	if (asprintf(&text, "%s%s%s", why, advice[0] != '\0' ? "; " : "", advice) < 0)
		text = NULL;
	fleet_link_fail(l, error < 0 ? error : -ECONNRESET, text != NULL ? text : why);
	free(text);
}

static void fleet_link_late(uv_timer_t *timer)
{
	((struct hr_fleet_link *)timer->data)->late = true;
}

static bool is_answered(const struct hr_fleet_link *l)
{
	return l->answer != NULL;
}

static bool is_welcome(const struct hr_fleet_link *l)
{
	return l->welcome;
}

/* Runs the loop until `reached`, an error, or ANSWER_MS are over. */
static void run_until(struct hr_fleet_link *l, bool (*reached)(const struct hr_fleet_link *l))
{
	l->late = false;
	uv_update_time(&l->loop); /* the loop has not run since the last answer */
	uv_timer_start(&l->timer, fleet_link_late, ANSWER_MS, 0);
	while (!reached(l) && l->error == 0 && !l->late)
		uv_run(&l->loop, UV_RUN_ONCE);
	uv_timer_stop(&l->timer);
}

static void disconnect(struct hr_fleet_link *l)
{
	if (l->conn != NULL)
		hr_conn_close(l->conn, true);
	while (l->conn != NULL)
		uv_run(&l->loop, UV_RUN_ONCE);
}

static int fleet_link_connect(struct hr_fleet_link *l)
{
	static const struct hr_conn_events events = {
	    .ready = fleet_link_ready, .frame = fleet_link_frame, .closed = fleet_link_closed};
	int r;

	l->error = 0;
	l->welcome = l->refused = false;
	free(l->why);
	l->why = NULL;
	r = hr_conn_connect(&l->loop, &l->to, l->identity.tls, &events, l, &l->conn);
	if (r < 0) {
		l->conn = NULL;
		fleet_link_fail(l, r, strerrordesc_np(-r));
		return r;
	}
	run_until(l, is_welcome);
	if (l->late)
		fleet_link_fail(l, -ETIMEDOUT,
				"connected, but the other side does not answer as a collector");
	return l->error;
}

/*
 * Connects again with a MUNGE credential if the collector accepts one and this machine has one: a
 * certificate may not identify the user.
 */
static int connect_as_user(struct hr_fleet_link *l)
{
	int r = fleet_link_connect(l);

	if ((r < 0 && !l->refused) || (r == 0 && !l->munge) ||
	    !hr_identity_credential(&l->identity))
		return r;
	disconnect(l);
	return fleet_link_connect(l);
}

static int fleet_link_report(const struct hr_fleet_link *l, char **ret_error)
{
	bool named = l->why != NULL && strstr(l->why, l->shown) != NULL;

	return hr_text_fail(l->error, ret_error, "%s%s%s", named ? "" : l->shown, named ? "" : ": ",
			    l->why != NULL ? l->why : "out of memory");
}

static void no_work(uv_work_t *work)
{
	(void)work;
}

/* Starts the threads of libuv with all signals blocked: the caller reads them from a descriptor. */
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

int hr_fleet_link_open(const struct hr_address *to, struct hr_fleet_link **ret, char **ret_error)
{
	struct hr_fleet_link *l = calloc(1, sizeof(*l));
	int r;

	*ret_error = NULL;
	if (l == NULL)
		return -ENOMEM;
	l->to = *to;
	hr_address_text(to, l->shown, sizeof(l->shown));
	r = hr_identity_init(&l->identity, to, ret_error);
	if (r < 0) {
		free(l);
		return r;
	}
	uv_loop_init(&l->loop);
	start_threads(&l->loop);
	uv_timer_init(&l->loop, &l->timer);
	l->timer.data = l;
	if (connect_as_user(l) == 0) {
		*ret = l;
		return 0;
	}
	r = fleet_link_report(l, ret_error);
	hr_fleet_link_close(l);
	return r;
}

void hr_fleet_link_close(struct hr_fleet_link *l)
{
	if (l == NULL)
		return;
	disconnect(l);
	uv_close((uv_handle_t *)&l->timer, NULL);
	uv_run(&l->loop, UV_RUN_DEFAULT);
	uv_loop_close(&l->loop);
	headrace__wire__free_unpacked(l->answer, NULL);
	hr_identity_done(&l->identity);
	free(l->why);
	free(l);
}

int hr_fleet_link_ask(struct hr_fleet_link *l, const Headrace__Look *look, Headrace__Wire **ret,
		      char **ret_error)
{
	*ret_error = NULL;
	if (l->conn != NULL)
		hr_conn_send_now(l->conn, HR_WIRE(LOOK, look, (Headrace__Look *)look));
	run_until(l, is_answered);
	if (l->answer != NULL) {
		*ret = l->answer;
		l->answer = NULL;
		return 0;
	}
	if (l->late) {
		char text[512];

		snprintf(text, sizeof(text), "%s does not answer", l->software);
		fleet_link_fail(l, -ETIMEDOUT, text);
	}
	return fleet_link_report(l, ret_error);
}
