/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_server.c - a collector that does nothing but answer queries, for tests
 *
 *      query_server STORE SOCKET [KEY=VALUE...]     at_once per_caller memory time threads spill spill_bytes silent
 *      query_server query-worker FD                 the child, as headrace-collector's
 *
 * Who asks is what Hello.node says: "" an operator, "-" nobody known, "1001" a user. With tls=FOLDER (scripts/make-ca's) SOCKET is
 * a port of 127.0.0.1, and user alice of the certificate has uid 1000. With munge=SOCKET of munged a credential is asked for, and
 * without one nobody is known. Ends with its standard input.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "collector/queries.h"
#include "common/frame.h"
#include "net/munge.h"
#include "net/wire.h"

static uv_loop_t loop;
static union {
	uv_stream_t stream;
	uv_pipe_t pipe;
	uv_tcp_t tcp;
} listener;
static uv_pipe_t input;
static struct hr_tls *tls;
static const char *munge;
static uv_timer_t ping;
static struct hr_queries *queries;

struct peer {
	struct peer *next;
	struct hr_conn *c;
	struct hr_who who;
};

static struct peer *peers;

static void ping_all(uv_timer_t *timer)
{
	Headrace__Ping body = HEADRACE__PING__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	(void)timer;
	msg.body_case = HEADRACE__WIRE__BODY_PING;
	msg.ping = &body;
	for (struct peer *p = peers; p != NULL; p = p->next)
		hr_conn_send_now(p->c, &msg);
}

static void find_out(struct peer *p, const Headrace__Hello *hello)
{
	struct hr_conn_peer peer;
	char *error = NULL;
	uint32_t gid;

	hr_conn_peer(p->c, &peer);
	if (munge != NULL) {
		p->who.user = hr_munge_decode(munge, hello->munge, &p->who.uid, &gid, &error) == 0;
		free(error);
		return;
	}
	p->who.operator_ = hello->node[0] == '\0' && !peer.tls;
	p->who.user = !p->who.operator_ && strcmp(hello->node, "-") != 0;
	p->who.uid = peer.tls && strcmp(peer.cn, "alice") == 0 ? 1000 : (uint32_t)atoi(hello->node);
}

static void greet(struct peer *p, const Headrace__Hello *hello)
{
	Headrace__HelloAck body = HEADRACE__HELLO_ACK__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	find_out(p, hello);
	body.version = HR_WIRE_VERSION;
	body.ping_ms = 1000;
	body.munge = munge != NULL;
	msg.body_case = HEADRACE__WIRE__BODY_HELLO_ACK;
	msg.hello_ack = &body;
	hr_conn_send_now(p->c, &msg);
	hr_conn_limit(p->c, HR_WIRE_MAX_BYTES + HR_FRAME_HDR_BYTES);
}

static int on_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct peer *p = self;
	Headrace__Wire *msg;
	int r = control ? hr_wire_unpack(frame, bytes, &msg) : -EBADMSG;

	free(frame);
	if (r < 0)
		return r;
	if (msg->body_case == HEADRACE__WIRE__BODY_HELLO)
		greet(p, msg->hello);
	else if (msg->body_case == HEADRACE__WIRE__BODY_QUERY)
		r = hr_queries_begin(queries, p->c, &p->who, msg->query);
	else if (msg->body_case == HEADRACE__WIRE__BODY_CANCEL)
		hr_queries_cancel(queries, p->c);
	headrace__wire__free_unpacked(msg, NULL);
	return r == -EACCES ? 0 : r;
}

static void on_drained(void *self)
{
	const struct peer *p = self;

	hr_queries_drained(queries, p->c);
}

static void on_closed(void *self, int error, const char *why)
{
	struct peer *p = self, **at = &peers;

	(void)error;
	(void)why;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	hr_queries_drop(queries, p->c);
	free(p);
}

static void on_ready(void *self)
{
	(void)self;
}

static const struct hr_conn_events events = {
    .ready = on_ready, .frame = on_frame, .drained = on_drained, .closed = on_closed};

static void on_connection(uv_stream_t *stream, int status)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (status < 0 || p == NULL || hr_conn_accept(stream, tls, false, &events, p, &p->c) < 0)
		abort();
	p->next = peers;
	peers = p;
}

static void all_gone(void *self)
{
	(void)self;
	hr_queries_free(queries);
	exit(EXIT_SUCCESS);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	static char buf[64];

	(void)handle;
	(void)wanted;
	*ret = uv_buf_init(buf, sizeof(buf));
}

static void on_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	(void)buf;
	if (n >= 0)
		return;
	uv_close((uv_handle_t *)stream, NULL);
	hr_queries_stop(queries, all_gone, NULL);
}

static void use_tls(const char *folder)
{
	char cert[256], key[256], ca[256], *error = NULL;
	const struct hr_tls_files files = {cert, key, ca};

	snprintf(cert, sizeof(cert), "%s/collector/localhost.pem", folder);
	snprintf(key, sizeof(key), "%s/collector/localhost.key", folder);
	snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
	if (hr_tls_new(&files, true, &tls, &error) < 0) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
}

static int listen_at(const char *where)
{
	struct sockaddr_in at;

	if (tls == NULL) {
		uv_pipe_init(&loop, &listener.pipe, 0);
		return uv_pipe_bind(&listener.pipe, where);
	}
	uv_tcp_init(&loop, &listener.tcp);
	uv_ip4_addr("127.0.0.1", atoi(where), &at);
	return uv_tcp_bind(&listener.tcp, (struct sockaddr *)&at, 0);
}

static void set(struct hr_queries_config *c, char *word)
{
	char *value = strchr(word, '=') + 1;
	unsigned long long number = strtoull(value, NULL, 10);

	value[-1] = '\0';
	if (strcmp(word, "at_once") == 0)
		c->at_once = (unsigned)number;
	else if (strcmp(word, "per_caller") == 0)
		c->per_caller = (unsigned)number;
	else if (strcmp(word, "memory") == 0)
		c->memory_bytes = number;
	else if (strcmp(word, "time") == 0)
		c->time_ms = number;
	else if (strcmp(word, "threads") == 0)
		c->threads = (unsigned)number;
	else if (strcmp(word, "spill") == 0)
		c->spill = value;
	else if (strcmp(word, "spill_bytes") == 0)
		c->spill_bytes = number;
	else if (strcmp(word, "silent") == 0)
		c->silent_ms = number;
	else if (strcmp(word, "munge") == 0)
		munge = value;
	else if (strcmp(word, "tls") == 0)
		use_tls(value);
	else
		abort();
}

int main(int argc, char **argv)
{
	struct hr_queries_config config = {.exe = "/proc/self/exe",
					   .at_once = 4,
					   .per_caller = 4,
					   .memory_bytes = 512 << 20,
					   .time_ms = 60000,
					   .threads = 2,
					   .spill_bytes = 256 << 20,
					   .silent_ms = 60000};

	if (argc == 3 && strcmp(argv[1], "query-worker") == 0)
		return hr_query_worker(atoi(argv[2]));
	if (argc < 3)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	config.store = argv[1];
	for (int i = 3; i < argc; i++)
		set(&config, argv[i]);
	uv_loop_init(&loop);
	uv_pipe_init(&loop, &input, 0);
	uv_timer_init(&loop, &ping);
	uv_timer_start(&ping, ping_all, 500, 500);
	if (hr_queries_new(&loop, &config, &queries) < 0 || listen_at(argv[2]) < 0 ||
	    uv_listen(&listener.stream, 16, on_connection) < 0 ||
	    uv_pipe_open(&input, STDIN_FILENO) < 0)
		return 1;
	uv_read_start((uv_stream_t *)&input, on_alloc, on_input);
	puts("listening");
	fflush(stdout);
	return uv_run(&loop, UV_RUN_DEFAULT);
}
