/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/now.h"
#include "net/wire.h"

/* Only one write is in progress. The next write contains all frames that are queued meanwhile. */
#define GATHER_CHUNKS 64u
#define GATHER_BYTES  (1u << 20)
#define ENCRYPT_BYTES (256u << 10) /* bytes that one step encrypts; they stay in the CPU's cache */

static void conn_out_append(struct hr__chunks *to, struct hr__chunk *chunk)
{
	chunk->next = NULL;
	*to->tail = chunk;
	to->tail = &chunk->next;
	to->bytes += chunk->bytes;
}

static struct hr__chunk *remove_first(struct hr__chunks *from)
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
		struct hr__chunk *chunk = remove_first(chunks);

		free(chunk->buf);
		free(chunk);
	}
}

void hr__out_drop(struct hr_conn *c)
{
	clear(&c->out);
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
 * The kernel has all data to send. If this side closed the socket now, with unread data of the
 * peer, the kernel would reset the connection and drop data to send. So this side sends its end,
 * and waits for that of the peer.
 */
static void finish_flush(struct hr_conn *c)
{
	if (c->shutdown.handle) { /* this side has already sent its end */
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
	if (c->writing || c->state != HR__CONN_READY || !c->owes_drained)
		return;
	c->owes_drained = false;
	if (c->events->drained)
		c->events->drained(c->self);
}

static void gather_plain(struct hr_conn *c)
{
	for (unsigned n = 0; c->out.head && n < GATHER_CHUNKS && c->flying.bytes < GATHER_BYTES;
	     n++)
		conn_out_append(&c->flying, remove_first(&c->out));
}

/* Collects bytes, so that many small frames share one TLS record. */
struct stage {
	struct hr_conn *c;
	uint8_t bytes[HR_TLS_RECORD_BYTES];
	size_t n;
};

static int unstage(struct stage *s)
{
	size_t n = s->n;

	s->n = 0;
	return hr_tls_write(s->c->tls, s->bytes, n);
}

static int stage(struct stage *s, const uint8_t *buf, size_t bytes)
{
	while (bytes > 0) {
		size_t n = sizeof(s->bytes) - s->n;
		int r = 0;

		if (n > bytes)
			n = bytes;
		if (s->n == 0 && bytes >= sizeof(s->bytes)) {
			n = bytes - bytes % sizeof(s->bytes);
			r = hr_tls_write(s->c->tls, buf, n);
		} else {
			memcpy(s->bytes + s->n, buf, n);
			s->n += n;
			if (s->n == sizeof(s->bytes))
				r = unstage(s);
		}
		if (r < 0)
			return r;
		buf += n;
		bytes -= n;
	}
	return 0;
}

static int encrypt_some(struct hr_conn *c)
{
	struct stage s;
	size_t before = c->out.bytes;
	int r = 0;

	s.c = c;
	s.n = 0;
	while (r == 0 && c->out.head && before - c->out.bytes < ENCRYPT_BYTES) {
		struct hr__chunk *chunk = remove_first(&c->out);

		r = stage(&s, chunk->buf, chunk->bytes);
		free(chunk->buf);
		free(chunk);
	}
	return r < 0 ? r : unstage(&s);
}

static int gather_tls(struct hr_conn *c)
{
	struct hr__chunk *chunk;
	size_t bytes;

	if (c->state != HR__CONN_SHAKING && c->out.head && encrypt_some(c) < 0)
		return -EPROTO;
	bytes = hr_tls_out_bytes(c->tls);
	if (bytes == 0)
		return 0;
	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	chunk->buf = malloc(bytes);
	if (!chunk->buf) {
		free(chunk);
		return -ENOMEM;
	}
	chunk->bytes = hr_tls_out(c->tls, chunk->buf, bytes);
	conn_out_append(&c->flying, chunk);
	return 0;
}

static int conn_out_gather(struct hr_conn *c)
{
	int r = 0;

	if (!c->tls) {
		gather_plain(c);
		return 0;
	}
	r = gather_tls(c);
	if (r == 0 && !c->flying.head && c->state == HR__CONN_FLUSHING && !c->sent_end) {
		c->sent_end = true;
		hr_tls_end(c->tls);
		r = gather_tls(c);
	}
	return r;
}

static bool may_write(const struct hr_conn *c)
{
	switch (c->state) {
	case HR__CONN_READY:
	case HR__CONN_FLUSHING:
		return !c->writing;
	case HR__CONN_SHAKING:
		return !c->writing && c->tls;
	default:
		return false;
	}
}

void hr__out_pump(struct hr_conn *c)
{
	uv_buf_t bufs[GATHER_CHUNKS];
	unsigned n = 0;
	int r;

	if (!may_write(c))
		return;
	r = conn_out_gather(c);
	if (r == -EPROTO)
		hr__conn_tls_failed(c);
	else if (r < 0)
		hr__conn_end(c, r, "%s", uv_strerror(r));
	if (r < 0)
		return;
	for (struct hr__chunk *i = c->flying.head; i; i = i->next)
		bufs[n++] = uv_buf_init((char *)i->buf, (unsigned)i->bytes);
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

	if (c->leaving || c->state == HR__CONN_FLUSHING || c->state == HR__CONN_CLOSING) {
		free(buf);
		return -EPIPE;
	}
	chunk = malloc(sizeof(*chunk));
	if (!chunk) {
		free(buf);
		return -ENOMEM;
	}
	*chunk = (struct hr__chunk){.buf = buf, .bytes = bytes};
	conn_out_append(&c->out, chunk);
	c->owes_drained = true;
	hr__out_pump(c);
	return 0;
}

int hr_conn_send_now(struct hr_conn *c, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;
	int r = hr_wire_pack(msg, &buf, &bytes);

	return r < 0 ? r : hr_conn_send(c, buf, bytes);
}

int hr_conn_hello(struct hr_conn *c, const char *software, const char *munge)
{
	Headrace__Hello hello = HEADRACE__HELLO__INIT;

	hello.min_version = HR_WIRE_VERSION_MIN;
	hello.max_version = HR_WIRE_VERSION;
	hello.software = (char *)(uintptr_t)software;
	hello.munge = munge ? (char *)(uintptr_t)munge : hello.munge;
	return hr_conn_send_now(c, HR_WIRE(HELLO, hello, &hello));
}

int hr_conn_pong(struct hr_conn *c, uint64_t id)
{
	Headrace__Pong pong = HEADRACE__PONG__INIT;

	pong.id = id;
	pong.boot_ns = hr_now_ns(CLOCK_BOOTTIME);
	pong.real_ns = hr_now_ns(CLOCK_REALTIME);
	return hr_conn_send_now(c, HR_WIRE(PONG, pong, &pong));
}

size_t hr_conn_queued(const struct hr_conn *c)
{
	return c->out.bytes + (c->writing ? uv_stream_get_write_queue_size(&c->io.stream) : 0);
}
