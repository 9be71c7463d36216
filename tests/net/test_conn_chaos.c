/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conn_chaos.c - both sides of a connection send, pause, go on and close at random
 *
 * Whatever they do: what arrives is the beginning of what was sent, in order; each side hears of its end once; and all of it arrives
 * when the sender flushed and the receiver was there to the end. HEADRACE_SEED gives another first seed, HEADRACE_ROUNDS more of them.
 */
#include "tests/net/pair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/headrace-chaos-XXXXXX";
static struct hr_tls *server_tls, *client_tls;

struct side {
	struct end *end;
	unsigned sent; /* frames that were taken */
	bool closed_by_us;
	bool now; /* dropped what was queued */
	bool paused;
};

struct chaos {
	struct rig rig;
	struct side sides[2];
	uint64_t random;
};

static unsigned any(struct chaos *c, unsigned below)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(c->random >> 33) % below;
}

static size_t frame_bytes(unsigned i)
{
	static const size_t sizes[] = {0, 10, 300, 16000, 16384, 60000, 400000};

	return sizes[i * 5 % 7] + i % 13;
}

static void send_some(struct chaos *c, struct side *s)
{
	for (unsigned n = any(c, 20); n > 0; n--) {
		size_t bytes = frame_bytes(s->sent);
		int r = hr_conn_send(s->end->c, make_frame(bytes, s->sent, 0), 16 + bytes);

		assert_int_equal(r, s->closed_by_us ? -EPIPE : 0);
		s->sent += r == 0;
	}
}

static void step(struct chaos *c, struct side *s)
{
	if (!s->end->c)
		return;
	switch (any(c, 40)) {
	case 0:
		hr_conn_close(s->end->c, true);
		s->now = s->closed_by_us = true;
		break;
	case 1:
		hr_conn_close(s->end->c, false);
		s->closed_by_us = true;
		break;
	case 2 ... 9:
		s->paused = !s->paused;
		hr_conn_pause(s->end->c, s->paused);
		break;
	case 10 ... 15:
		send_some(c, s);
		break;
	default:
		uv_run(&c->rig.loop, UV_RUN_NOWAIT);
		break;
	}
}

/* Lets all go on, and both close. */
static void settle(struct chaos *c)
{
	for (unsigned i = 0; i < 2; i++)
		if (c->sides[i].end->c)
			hr_conn_pause(c->sides[i].end->c, false);
	if (c->sides[0].end->c) {
		hr_conn_close(c->sides[0].end->c, false);
		c->sides[0].closed_by_us = true;
	}
	RUN_UNTIL(&c->rig, !c->rig.client.c && !c->rig.server.c);
}

static void check(const struct side *from, const struct side *to)
{
	assert_true(to->end->n <= from->sent);
	for (unsigned i = 0; i < to->end->n; i++)
		assert_frame(to->end, i, frame_bytes(i), i, 0);
	if (!to->closed_by_us && !from->now)
		assert_int_equal(to->end->n, from->sent);
	if (from->closed_by_us)
		assert_int_equal(from->end->error, 0);
}

static void run(uint64_t seed, const char *address, bool tls)
{
	struct chaos c = {.random = seed};

	rig_init(&c.rig);
	rig_listen(&c.rig, address);
	c.rig.tls = tls ? server_tls : NULL;
	c.rig.client.limit = c.rig.server.limit = 1u << 20;
	c.sides[0].end = &c.rig.client;
	c.sides[1].end = &c.rig.server;
	rig_connect(&c.rig, tls ? client_tls : NULL);
	for (unsigned steps = 20 + any(&c, 100); steps > 0; steps--)
		step(&c, &c.sides[any(&c, 2)]);
	settle(&c);
	check(&c.sides[0], &c.sides[1]);
	rig_done(&c.rig);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void rounds(const char *address, bool tls)
{
	uint64_t seed = setting("HEADRACE_SEED", 1), n = setting("HEADRACE_ROUNDS", 100);

	for (uint64_t i = 0; i < n; i++) {
		if (i % 50 == 0)
			printf("seeds from %" PRIu64 "\n", seed + i);
		run(seed + i, address, tls);
	}
}

static void test_tcp(void **state)
{
	rounds("tcp://127.0.0.1:0", false);
}

static void test_tls(void **state)
{
	rounds("tcp://127.0.0.1:0", true);
}

static struct hr_tls *context(const char *who, bool server)
{
	char cert[128], key[128], ca[128], *error = NULL;
	struct hr_tls_files files = {cert, key, ca};
	struct hr_tls *t = NULL;

	snprintf(cert, sizeof(cert), "%s/%s.pem", folder, who);
	snprintf(key, sizeof(key), "%s/%s.key", folder, who);
	snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
	if (hr_tls_new(&files, server, &t, &error) < 0)
		fail_msg("%s", error);
	return t;
}

static int begin_all(void **state)
{
	char command[256];

	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
		 HEADRACE_SOURCE
		 "/scripts/make-ca %s --collector localhost,127.0.0.1 --node n1 >/dev/null",
		 folder);
	assert_int_equal(system(command), 0);
	server_tls = context("collector/localhost", true);
	client_tls = context("node/n1", false);
	return 0;
}

static int end_all(void **state)
{
	char command[64];

	hr_tls_unref(server_tls);
	hr_tls_unref(client_tls);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_tcp), cmocka_unit_test(test_tls)};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
