/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_play.c - one thread plays many daemons over epoll */
#include "tests/bench/ingest.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/frame.h"
#include "net/address.h"
#include "net/wire.h"

#define IN_BYTES  65536u
#define OUT_BYTES 8192u /* of control messages */

struct player {
	int fd;
	unsigned number;
	bool open;
	uint64_t window;
	size_t next;  /* frame that is sent next, or in part */
	size_t acked; /* frames acknowledged */
	size_t at;    /* bytes of it that are sent */
	size_t in_flight;
	double due_s;	 /* of the next frame, with a rate */
	double *sent_s;	 /* of each frame */
	uint32_t events; /* what epoll is asked for */
	uint8_t *in;
	size_t in_bytes;
	uint8_t out[OUT_BYTES];
	size_t out_bytes;
};

struct playing {
	const struct bench_play *play;
	struct player *players;
	size_t frames; /* of each */
	unsigned opened, finished;
	int epoll;
	double begun_s;
	struct bench_result *result;
	const char *failure;
};

double bench_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int put(struct player *p, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;
	int r = hr_wire_pack(msg, &buf, &bytes);

	if (r == 0 && p->out_bytes + bytes > OUT_BYTES)
		r = -ENOBUFS;
	if (r == 0) {
		memcpy(p->out + p->out_bytes, buf, bytes);
		p->out_bytes += bytes;
	}
	if (r != -E2BIG)
		free(buf);
	return r;
}

static int put_hello(struct player *p)
{
	Headrace__Hello hello = HEADRACE__HELLO__INIT;
	Headrace__Open open = HEADRACE__OPEN__INIT;
	Headrace__Use use = HEADRACE__USE__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	uint8_t secret[HR_WIRE_SECRET_BYTES] = {1};
	char node[32];
	int r;

	snprintf(node, sizeof(node), "n%u", p->number);
	hello.min_version = HR_WIRE_VERSION_MIN;
	hello.max_version = HR_WIRE_VERSION;
	hello.software = "the ingest bench";
	hello.node = node;
	msg.body_case = HEADRACE__WIRE__BODY_HELLO;
	msg.hello = &hello;
	r = put(p, &msg);
	open.channel = 1;
	open.cluster = "";
	open.job = "bench";
	open.node = node;
	open.boot_id = "b";
	open.instance = 1;
	open.secret = (ProtobufCBinaryData){sizeof(secret), secret};
	msg.body_case = HEADRACE__WIRE__BODY_OPEN;
	msg.open = &open;
	if (r == 0)
		r = put(p, &msg);
	use.channel = 1;
	msg.body_case = HEADRACE__WIRE__BODY_USE;
	msg.use = &use;
	return r == 0 ? put(p, &msg) : r;
}

static size_t frame_bytes(const struct playing *g, size_t i)
{
	return g->play->frames->offsets[i + 1] - g->play->frames->offsets[i];
}

/* May it send (more of) its next frame now? */
static bool may_send(const struct playing *g, const struct player *p, double now_s)
{
	if (!p->open || g->opened < g->play->connections || p->next >= g->frames)
		return false;
	if (p->at > 0)
		return true;
	return now_s >= p->due_s && p->in_flight + frame_bytes(g, p->next) <= p->window;
}

static int ask(struct playing *g, struct player *p, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = p};

	if (p->events == events)
		return 0;
	p->events = events;
	return epoll_ctl(g->epoll, EPOLL_CTL_MOD, p->fd, &e) < 0 ? -errno : 0;
}

static int blocked(struct playing *g, struct player *p)
{
	return errno == EAGAIN ? ask(g, p, EPOLLIN | EPOLLOUT) : -errno;
}

static int send_frames(struct playing *g, struct player *p)
{
	const struct bench_frames *f = g->play->frames;
	double now_s = bench_now_s();

	while (may_send(g, p, now_s)) {
		size_t bytes = frame_bytes(g, p->next);
		ssize_t n = send(p->fd, f->bytes + f->offsets[p->next] + p->at, bytes - p->at,
				 MSG_NOSIGNAL);

		if (n < 0)
			return blocked(g, p);
		if (p->at == 0) {
			p->sent_s[p->next] = now_s;
			p->in_flight += bytes;
		}
		p->at += (size_t)n;
		if (p->at < bytes)
			continue;
		p->at = 0;
		p->next++;
		if (g->play->rate > 0)
			p->due_s += 1 / g->play->rate;
	}
	return ask(g, p, EPOLLIN);
}

static int send_all(struct playing *g, struct player *p)
{
	while (p->out_bytes > 0 && p->at == 0) {
		ssize_t n = send(p->fd, p->out, p->out_bytes, MSG_NOSIGNAL);

		if (n < 0)
			return blocked(g, p);
		memmove(p->out, p->out + n, p->out_bytes - (size_t)n);
		p->out_bytes -= (size_t)n;
	}
	return send_frames(g, p);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void acked(struct playing *g, struct player *p, uint64_t seq)
{
	struct bench_result *r = g->result;
	double now_s = bench_now_s();

	for (; p->acked + 1 < seq && p->acked < g->frames; p->acked++) {
		r->latency_s[r->n_latency++] = now_s - p->sent_s[p->acked];
		r->frames++;
		r->events += g->play->frames->events[p->acked];
		r->bytes += frame_bytes(g, p->acked);
		p->in_flight -= frame_bytes(g, p->acked);
	}
	r->seconds = now_s - g->begun_s;
	if (p->acked == g->frames)
		g->finished++;
}

static int pong(struct player *p, uint64_t id)
{
	Headrace__Pong body = HEADRACE__PONG__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	body.id = id;
	body.real_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	msg.body_case = HEADRACE__WIRE__BODY_PONG;
	msg.pong = &body;
	return put(p, &msg);
}

static int take(struct playing *g, struct player *p, const Headrace__Wire *msg)
{
	switch (msg->body_case) {
	case HEADRACE__WIRE__BODY_HELLO_ACK:
		p->window = msg->hello_ack->window_bytes;
		return 0;
	case HEADRACE__WIRE__BODY_OPENED:
		p->open = true;
		g->opened++;
		return msg->opened->mark == 1 ? 0 : -EEXIST; /* the store is not new */
	case HEADRACE__WIRE__BODY_ACK:
		acked(g, p, msg->ack->seq);
		return 0;
	case HEADRACE__WIRE__BODY_PING:
		return pong(p, msg->ping->id);
	case HEADRACE__WIRE__BODY_NACK:
		fprintf(stderr, "ingest: Nack %s: %s\n", msg->nack->reason, msg->nack->text);
		return -EPROTO;
	case HEADRACE__WIRE__BODY_REFUSAL:
		fprintf(stderr, "ingest: refused: %s\n", msg->refusal->text);
		return -EPROTO;
	default:
		return 0;
	}
}

static int receive(struct playing *g, struct player *p)
{
	ssize_t n = recv(p->fd, p->in + p->in_bytes, IN_BYTES - p->in_bytes, 0);
	size_t at = 0, whole;
	uint32_t flags;
	int r = 0;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	p->in_bytes += (size_t)n;
	while (r == 0 &&
	       hr_frame_check_any(p->in + at, p->in_bytes - at, IN_BYTES, &whole, &flags) == 0) {
		Headrace__Wire *msg;

		r = hr_wire_unpack(p->in + at, whole, &msg);
		if (r < 0)
			return r;
		r = take(g, p, msg);
		headrace__wire__free_unpacked(msg, NULL);
		at += whole;
	}
	memmove(p->in, p->in + at, p->in_bytes - at);
	p->in_bytes -= at;
	return r;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int join(struct playing *g, struct player *p, const struct sockaddr_storage *to)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = p};
	int one = 1;

	p->in = malloc(IN_BYTES);
	p->sent_s = calloc(g->frames, sizeof(*p->sent_s));
	if (!p->in || !p->sent_s)
		return -ENOMEM;
	p->fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || connect(p->fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		return -errno;
	(void)setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fcntl(p->fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	p->events = e.events;
	if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, p->fd, &e) < 0)
		return -errno;
	return put_hello(p);
}

/* The streams are open: from now on it counts. With a rate, the players are spread over the first interval. */
static void begin(struct playing *g)
{
	const struct bench_play *play = g->play;

	g->begun_s = bench_now_s();
	for (unsigned i = 0; i < play->connections && play->rate > 0; i++)
		g->players[i].due_s = g->begun_s + (double)i / play->connections / play->rate;
}

static int run(struct playing *g, void (*begun)(void *self), void *self)
{
	unsigned n = g->play->connections;
	struct epoll_event e[64];
	int r = 0;

	while (g->finished < n && r == 0) {
		int ready = epoll_wait(g->epoll, e, 64, g->play->rate > 0 ? 1 : 1000);

		if (g->begun_s == 0 && g->opened == n) {
			begun(self);
			begin(g);
			for (unsigned i = 0; i < n && r == 0; i++)
				r = send_all(g, &g->players[i]);
		}
		for (int i = 0; i < ready && r == 0; i++) {
			struct player *p = e[i].data.ptr;

			if (e[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				r = receive(g, p);
			if (r == 0)
				r = send_all(g, p);
		}
		for (unsigned i = 0; i < n && r == 0 && g->play->rate > 0 && g->begun_s > 0; i++)
			if (g->players[i].due_s <= bench_now_s())
				r = send_all(g, &g->players[i]);
	}
	return r;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void leave(struct playing *g)
{
	for (unsigned i = 0; i < g->play->connections; i++) {
		if (g->players[i].fd >= 0)
			close(g->players[i].fd);
		free(g->players[i].in);
		free(g->players[i].sent_s);
	}
	free(g->players);
	close(g->epoll);
}

int bench_play(const struct bench_play *play, void (*begun)(void *self), void *self,
	       struct bench_result *ret)
{
	struct playing g = {.play = play, .frames = play->frames->n, .result = ret};
	struct sockaddr_storage to;
	struct hr_address a;
	size_t n;
	int r = hr_address_parse(play->address, &a);

	*ret = (struct bench_result){0};
	if (r == 0)
		r = hr_address_resolve(&a, false, &to, 1, &n);
	if (r < 0)
		return r;
	if (play->rate > 0 && (size_t)(play->rate * play->seconds) < g.frames)
		g.frames = (size_t)(play->rate * play->seconds);
	g.epoll = epoll_create1(EPOLL_CLOEXEC);
	g.players = calloc(play->connections, sizeof(*g.players));
	ret->latency_s = calloc(play->connections * g.frames, sizeof(*ret->latency_s));
	if (g.epoll < 0 || !g.players || !ret->latency_s) {
		free(g.players);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < play->connections; i++)
		g.players[i] = (struct player){.fd = -1, .number = i};
	for (unsigned i = 0; i < play->connections && r == 0; i++)
		r = join(&g, &g.players[i], &to);
	if (r == 0)
		r = run(&g, begun, self);
	leave(&g);
	qsort(ret->latency_s, ret->n_latency, sizeof(*ret->latency_s), by_value);
	return r;
}
