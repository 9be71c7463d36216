/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static void on_ready(void *self)
{
	struct end *e = self;

	assert_false(e->ready);
	e->ready = true;
	if (e->limit > 0)
		hr_conn_limit(e->c, e->limit);
}

static int on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct end *e = self;

	assert_true(e->ready);
	assert_false(e->closed);
	if (e->n == e->room) {
		e->room = e->room ? 2 * e->room : 64;
		e->kept = realloc(e->kept, e->room * sizeof(*e->kept));
		assert_non_null(e->kept);
	}
	e->kept[e->n++] = (struct kept){frame, bytes, control};
	if (e->n == e->pause_after)
		hr_conn_pause(e->c, true);
	if (e->n == e->close_after)
		hr_conn_close(e->c, false);
	return e->refuse;
}

static void on_drained(void *self)
{
	((struct end *)self)->drained++;
}

static void on_closed(void *self, int error, const char *why)
{
	struct end *e = self;

	assert_false(e->closed);
	assert_non_null(why);
	e->closed = true;
	e->error = error;
	snprintf(e->why, sizeof(e->why), "%s", why);
	e->c = NULL;
}

const struct hr_conn_events end_events = {
    .ready = on_ready, .frame = on_frame, .drained = on_drained, .closed = on_closed};

static void on_guard(uv_timer_t *timer)
{
	struct rig *rig = timer->data;

	rig->late = uv_now(&rig->loop) >= rig->until_ms;
}

void rig_init(struct rig *rig)
{
	(void)signal(SIGPIPE, SIG_IGN);
	memset(rig, 0, sizeof(*rig));
	hr_conn_setup_ms = hr_conn_flush_ms = 600000;
	assert_int_equal(uv_loop_init(&rig->loop), 0);
	assert_int_equal(uv_timer_init(&rig->loop, &rig->guard), 0);
	rig->guard.data = rig;
}

void rig_guard(struct rig *rig, uint64_t ms)
{
	rig->late = false;
	uv_update_time(&rig->loop);
	rig->until_ms = uv_now(&rig->loop) + ms;
	/* Ticks, because what is waited for may happen in a timer, after which uv_run waits for the next event. */
	uv_timer_start(&rig->guard, on_guard, ms < 10 ? ms : 10, 10);
}

void rig_run_for(struct rig *rig, uint64_t ms)
{
	rig_guard(rig, ms);
	while (!rig->late)
		uv_run(&rig->loop, UV_RUN_ONCE);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct rig *rig = listener->data;

	assert_int_equal(status, 0);
	assert_null(rig->server.c);
	assert_int_equal(
	    hr_conn_accept(listener, rig->tls, false, &end_events, &rig->server, &rig->server.c),
	    0);
	assert_false(rig->server.ready);
}

void rig_listen(struct rig *rig, const char *address)
{
	struct sockaddr_storage where;
	struct sockaddr_in bound;
	int bytes = sizeof(where);
	size_t n;

	assert_int_equal(hr_address_parse(address, &rig->at), 0);
	assert_int_equal(hr_address_resolve(&rig->at, true, &where, 1, &n), 0);
	assert_int_equal(n, 1);
	if (rig->at.local) {
		uv_pipe_init(&rig->loop, &rig->listener.pipe, 0);
		assert_int_equal(uv_pipe_bind(&rig->listener.pipe, rig->at.host), 0);
	} else {
		uv_tcp_init(&rig->loop, &rig->listener.tcp);
		assert_int_equal(uv_tcp_bind(&rig->listener.tcp, (struct sockaddr *)&where, 0), 0);
		assert_int_equal(
		    uv_tcp_getsockname(&rig->listener.tcp, (struct sockaddr *)&where, &bytes), 0);
		memcpy(&bound, &where, sizeof(bound)); /* the port lies in the same place of both */
		rig->at.port = ntohs(bound.sin_port);
	}
	rig->listener.stream.data = rig;
	rig->listening = true;
	assert_int_equal(uv_listen(&rig->listener.stream, 16, on_connection), 0);
}

void rig_connect(struct rig *rig, struct hr_tls *tls)
{
	assert_int_equal(
	    hr_conn_connect(&rig->loop, &rig->at, tls, &end_events, &rig->client, &rig->client.c),
	    0);
	assert_false(rig->client.ready);
	RUN_UNTIL(rig, rig->client.ready && rig->server.ready);
}

int rig_raw(struct rig *rig)
{
	struct sockaddr_storage to;
	size_t n;
	int fd;

	assert_int_equal(hr_address_resolve(&rig->at, false, &to, 1, &n), 0);
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to,
				 to.ss_family == AF_UNIX    ? sizeof(struct sockaddr_un)
				 : to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							    : sizeof(struct sockaddr_in)),
			 0);
	RUN_UNTIL(rig, rig->server.ready);
	return fd;
}

void end_forget(struct end *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->kept[i].frame);
	free(e->kept);
	e->kept = NULL;
	e->n = e->room = 0;
}

void rig_done(struct rig *rig)
{
	if (rig->client.c)
		hr_conn_close(rig->client.c, true);
	if (rig->server.c)
		hr_conn_close(rig->server.c, true);
	if (rig->listening)
		uv_close((uv_handle_t *)&rig->listener, NULL);
	uv_timer_stop(&rig->guard);
	uv_close((uv_handle_t *)&rig->guard, NULL);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_null(rig->client.c);
	assert_null(rig->server.c);
	assert_int_equal(uv_loop_close(&rig->loop), 0);
	end_forget(&rig->client);
	end_forget(&rig->server);
}

uint8_t *make_frame(size_t payload, unsigned seed, uint32_t flags)
{
	uint8_t *buf = malloc(HR_FRAME_HDR_BYTES + payload);

	assert_non_null(buf);
	for (size_t i = 0; i < payload; i++)
		buf[HR_FRAME_HDR_BYTES + i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed);
	return hr_frame_seal(buf, payload, flags);
}

void assert_frame(const struct end *e, size_t i, size_t payload, unsigned seed, uint32_t flags)
{
	uint8_t *want = make_frame(payload, seed, flags);

	assert_true(i < e->n);
	assert_int_equal(e->kept[i].bytes, HR_FRAME_HDR_BYTES + payload);
	assert_memory_equal(e->kept[i].frame, want, e->kept[i].bytes);
	assert_int_equal(e->kept[i].control, flags == HR_FRAME_CONTROL);
	free(want);
}
