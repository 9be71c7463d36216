/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void drop_rest(struct hr_conn *c)
{
	free(c->rest);
	c->rest = NULL;
}

void hr__in_done(struct hr_conn *c)
{
	drop_rest(c);
	hr_assembly_done(&c->in);
}

/* `r` of an assembly: hands a whole frame on, ends the connection on an error. */
static void deliver(struct hr_conn *c, int r)
{
	uint8_t *frame;
	size_t bytes;
	bool control;

	if (r == -E2BIG)
		hr__conn_end(c, r, "the other side sends a frame of more than %zu bytes",
			     c->in.limit);
	else if (r < 0)
		hr__conn_end(c, r, "%s",
			     r == -EBADMSG ? "what the other side sends is no frame, or damaged"
					   : strerror(-r));
	if (r != 1)
		return;
	frame = hr_assembly_frame(&c->in, &bytes, &control);
	r = c->events->frame(c->self, frame, bytes, control);
	if (r < 0)
		hr__conn_end(c, r, "a frame of the other side was refused: %s", uv_strerror(r));
}

static void take_rest(struct hr_conn *c)
{
	while (c->rest_at < c->rest_bytes && c->state == HR__CONN_READY && !c->paused) {
		size_t taken;
		int r = hr_assembly_take(&c->in, c->rest + c->rest_at, c->rest_bytes - c->rest_at,
					 &taken);

		c->rest_at += taken;
		deliver(c, r);
	}
	if (c->rest_at == c->rest_bytes || c->state != HR__CONN_READY)
		drop_rest(c);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct hr_conn *c = handle->data;
	size_t room;
	uint8_t *tail = hr_assembly_tail(&c->in, &room);

	(void)suggested;
	c->direct = c->state == HR__CONN_READY && tail && room >= HR__CONN_READ_BYTES;
	if (!c->direct) {
		room = HR__CONN_READ_BYTES;
		tail = malloc(room);
	}
	*ret = uv_buf_init((char *)tail, tail ? (unsigned)room : 0);
}

static void on_end(struct hr_conn *c, int error)
{
	if (c->state == HR__CONN_FLUSHING && error == UV_EOF) {
		(void)uv_read_stop(&c->io.stream);
		c->peer_ended = true;
		hr__out_pump(c);
	} else if (error != UV_EOF) {
		hr__conn_end(c, error, "%s", uv_strerror(error));
	} else if (hr_assembly_within(&c->in)) {
		hr__conn_end(c, -ECONNRESET, "the connection broke off within a frame");
	} else {
		hr__conn_end(c, 0, "the other side has closed the connection");
	}
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct hr_conn *c = stream->data;

	if (n > 0)
		c->heard_ms = uv_now(stream->loop);
	if (n <= 0 || c->state != HR__CONN_READY) {
		if (!c->direct)
			free(buf->base);
		if (n < 0)
			on_end(c, (int)n);
		return;
	}
	if (c->direct) {
		deliver(c, hr_assembly_grown(&c->in, (size_t)n));
		return;
	}
	c->rest = (uint8_t *)buf->base;
	c->rest_at = 0;
	c->rest_bytes = (size_t)n;
	take_rest(c);
}

void hr__in_start(struct hr_conn *c)
{
	int r;

	if (c->state == HR__CONN_FLUSHING)
		drop_rest(c);
	r = uv_read_start(&c->io.stream, on_alloc, on_read);
	if (r < 0 && r != UV_EALREADY)
		hr__conn_end(c, r, "%s", uv_strerror(r));
}

void hr__in_resume(struct hr_conn *c)
{
	if (c->paused)
		return;
	if (c->rest)
		take_rest(c);
	if (c->state == HR__CONN_READY && !c->paused)
		hr__in_start(c);
}
