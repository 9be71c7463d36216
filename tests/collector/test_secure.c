/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real headrace-collector with certificates: a node streams as itself and as nobody else, not with a certificate that has expired, and
 * not for ever on the doorstep; SIGHUP takes new certificates.
 */
#include "tests/collector/client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"

static char folder[2048], store_path[2100];

/* `make-ca` with these arguments; false where there is no openssl. */
static bool make_ca(const char *arguments)
{
	char command[8192];

	snprintf(command, sizeof(command), "%s %s/ca %s >%s/ca.log 2>&1", MAKE_CA, folder,
		 arguments, folder);
	return system(command) == 0; // NOLINT(cert-env33-c,concurrency-mt-unsafe)
}

static void start(struct collector *c, void **state, const char *plain)
{
	char cert[2200], key[2200], ca[2200];

	snprintf(store_path, sizeof(store_path), "%s/store", folder);
	snprintf(cert, sizeof(cert), "%s/ca/collector/localhost.pem", folder);
	snprintf(key, sizeof(key), "%s/ca/collector/localhost.key", folder);
	snprintf(ca, sizeof(ca), "%s/ca/ca.pem", folder);
	collector_start(c, store_path, help_path(state, "log"), "--plain", plain, "--tls-cert",
			cert, "--tls-key", key, "--tls-ca", ca, NULL);
}

/* ---- a client behind TLS ----------------------------------------------------------------------- */

struct secure {
	struct client plain; /* its socket */
	struct hr_tls *tls;
	struct hr_tls_session *session;
	uint8_t in[65536];
	size_t in_bytes;
};

static void join(struct secure *s, const char *address, const char *who)
{
	char cert[2200], key[2200], ca[2200], *error = NULL;
	const struct hr_tls_files files = {cert, key, ca};

	snprintf(cert, sizeof(cert), "%s/ca/%s.pem", folder, who);
	snprintf(key, sizeof(key), "%s/ca/%s.key", folder, who);
	snprintf(ca, sizeof(ca), "%s/ca/ca.pem", folder);
	*s = (struct secure){0};
	if (hr_tls_new(&files, false, &s->tls, &error) < 0)
		fail_msg("%s", error);
	assert_int_equal(hr_tls_session_new(s->tls, "127.0.0.1", &s->session), 0);
	client_connect(&s->plain, address);
}

static void done(struct secure *s)
{
	hr_tls_session_free(s->session);
	hr_tls_unref(s->tls);
	client_done(&s->plain);
}

static void flush(struct secure *s)
{
	uint8_t buf[16384];
	size_t n;

	while ((n = hr_tls_out(s->session, buf, sizeof(buf))) > 0)
		client_send(&s->plain, buf, n);
}

/* Bytes from the peer, once. False: the end. */
static bool receive(struct secure *s)
{
	uint8_t buf[16384];
	ssize_t n;
	int r;

	flush(s);
	n = recv(s->plain.fd, buf, sizeof(buf), 0);
	if (n <= 0 || hr_tls_in(s->session, buf, (size_t)n) < 0)
		return false;
	while ((r = hr_tls_read(s->session, s->in + s->in_bytes, sizeof(s->in) - s->in_bytes)) > 0)
		s->in_bytes += (size_t)r;
	flush(s);
	return r == -EAGAIN;
}

static void tell(struct secure *s, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;

	while (!hr_tls_ready(s->session))
		assert_true(receive(s));
	assert_int_equal(hr_wire_pack(msg, &buf, &bytes), 0);
	assert_int_equal(hr_tls_write(s->session, buf, bytes), 0);
	free(buf);
	flush(s);
}

/* The next message but Ping. */
static Headrace__Wire *next(struct secure *s)
{
	Headrace__Wire *msg;
	uint32_t flags;
	size_t need;

	for (;;) {
		while (s->in_bytes == 0 ||
		       hr_frame_check_any(s->in, s->in_bytes, SIZE_MAX, &need, &flags) == -EAGAIN)
			assert_true(receive(s));
		assert_int_equal(hr_wire_unpack(s->in, need, &msg), 0);
		memmove(s->in, s->in + need, s->in_bytes - need);
		s->in_bytes -= need;
		if (msg->body_case != HEADRACE__WIRE__BODY_PING)
			return msg;
		headrace__wire__free_unpacked(msg, NULL);
	}
}

static void hello(struct secure *s, const char *who)
{
	Headrace__Hello body = HEADRACE__HELLO__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT, *answer;

	body.min_version = body.max_version = HR_WIRE_VERSION;
	body.software = "a test";
	body.node = "n1";
	msg.body_case = HEADRACE__WIRE__BODY_HELLO;
	msg.hello = &body;
	tell(s, &msg);
	answer = next(s);
	assert_int_equal(answer->body_case, HEADRACE__WIRE__BODY_HELLO_ACK);
	assert_string_equal(answer->hello_ack->who, who);
	headrace__wire__free_unpacked(answer, NULL);
}

static Headrace__Wire__BodyCase open_stream(struct secure *s, const char *node)
{
	uint8_t secret[HR_WIRE_SECRET_BYTES] = {1};
	Headrace__Open body = HEADRACE__OPEN__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT, *answer;
	Headrace__Wire__BodyCase kind;

	body.channel = 1;
	body.cluster = "c";
	body.job = "7";
	body.node = (char *)node;
	body.boot_id = "b";
	body.instance = 1;
	body.secret = (ProtobufCBinaryData){sizeof(secret), secret};
	msg.body_case = HEADRACE__WIRE__BODY_OPEN;
	msg.open = &body;
	tell(s, &msg);
	answer = next(s);
	kind = answer->body_case;
	headrace__wire__free_unpacked(answer, NULL);
	return kind;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_node(void **state)
{
	static struct secure s;
	struct collector c;
	struct client plain;
	uint8_t answer[256];

	snprintf(folder, sizeof(folder), "%s", (const char *)*state);
	if (!make_ca("--collector localhost,127.0.0.1 --node n1.cluster")) {
		printf("SKIPPED certificates: make-ca does not work here\n");
		skip();
	}
	start(&c, state, "no");
	join(&s, c.address, "node/n1.cluster");
	hello(&s, "node n1.cluster");
	assert_int_equal(open_stream(&s, "n2"), HEADRACE__WIRE__BODY_NACK);
	assert_int_equal(open_stream(&s, "n1"), HEADRACE__WIRE__BODY_OPENED);
	done(&s);
	client_connect(&plain, c.address);
	client_losses(&plain, 1, 100);			      /* anything that is not TLS */
	while (recv(plain.fd, answer, sizeof(answer), 0) > 0) /* an alert, and the end */
		;
	client_done(&plain);
	assert_int_equal(collector_stop(&c), 0);
	assert_true(collector_printed(&c, "(TLS)"));
	assert_true(collector_printed(&c, "another node"));
}

/* One port for both: a node with its certificate, and whoever asks on the collector's own machine. */
static void test_either(void **state)
{
	static struct secure s;
	struct collector c;
	struct client plain;

	snprintf(folder, sizeof(folder), "%s", (const char *)*state);
	if (!make_ca("--collector localhost,127.0.0.1 --node n1.cluster")) {
		printf("SKIPPED certificates: make-ca does not work here\n");
		skip();
	}
	start(&c, state, "loopback");
	client_join(&plain, c.address, "n1");
	join(&s, c.address, "node/n1.cluster");
	hello(&s, "node n1.cluster");
	assert_int_equal(open_stream(&s, "n1"), HEADRACE__WIRE__BODY_OPENED);
	done(&s);
	client_done(&plain);
	assert_int_equal(collector_stop(&c), 0);
}

static void test_reload(void **state)
{
	static struct secure s;
	struct collector c;

	snprintf(folder, sizeof(folder), "%s", (const char *)*state);
	if (!make_ca("--collector localhost,127.0.0.1 --node n1"))
		skip();
	start(&c, state, "no");
	assert_int_equal(kill(c.pid, SIGHUP), 0);
	for (int i = 0;
	     i < 30000 && !collector_printed(&c, "reloaded configuration and certificates"); i++)
		usleep(10000);
	join(&s, c.address, "node/n1");
	hello(&s, "node n1");
	done(&s);
	assert_int_equal(unlink(strcat(folder, "/ca/ca.pem")),
			 0); /* what cannot be read changes nothing */
	*strrchr(folder, '/') = '\0';
	*strrchr(folder, '/') = '\0';
	assert_int_equal(kill(c.pid, SIGHUP), 0);
	for (int i = 0; i < 30000 && !collector_printed(&c, "ca.pem"); i++)
		usleep(10000);
	assert_true(collector_printed(&c, "ca.pem"));
	assert_int_equal(collector_stop(&c), 0);
}

/* A certificate that has run out since opens nothing, which is said once; who came in with it stays. */
static void test_expired(void **state)
{
	static struct secure before, late;
	struct collector c;

	snprintf(folder, sizeof(folder), "%s", (const char *)*state);
	if (!make_ca("--collector localhost,127.0.0.1 --node n1 --days 30"))
		skip();
	collector_clocks(help_path(state, "clock"));
	start(&c, state, "no");
	join(&before, c.address, "node/n1");
	hello(&before, "node n1");
	collector_date(31 * 24 * 3600);
	for (int i = 0; i < 3; i++) {
		join(&late, c.address, "node/n1");
		while (receive(&late)) /* our side is content first, then hears of theirs */
			;
		assert_non_null(strstr(hr_tls_error(late.session), "expired"));
		done(&late);
	}
	assert_int_equal(open_stream(&before, "n1"), HEADRACE__WIRE__BODY_OPENED);
	done(&before);
	assert_int_equal(collector_stop(&c), 0);
	collector_clocks(NULL);
	assert_int_equal(collector_printed_times(&c, "expired"), 1);
}

/* Who sends the first bytes of a handshake and no more has as long as any stranger. */
static void test_slow_handshake(void **state)
{
	static const uint8_t client_hello_begins[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00};
	static struct secure honest;
	struct collector c;
	struct client slow;
	uint8_t answer[256];

	snprintf(folder, sizeof(folder), "%s", (const char *)*state);
	if (!make_ca("--collector localhost,127.0.0.1 --node n1"))
		skip();
	collector_clocks(help_path(state, "clock"));
	start(&c, state, "no");
	client_connect(&slow, c.address);
	join(&honest, c.address, "node/n1");
	hello(&honest, "node n1"); /* the other one came first, and counts from before now */
	for (size_t i = 0; i < sizeof(client_hello_begins); i++) {
		client_send(&slow, &client_hello_begins[i], 1);
		collector_later(2);
	}
	client_send(&slow, "", 1);
	while (recv(slow.fd, answer, sizeof(answer), 0) > 0)
		;
	client_done(&slow);
	assert_int_equal(open_stream(&honest, "n1"), HEADRACE__WIRE__BODY_OPENED);
	done(&honest);
	assert_int_equal(collector_stop(&c), 0);
	collector_clocks(NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_node), T(test_either), T(test_reload),
					   T(test_expired), T(test_slow_handshake)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
