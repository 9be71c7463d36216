/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TLS_READ_BYTES (64u << 10) /* several TLS records in one read */

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

/* Passes a whole frame to the owner. `r`: result of the assembly; an error ends the connection. */
static void deliver(struct hr_conn *c, int r)
{
	uint8_t *frame;
	size_t bytes;
	bool control;

	if (r == -E2BIG)
		hr__conn_end(c, r, "the other side sent a frame of more than %zu bytes",
			     c->in.limit);
	else if (r == -EBADMSG && !c->tls && hr__looks_like_tls(c->in.header[0]))
		hr__conn_end(c, -EPROTONOSUPPORT, "the other side uses TLS, this side does not");
	else if (r == -EBADMSG)
		hr__conn_end(c, r, "the other side sent something that is not a frame, or damaged");
	else if (r < 0)
		hr__conn_end(c, r, "%s", strerrordesc_np(-r));
	if (r != 1)
		return;
	frame = hr_assembly_frame(&c->in, &bytes, &control);
	r = c->events->frame(c->self, frame, bytes, control);
	if (r < 0)
		hr__conn_end(c, r, "a frame of the other side was rejected: %s",
			     strerrordesc_np(-r));
}

static void receive_rest(struct hr_conn *c)
{
	while (c->rest_at < c->rest_bytes && c->state == HR__CONN_READY && !c->paused) {
		bool within = c->in.frame;
		size_t taken;
		int r = hr_assembly_take(&c->in, c->rest + c->rest_at, c->rest_bytes - c->rest_at,
					 &taken);

		c->rest_at += taken;
		if (r == 0 && !within && c->in.frame && c->events->begun)
			c->events->begun(c->self, c->in.want);
		deliver(c, r);
	}
	if (c->rest_at == c->rest_bytes || c->state != HR__CONN_READY)
		drop_rest(c);
}

static void on_end(struct hr_conn *c, int error)
{
	if (c->state == HR__CONN_FLUSHING && error == UV_EOF) {
		(void)uv_read_stop(&c->io.stream);
		c->peer_ended = true;
		hr__out_pump(c);
	} else if (error != UV_EOF) {
		hr__conn_end(c, error, "%s", uv_strerror(error));
	} else if (c->state == HR__CONN_SHAKING) {
		hr__conn_end(c, -EPROTONOSUPPORT,
			     "the other side does not use TLS, or closed the connection during the "
			     "handshake");
	} else if (hr_assembly_within(&c->in)) {
		hr__conn_end(c, -ECONNRESET, "the connection ended in the middle of a frame");
	} else {
		hr__conn_end(c, 0, "the other side has closed the connection");
	}
}

/* Decrypts all data that has arrived, and passes it to the owner, until the owner pauses. */
static void read_tls(struct hr_conn *c)
{
	while (c->state == HR__CONN_READY && !c->paused) {
		size_t room;
		uint8_t *tail = hr_assembly_tail(&c->in, &room);
		bool direct = tail && room >= HR__CONN_READ_BYTES;
		int n;

		if (!direct) {
			c->rest = tail = malloc(HR__CONN_READ_BYTES);
			room = HR__CONN_READ_BYTES;
		}
		n = tail ? hr_tls_read(c->tls, tail, room) : -ENOMEM;
		if (n <= 0) {
			if (!direct)
				drop_rest(c);
			if (n == -EPIPE)
				on_end(c, UV_EOF);
			else if (n == -EPROTO)
				hr__conn_tls_failed(c);
			else if (n == -ENOMEM)
				hr__conn_end(c, n, "out of memory");
			return;
		}
		if (direct) {
			deliver(c, hr_assembly_grown(&c->in, (size_t)n));
			continue;
		}
		c->rest_at = 0;
		c->rest_bytes = (size_t)n;
		receive_rest(c);
	}
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct hr_conn *c = handle->data;
	size_t room;
	uint8_t *tail = hr_assembly_tail(&c->in, &room);

	(void)suggested;
	c->direct = !c->tls && c->state == HR__CONN_READY && tail && room >= HR__CONN_READ_BYTES;
	if (c->direct) {
		*ret = uv_buf_init((char *)tail, (unsigned)room);
		return;
	}
	room = c->tls ? TLS_READ_BYTES : HR__CONN_READ_BYTES;
	ret->base = malloc(room);
	ret->len = ret->base ? room : 0;
}

/* Processes TLS data: the rest of the handshake, frames, or both. */
static void receive_tls(struct hr_conn *c, const uint8_t *buf, size_t bytes)
{
	if (hr_tls_in(c->tls, buf, bytes) < 0) {
		hr__conn_tls_failed(c);
		return;
	}
	if (c->state == HR__CONN_SHAKING && hr_tls_ready(c->tls))
		hr__conn_shaken(c);
	else
		read_tls(c);
	hr__out_pump(c); /* sends messages of the handshake */
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct hr_conn *c = stream->data;
	bool over = c->state == HR__CONN_FLUSHING || c->state == HR__CONN_CLOSING;

	if (n > 0)
		c->received_ms = uv_now(stream->loop);
	if (n > 0 && c->direct && !over) {
		deliver(c, hr_assembly_grown(&c->in, (size_t)n));
		return;
	}
	if (n > 0 && !over && c->offer && hr__conn_choose(c, (uint8_t)buf->base[0]) < 0) {
		hr__conn_end(c, -ENOMEM, "out of memory");
		over = true;
	}
	if (n > 0 && !c->tls && !over) {
		c->rest = (uint8_t *)buf->base;
		c->rest_at = 0;
		c->rest_bytes = (size_t)n;
		if (c->state == HR__CONN_SHAKING) /* the peer does not use TLS */
			hr__conn_shaken(c);
		else
			receive_rest(c);
		return;
	}
	if (n > 0 && !over)
		receive_tls(c, (const uint8_t *)buf->base, (size_t)n);
	if (!c->direct)
		free(buf->base);
	if (n < 0)
		on_end(c, (int)n);
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
	if (c->paused) {
		(void)uv_read_stop(&c->io.stream); /* reading resumes after the TLS handshake */
		return;
	}
	if (c->rest)
		receive_rest(c);
	if (c->tls)
		read_tls(c);
	if (c->state == HR__CONN_READY && !c->paused)
		hr__in_start(c);
}
