/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define KEEPALIVE_S 30 /* for peers that send no pings, which would find a dead peer sooner */

uint32_t hr_conn_setup_ms = 10000, hr_conn_flush_ms = 5000;

static void on_timer(uv_timer_t *timer);

static int conn_new(uv_loop_t *loop, bool pipe, const struct hr_conn_events *events, void *self,
		    struct hr_conn **ret)
{
	struct hr_conn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = pipe ? uv_pipe_init(loop, &c->io.pipe, 0) : uv_tcp_init(loop, &c->io.tcp);
	if (r < 0) {
		free(c);
		return r;
	}
	uv_timer_init(loop, &c->timer);
	c->io.handle.data = c->timer.data = c;
	c->handles = 2;
	c->state = HR__CONN_SHAKING;
	c->received_ms = uv_now(loop);
	c->events = events;
	c->self = self;
	c->out.tail = &c->out.head;
	c->flying.tail = &c->flying.head;
	hr_assembly_init(&c->in, HR_CONN_FIRST_BYTES);
	*ret = c;
	return 0;
}

int hr__conn_errno(int uv_error)
{
	switch (uv_error) {
	case UV_EAI_MEMORY:
		return -ENOMEM;
	case UV_EAI_AGAIN:
		return -EAGAIN;
	case UV_EAI_CANCELED:
		return -ECANCELED;
	case UV_EOF:
		return -ECONNRESET;
	default:
		/* libuv's error numbers of the resolver are larger than any errno. */
		return uv_error <= -3000 && uv_error > -4000 ? -ENOENT : uv_error;
	}
}

void hr__conn_timer(struct hr_conn *c, uint64_t ms)
{
	uv_update_time(c->timer.loop);
	uv_timer_start(&c->timer, on_timer, ms, 0);
}

void hr__conn_gone(uv_handle_t *handle)
{
	struct hr_conn *c = handle->data;

	if (--c->handles > 0)
		return;
	hr__dial_end(c);
	if (c->events)
		c->events->closed(c->self, c->error, c->why ? c->why : "out of memory");
	hr__in_done(c);
	hr__out_done(c);
	hr_tls_session_free(c->tls);
	hr_tls_unref(c->offer);
	free(c->why);
	free(c);
}

/* Frees a connection whose handles were never used, without calling the owner. */
static void conn_abandon(struct hr_conn *c)
{
	c->events = NULL;
	uv_close((uv_handle_t *)&c->timer, hr__conn_gone);
	uv_close(&c->io.handle, hr__conn_gone);
}

/* Only the first reason counts. After the owner has closed the connection, no error counts. */
static void conn_explain(struct hr_conn *c, int error, const char *why, va_list args)
{
	if (c->state == HR__CONN_FLUSHING || c->leaving)
		error = c->error;
	c->error = error;
	if (!c->why && vasprintf(&c->why, why, args) < 0)
		c->why = NULL;
}

void hr__conn_end(struct hr_conn *c, int error, const char *why, ...)
{
	va_list args;

	if (c->state == HR__CONN_CLOSING)
		return;
	va_start(args, why);
	conn_explain(c, error, why, args);
	va_end(args);
	c->state = HR__CONN_CLOSING;
	uv_close((uv_handle_t *)&c->timer, hr__conn_gone);
	if (!uv_is_closing(&c->io.handle)) /* the handle may be closing, between two addresses */
		uv_close(&c->io.handle, hr__conn_gone);
}

__attribute__((format(printf, 3, 4))) static void conn_leave(struct hr_conn *c, int error,
							     const char *why, ...)
{
	va_list args;

	if (c->state == HR__CONN_FLUSHING || c->state == HR__CONN_CLOSING)
		return;
	va_start(args, why);
	conn_explain(c, error, why, args);
	va_end(args);
	c->state = HR__CONN_FLUSHING;
	hr__conn_timer(c, hr_conn_flush_ms);
	hr__in_start(c); /* reads even during a pause, to detect the end of the peer */
	hr__out_pump(c);
}

void hr__conn_tls_failed(struct hr_conn *c)
{
	hr__out_drop(c);
	if (c->state == HR__CONN_FLUSHING)
		hr__conn_end(c, 0, "closed");
	else
		conn_leave(c, -EPROTO, "%s", hr_tls_error(c->tls));
}

static void become_ready(struct hr_conn *c)
{
	uv_timer_stop(&c->timer);
	c->state = HR__CONN_READY;
	c->events->ready(c->self);
	if (c->state != HR__CONN_READY)
		return;
	hr__in_resume(c);
	hr__out_pump(c);
}

static void set_options(struct hr_conn *c)
{
	if (c->io.handle.type != UV_TCP)
		return;
	/* No delay: conn_out.c already collects small frames. If a call fails, the peer is lost. */
	(void)uv_tcp_nodelay(&c->io.tcp, 1);
	(void)uv_tcp_keepalive(&c->io.tcp, 1, KEEPALIVE_S);
}

void hr__conn_shaken(struct hr_conn *c)
{
	if (c->leaving)
		conn_leave(c, 0, "closed");
	else
		become_ready(c);
}

static void shake(struct hr_conn *c)
{
	hr__conn_timer(c, hr_conn_setup_ms);
	hr__in_start(c);
	hr__out_pump(c);
}

void hr__conn_up(struct hr_conn *c)
{
	c->state = HR__CONN_SHAKING;
	set_options(c);
	if (c->tls)
		shake(c);
	else
		become_ready(c);
}

static void on_timer(uv_timer_t *timer)
{
	struct hr_conn *c = timer->data;

	switch (c->state) {
	case HR__CONN_DIALLING:
		hr__dial_timeout(c);
		break;
	case HR__CONN_SHAKING:
		if (c->tls)
			hr__conn_end(c, -ETIMEDOUT, "the TLS handshake timed out");
		else if (c->offer)
			hr__conn_end(c, -ETIMEDOUT, "the other side sends nothing");
		else
			become_ready(c);
		break;
	case HR__CONN_READY:
		hr__in_resume(c);
		break;
	case HR__CONN_FLUSHING:
		hr__conn_end(c, 0, "closed");
		break;
	case HR__CONN_CLOSING:
		break;
	}
}

int hr_conn_accept(uv_stream_t *listener, struct hr_tls *tls, bool plain,
		   const struct hr_conn_events *events, void *self, struct hr_conn **ret)
{
	bool local = listener->type == UV_NAMED_PIPE;
	struct hr_conn *c;
	int r = conn_new(listener->loop, local, events, self, &c);

	if (r < 0)
		return r;
	r = uv_accept(listener, &c->io.stream);
	if (r == 0 && tls && !plain && !local)
		r = hr_tls_session_new(tls, NULL, &c->tls);
	if (r < 0) {
		conn_abandon(c);
		return r;
	}
	if (tls && plain && !local)
		c->offer = hr_tls_ref(tls);
	set_options(c);
	if (c->tls || c->offer)
		shake(c);
	else
		hr__conn_timer(c, 0); /* the loop calls `ready` later */
	*ret = c;
	return 0;
}

int hr__conn_choose(struct hr_conn *c, uint8_t first)
{
	int r = hr__looks_like_tls(first) ? hr_tls_session_new(c->offer, NULL, &c->tls) : 0;

	hr_tls_unref(c->offer);
	c->offer = NULL;
	return r;
}

int hr_conn_adopt(uv_loop_t *loop, int fd, const struct hr_conn_events *events, void *self,
		  struct hr_conn **ret)
{
	struct hr_conn *c;
	int r = conn_new(loop, true, events, self, &c);

	if (r < 0)
		return r;
	r = uv_pipe_open(&c->io.pipe, fd);
	if (r < 0) {
		conn_abandon(c);
		return r;
	}
	set_options(c);
	hr__conn_timer(c, 0);
	*ret = c;
	return 0;
}

int hr_conn_connect(uv_loop_t *loop, const struct hr_address *to, struct hr_tls *tls,
		    const struct hr_conn_events *events, void *self, struct hr_conn **ret)
{
	struct hr_conn *c;
	int r;

	r = conn_new(loop, to->local, events, self, &c);
	if (r < 0)
		return r;
	c->state = HR__CONN_DIALLING;
	if (tls && !to->local)
		r = hr_tls_session_new(tls, to->host, &c->tls);
	if (r == 0)
		r = hr__dial_begin(c, to);
	if (r < 0) {
		conn_abandon(c);
		return r;
	}
	*ret = c;
	return 0;
}

void hr_conn_close(struct hr_conn *c, bool now)
{
	if (now || c->state == HR__CONN_DIALLING ||
	    (c->state == HR__CONN_SHAKING && (c->tls || c->offer) && !c->out.head))
		hr__conn_end(c, 0, "closed");
	else if (c->state == HR__CONN_SHAKING && c->tls)
		c->leaving = true;
	else
		conn_leave(c, 0, "closed");
}

void hr_conn_pause(struct hr_conn *c, bool paused)
{
	if (c->paused == paused)
		return;
	c->paused = paused;
	if (c->state != HR__CONN_READY)
		return;
	if (paused)
		(void)uv_read_stop(&c->io.stream);
	else
		hr__conn_timer(c, 0); /* this function must not deliver frames, so the loop does */
}

void hr_conn_limit(struct hr_conn *c, size_t max_frame_bytes)
{
	c->in.limit = max_frame_bytes;
}

uint64_t hr_conn_received_ms(const struct hr_conn *c)
{
	return c->received_ms;
}
