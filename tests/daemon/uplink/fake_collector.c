/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_collector.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "store/store.h"
#include "net/conn.h"
#include "net/wire.h"

#define CHANNELS 128u

struct stream {
	struct stream *next;
	char key[512];
	uint8_t secret[HR_WIRE_SECRET_BYTES];
	struct hr_writer *writer;
	uint64_t told;	/* last seq acknowledged, or told in Opened */
	uint64_t bytes; /* since then */
};

struct peer {
	struct peer *next;
	struct fake *f;
	struct hr_conn *c;
	struct {
		uint32_t number;
		struct stream *stream;
		/* seq of a frame that was left out: gap until it comes; 0: none */
		uint64_t left_out;
	} channels[CHANNELS];
	uint32_t used;
	bool greeted;
};

struct fake {
	struct fake_options o;
	pthread_t thread;
	uv_loop_t loop;
	uv_tcp_t listener;
	uv_async_t stop;
	uv_timer_t ping, late;
	struct peer *peers;
	struct stream *streams;
	uint64_t random;
	pthread_mutex_t lock;
	struct fake_seen seen;
};

#define COUNT(f, field, n)                                                                         \
	do {                                                                                       \
		pthread_mutex_lock(&(f)->lock);                                                    \
		(f)->seen.field += (n);                                                            \
		pthread_mutex_unlock(&(f)->lock);                                                  \
	} while (0)

static bool happens(struct fake *f, unsigned per_mille)
{
	f->random = f->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (f->random >> 33) % 1000 < per_mille;
}

/* ---- saying -------------------------------------------------------------------------------------- */

static void say_opened(struct peer *p, uint32_t channel, uint64_t mark)
{
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	Headrace__Opened m = HEADRACE__OPENED__INIT;

	msg.body_case = HEADRACE__WIRE__BODY_OPENED;
	msg.opened = &m;
	m.channel = channel;
	m.mark = mark + p->f->o.opened_ahead;
	hr_conn_send_now(p->c, &msg);
}

static void say_ack(struct peer *p, uint32_t channel, struct stream *s)
{
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	Headrace__Ack m = HEADRACE__ACK__INIT;

	msg.body_case = HEADRACE__WIRE__BODY_ACK;
	msg.ack = &m;
	m.channel = channel;
	m.seq = s->told = hr_writer_mark(s->writer);
	s->bytes = 0;
	hr_conn_send_now(p->c, &msg);
}

static void say_nack(struct peer *p, uint32_t channel, const char *reason, uint64_t mark)
{
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	Headrace__Nack m = HEADRACE__NACK__INIT;

	msg.body_case = HEADRACE__WIRE__BODY_NACK;
	msg.nack = &m;
	m.channel = channel;
	m.reason = (char *)(uintptr_t)reason;
	m.text = (char *)(uintptr_t) "because the test wants it";
	m.mark = mark;
	m.retry_ms = 20;
	hr_conn_send_now(p->c, &msg);
}

static void ack_all(struct fake *f)
{
	for (struct peer *p = f->peers; p; p = p->next)
		for (unsigned i = 0; i < CHANNELS; i++) {
			struct stream *s = p->channels[i].stream;

			if (s && p->c && !f->o.never_acks && s->told < hr_writer_mark(s->writer))
				say_ack(p, p->channels[i].number, s);
		}
}

/* Of the last frame that was left out no later one tells. */
static void complain_all(struct fake *f)
{
	for (struct peer *p = f->peers; p; p = p->next)
		for (unsigned i = 0; i < CHANNELS; i++)
			if (p->channels[i].stream && p->channels[i].left_out)
				say_nack(p, p->channels[i].number, "gap",
					 hr_writer_mark(p->channels[i].stream->writer));
}

/* ---- streams ------------------------------------------------------------------------------------- */

static struct stream *find_stream(struct fake *f, const Headrace__Open *m)
{
	struct hr_stream_id id = {m->cluster, m->job,	   m->attempt, m->node,
				  m->boot_id, m->instance, 0};
	struct stream *s;
	char key[512];

	snprintf(key, sizeof(key), "%s/%s/%llx", m->job, m->node, (unsigned long long)m->instance);
	for (s = f->streams; s; s = s->next)
		if (strcmp(s->key, key) == 0)
			return s;
	s = calloc(1, sizeof(*s));
	if (hr_writer_open(f->o.store, &id, &s->writer, NULL) < 0) {
		free(s);
		return NULL;
	}
	snprintf(s->key, sizeof(s->key), "%s", key);
	memcpy(s->secret, m->secret.data, sizeof(s->secret));
	s->told = hr_writer_mark(s->writer);
	s->next = f->streams;
	f->streams = s;
	return s;
}

/* Closed by its daemon: no channel has it any more, and its writer is free. */
static void drop_stream(struct fake *f, struct stream *s)
{
	struct stream **link = &f->streams;

	for (struct peer *p = f->peers; p; p = p->next)
		for (unsigned i = 0; i < CHANNELS; i++)
			if (p->channels[i].stream == s)
				p->channels[i].stream = NULL;
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	hr_writer_close(s->writer);
	free(s);
}

static unsigned channel_of(const struct peer *p, uint32_t number)
{
	unsigned i = 0;

	while (i < CHANNELS && (p->channels[i].number != number || !p->channels[i].stream))
		i++;
	return i;
}

static int on_open(struct peer *p, const Headrace__Open *m)
{
	struct fake *f = p->f;
	struct stream *s;
	unsigned i = 0;

	pthread_mutex_lock(&f->lock);
	f->seen.opens++;
	f->seen.first_seq = m->first_seq;
	f->seen.last_seq = m->last_seq;
	pthread_mutex_unlock(&f->lock);
	if (m->secret.len != HR_WIRE_SECRET_BYTES)
		return -EPROTO;
	if (f->o.never_opens)
		return 0;
	if (f->o.nack) {
		say_nack(p, m->channel, f->o.nack, f->o.nack_mark);
		return 0;
	}
	s = find_stream(f, m);
	while (i < CHANNELS && p->channels[i].stream)
		i++;
	if (!s || i == CHANNELS)
		return -EPROTO;
	if (memcmp(s->secret, m->secret.data, sizeof(s->secret)) != 0) {
		COUNT(f, refused, 1);
		say_nack(p, m->channel, "denied", 0);
		return 0;
	}
	if (!f->o.no_skip && m->first_seq > hr_writer_mark(s->writer) + 1)
		hr_writer_skip(s->writer, m->first_seq - 1);
	p->channels[i].number = m->channel;
	p->channels[i].stream = s;
	p->channels[i].left_out = 0;
	s->told = hr_writer_mark(s->writer);
	say_opened(p, m->channel, s->told);
	return 0;
}

/* ---- frames -------------------------------------------------------------------------------------- */

static int append(struct peer *p, unsigned i, const uint8_t *frame, size_t bytes, uint64_t seq)
{
	struct stream *s = p->channels[i].stream;
	struct fake *f = p->f;
	int r = seq == 1 ? -EALREADY : hr_writer_append(s->writer, frame, bytes);

	if (r == -ERANGE || (p->channels[i].left_out && seq > p->channels[i].left_out)) {
		say_nack(p, p->channels[i].number, "gap", hr_writer_mark(s->writer));
		return 0;
	}
	p->channels[i].left_out = 0;
	if (r == -EALREADY) {
		COUNT(f, doubles, 1);
		say_ack(p, p->channels[i].number, s);
		return 0;
	}
	if (r < 0)
		return r;
	s->bytes += bytes;
	pthread_mutex_lock(&f->lock);
	if (s->bytes > f->seen.most_in_flight)
		f->seen.most_in_flight = s->bytes;
	pthread_mutex_unlock(&f->lock);
	if (happens(f, f->o.forget_per_mille))
		return -ECONNABORTED;
	if (!f->o.never_acks && !f->o.ack_late_ms &&
	    hr_writer_mark(s->writer) >= s->told + (f->o.ack_every ? f->o.ack_every : 1))
		say_ack(p, p->channels[i].number, s);
	return 0;
}

static int on_data(struct peer *p, const uint8_t *frame, size_t bytes)
{
	unsigned i = channel_of(p, p->used);
	struct fake *f = p->f;
	Headrace__Frame *msg;
	uint64_t seq;

	COUNT(f, frames, 1);
	if (i == CHANNELS)
		return 0; /* on its way when the channel was closed */
	if (hr_frame_unpack(frame, bytes, &msg) < 0)
		return -EBADMSG;
	seq = msg->seq;
	headrace__frame__free_unpacked(msg, NULL);
	if (happens(f, f->o.drop_per_mille))
		return -ECONNABORTED;
	if (happens(f, f->o.full_per_mille)) {
		say_nack(p, p->used, "full", hr_writer_mark(p->channels[i].stream->writer));
		p->channels[i].left_out = seq;
		return 0;
	}
	if (happens(f, f->o.gap_per_mille)) {
		p->channels[i].left_out = seq;
		return 0;
	}
	return append(p, i, frame, bytes, seq);
}

/* ---- connections --------------------------------------------------------------------------------- */

static int on_hello(struct peer *p, const Headrace__Hello *m)
{
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	Headrace__HelloAck ack = HEADRACE__HELLO_ACK__INIT;
	Headrace__Refusal refusal = HEADRACE__REFUSAL__INIT;
	const struct fake_options *o = &p->f->o;

	COUNT(p->f, hellos, 1);
	if (o->mute)
		return 0;
	if (o->refusal) {
		msg.body_case = HEADRACE__WIRE__BODY_REFUSAL;
		msg.refusal = &refusal;
		refusal.reason = (char *)(uintptr_t)o->refusal;
		refusal.text = (char *)(uintptr_t) "because the test wants it";
		hr_conn_send_now(p->c, &msg);
		hr_conn_close(p->c, false);
		return 0;
	}
	msg.body_case = HEADRACE__WIRE__BODY_HELLO_ACK;
	msg.hello_ack = &ack;
	ack.version = o->version ? o->version : m->max_version;
	ack.ping_ms = o->promised_ms;
	ack.window_bytes = o->window_bytes;
	ack.max_frame_bytes = 64u << 20;
	hr_conn_limit(p->c, 64u << 20);
	return hr_conn_send_now(p->c, &msg);
}

static int on_control(struct peer *p, const Headrace__Wire *m)
{
	unsigned i;

	switch (m->body_case) {
	case HEADRACE__WIRE__BODY_HELLO:
		return on_hello(p, m->hello);
	case HEADRACE__WIRE__BODY_OPEN:
		return on_open(p, m->open);
	case HEADRACE__WIRE__BODY_USE:
		COUNT(p->f, switches, 1);
		p->used = m->use->channel;
		return 0;
	case HEADRACE__WIRE__BODY_CLOSE:
		i = channel_of(p, m->close->channel);
		if (i < CHANNELS)
			drop_stream(p->f, p->channels[i].stream);
		return 0;
	case HEADRACE__WIRE__BODY_PONG:
		COUNT(p->f, pongs, m->pong->boot_ns && m->pong->real_ns);
		return 0;
	default:
		return -EPROTO;
	}
}

static int on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct peer *p = self;
	Headrace__Wire *msg;
	int r;

	if (p->f->o.silent && p->greeted) {
		free(frame);
		return 0;
	}
	if (control) {
		r = hr_wire_unpack(frame, bytes, &msg);
		if (!r) {
			r = on_control(p, msg);
			headrace__wire__free_unpacked(msg, NULL);
		}
		p->greeted = true;
	} else {
		r = on_data(p, frame, bytes);
	}
	free(frame);
	return r;
}

static void on_ready(void *self)
{
	(void)self;
}

static void on_closed(void *self, int error, const char *why)
{
	struct peer *p = self, **link = &p->f->peers;

	(void)error;
	(void)why;
	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	free(p);
}

static const struct hr_conn_events events = {
    .ready = on_ready, .frame = on_frame, .closed = on_closed};

static void on_connection(uv_stream_t *listener, int status)
{
	struct fake *f = listener->data;
	struct peer *p = calloc(1, sizeof(*p));

	COUNT(f, connections, 1);
	p->f = f;
	p->next = f->peers;
	f->peers = p;
	if (status < 0 || hr_conn_accept(listener, NULL, false, &events, p, &p->c) < 0) {
		f->peers = p->next;
		free(p);
	}
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_ping(uv_timer_t *timer)
{
	struct fake *f = timer->data;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	Headrace__Ping ping = HEADRACE__PING__INIT;

	msg.body_case = HEADRACE__WIRE__BODY_PING;
	msg.ping = &ping;
	ping.id = uv_now(&f->loop);
	for (struct peer *p = f->peers; p && !f->o.silent && !f->o.mute; p = p->next)
		hr_conn_send_now(p->c, &msg);
	if (!f->o.ack_late_ms)
		ack_all(f);
	complain_all(f);
}

static void on_late(uv_timer_t *timer)
{
	ack_all(timer->data);
}

static void on_stop(uv_async_t *async)
{
	struct fake *f = async->data;

	uv_close((uv_handle_t *)&f->listener, NULL);
	uv_close((uv_handle_t *)&f->stop, NULL);
	uv_close((uv_handle_t *)&f->ping, NULL);
	uv_close((uv_handle_t *)&f->late, NULL);
	for (struct peer *p = f->peers; p; p = p->next)
		hr_conn_close(p->c, true);
}

static void *run(void *arg)
{
	struct fake *f = arg;
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	return NULL;
}

static void listen_at(struct fake *f)
{
	struct sockaddr_in at;
	int bytes = sizeof(at);

	uv_ip4_addr("127.0.0.1", f->o.port, &at);
	uv_tcp_init(&f->loop, &f->listener);
	f->listener.data = f;
	if (uv_tcp_bind(&f->listener, (struct sockaddr *)&at, 0) < 0 ||
	    uv_listen((uv_stream_t *)&f->listener, 128, on_connection) < 0)
		abort();
	uv_tcp_getsockname(&f->listener, (struct sockaddr *)&at, &bytes);
	f->seen.port = ntohs(at.sin_port);
}

struct fake *fake_start(const struct fake_options *options)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->o = *options;
	f->o.ping_ms = f->o.ping_ms ? f->o.ping_ms : 1000;
	f->o.promised_ms = f->o.promised_ms ? f->o.promised_ms : 100000;
	f->o.window_bytes = f->o.window_bytes ? f->o.window_bytes : 1u << 20;
	f->random = options->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	pthread_mutex_init(&f->lock, NULL);
	uv_loop_init(&f->loop);
	listen_at(f);
	uv_async_init(&f->loop, &f->stop, on_stop);
	uv_timer_init(&f->loop, &f->ping);
	uv_timer_init(&f->loop, &f->late);
	f->stop.data = f->ping.data = f->late.data = f;
	uv_timer_start(&f->ping, on_ping, f->o.ping_ms / 2, f->o.ping_ms / 2 + 1);
	if (f->o.ack_late_ms)
		uv_timer_start(&f->late, on_late, f->o.ack_late_ms, f->o.ack_late_ms);
	if (pthread_create(&f->thread, NULL, run, f) != 0)
		abort();
	return f;
}

void fake_look(struct fake *f, struct fake_seen *ret)
{
	pthread_mutex_lock(&f->lock);
	*ret = f->seen;
	pthread_mutex_unlock(&f->lock);
}

void fake_stop(struct fake *f)
{
	uv_async_send(&f->stop);
	pthread_join(f->thread, NULL);
	uv_loop_close(&f->loop);
	while (f->streams) {
		struct stream *s = f->streams;

		f->streams = s->next;
		hr_writer_close(s->writer);
		free(s);
	}
	pthread_mutex_destroy(&f->lock);
	free(f);
}
