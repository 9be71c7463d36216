/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "net/wire.h"

/*
 * One write is under way at a time; what is queued meanwhile goes out with the next. Single frames leave at once, and many small
 * ones together.
 */
#define GATHER_CHUNKS 64u
#define GATHER_BYTES  (1u << 20)

static void append(struct hr__chunks *to, struct hr__chunk *chunk)
{
	chunk->next = NULL;
	*to->tail = chunk;
	to->tail = &chunk->next;
	to->bytes += chunk->bytes;
}

static struct hr__chunk *take_first(struct hr__chunks *from)
{
	struct hr__chunk *chunk = from->head;

	from->head = chunk->next;
	if (!from->head)
		from->tail = &from->head;
	from->bytes -= chunk->bytes;
	return chunk;
}

static void clear(struct hr__chunks *chunks)
{
	while (chunks->head) {
		struct hr__chunk *chunk = take_first(chunks);

		free(chunk->buf);
		free(chunk);
	}
}

void hr__out_done(struct hr_conn *c)
{
	clear(&c->out);
	clear(&c->flying);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
	struct hr_conn *c = req->handle->data;

	if (status < 0 || c->peer_ended)
		hr__conn_end(c, 0, "closed");
}

/*
 * All is with the kernel. Closing now would throw it away if the peer has sent something that was not read (the kernel then says
 * "connection reset"), so: say that this was the end, and wait for the peer's.
 */
static void finish_flush(struct hr_conn *c)
{
	if (c->shutdown.handle) { /* said already: this is the peer's answer */
		if (c->peer_ended)
			hr__conn_end(c, 0, "closed");
		return;
	}
	if (uv_shutdown(&c->shutdown, &c->io.stream, on_shutdown) < 0)
		hr__conn_end(c, 0, "closed");
}

static void on_written(uv_write_t *req, int status)
{
	struct hr_conn *c = req->handle->data;

	c->writing = false;
	clear(&c->flying);
	if (status < 0) {
		hr__conn_end(c, status, "%s", uv_strerror(status));
		return;
	}
	hr__out_pump(c);
	if (!c->writing && c->state == HR__CONN_READY && c->events->drained)
		c->events->drained(c->self);
}

void hr__out_pump(struct hr_conn *c)
{
	uv_buf_t bufs[GATHER_CHUNKS];
	unsigned n = 0;
	int r;

	if (c->writing || (c->state != HR__CONN_READY && c->state != HR__CONN_FLUSHING))
		return;
	while (c->out.head && n < GATHER_CHUNKS && c->flying.bytes < GATHER_BYTES) {
		struct hr__chunk *chunk = take_first(&c->out);

		bufs[n++] = uv_buf_init((char *)chunk->buf, (unsigned)chunk->bytes);
		append(&c->flying, chunk);
	}
	if (n == 0) {
		if (c->state == HR__CONN_FLUSHING)
			finish_flush(c);
		return;
	}
	c->writing = true;
	r = uv_write(&c->write, &c->io.stream, bufs, n, on_written);
	if (r < 0) {
		c->writing = false;
		hr__conn_end(c, r, "%s", uv_strerror(r));
	}
}

int hr_conn_send(struct hr_conn *c, uint8_t *buf, size_t bytes)
{
	struct hr__chunk *chunk;

	if (c->state == HR__CONN_FLUSHING || c->state == HR__CONN_CLOSING) {
		free(buf);
		return -EPIPE;
	}
	chunk = malloc(sizeof(*chunk));
	if (!chunk) {
		free(buf);
		return -ENOMEM;
	}
	*chunk = (struct hr__chunk){.buf = buf, .bytes = bytes};
	append(&c->out, chunk);
	hr__out_pump(c);
	return 0;
}

int hr_conn_tell(struct hr_conn *c, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;
	int r = hr_wire_pack(msg, &buf, &bytes);

	return r < 0 ? r : hr_conn_send(c, buf, bytes);
}

size_t hr_conn_queued(const struct hr_conn *c)
{
	return c->out.bytes + (c->writing ? uv_stream_get_write_queue_size(&c->io.stream) : 0);
}
