/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conn_life.c - how connections begin and end, and who is at the other end
 */
#include "tests/net/pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANY   "tcp://127.0.0.1:0"
#define BYTES 300000u

static void begin(struct rig *rig)
{
	rig_init(rig);
	rig_listen(rig, ANY);
	rig->client.limit = rig->server.limit = 1u << 20;
}

static void send_some(struct hr_conn *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(hr_conn_send(c, make_frame(BYTES, i, 0), 16 + BYTES), 0);
}

/* ---- the end ------------------------------------------------------------------------------------- */

static void test_close_sends_what_is_queued(void **state)
{
	struct rig rig;

	begin(&rig);
	rig_connect(&rig, NULL);
	send_some(rig.client.c, 30);
	hr_conn_close(rig.client.c, false);
	assert_false(rig.client.closed); /* never from within */
	assert_int_equal(hr_conn_send(rig.client.c, make_frame(1, 1, 0), 17), -EPIPE);
	RUN_UNTIL(&rig, rig.client.closed && rig.server.closed);
	assert_int_equal(rig.client.error, 0);
	assert_int_equal(rig.server.error, 0);
	assert_int_equal(rig.server.n, 30);
	rig_done(&rig);
}

static void test_close_now_drops_it(void **state)
{
	struct rig rig;

	begin(&rig);
	rig_connect(&rig, NULL);
	hr_conn_pause(rig.server.c, true);
	send_some(rig.client.c, 100);
	hr_conn_close(rig.client.c, true);
	hr_conn_close(rig.client.c, false);
	assert_false(rig.client.closed);
	RUN_UNTIL(&rig, rig.client.closed);
	assert_int_equal(rig.client.error, 0);
	hr_conn_pause(rig.server.c, false);
	RUN_UNTIL(&rig, rig.server.closed);
	assert_true(rig.server.n < 100);
	rig_done(&rig);
}

/* A reader that takes nothing does not hold the one that closes for ever. */
static void test_close_waits_for_a_while(void **state)
{
	struct rig rig;
	uint64_t begun;

	begin(&rig);
	rig_connect(&rig, NULL);
	hr_conn_pause(rig.server.c, true);
	send_some(rig.client.c, 100);
	hr_conn_flush_ms = 200;
	begun = uv_hrtime();
	hr_conn_close(rig.client.c, false);
	RUN_UNTIL(&rig, rig.client.closed);
	assert_true(uv_hrtime() - begun > 180000000u); /* the loop's clock may be late */
	rig_done(&rig);
}

/* The kernel answers unread bytes with a reset, which would overtake the last words. */
static void test_last_words_arrive_though_much_was_unread(void **state)
{
	struct rig rig;

	begin(&rig);
	rig.server.pause_after = 1;
	rig_connect(&rig, NULL);
	send_some(rig.client.c, 20);
	RUN_UNTIL(&rig, rig.server.n == 1);
	send_some(rig.server.c, 10);
	hr_conn_close(rig.server.c, false);
	RUN_UNTIL(&rig, rig.client.closed && rig.server.closed);
	assert_int_equal(rig.client.n, 10);
	assert_int_equal(rig.server.n, 1);
	rig_done(&rig);
}

static void test_no_frame_after_close(void **state)
{
	struct rig rig;

	begin(&rig);
	rig.server.close_after = 2;
	rig_connect(&rig, NULL);
	for (unsigned i = 0; i < 10; i++)
		hr_conn_send(rig.client.c, make_frame(100, i, 0), 116);
	RUN_UNTIL(&rig, rig.client.closed && rig.server.closed);
	assert_int_equal(rig.server.n, 2);
	rig_done(&rig);
}

/* In the callback that accepted it: a server that has too many says so. */
static void refuse(uv_stream_t *listener, int status)
{
	struct rig *rig = listener->data;

	assert_int_equal(status, 0);
	assert_int_equal(
	    hr_conn_accept(listener, NULL, false, &end_events, &rig->server, &rig->server.c), 0);
	assert_int_equal(hr_conn_send(rig->server.c, make_frame(5, 1, HR_FRAME_CONTROL), 21), 0);
	hr_conn_close(rig->server.c, false);
}

static void test_refused_when_accepted(void **state)
{
	struct rig rig;

	begin(&rig);
	rig.listener.stream.connection_cb = refuse;
	assert_int_equal(
	    hr_conn_connect(&rig.loop, &rig.at, NULL, &end_events, &rig.client, &rig.client.c), 0);
	RUN_UNTIL(&rig, rig.client.closed && rig.server.closed);
	assert_false(rig.server.ready);
	assert_int_equal(rig.client.n, 1);
	rig_done(&rig);
}

/* ---- the beginning ------------------------------------------------------------------------------- */

static int connect_to(struct rig *rig, const char *address)
{
	struct hr_address to;

	assert_int_equal(hr_address_parse(address, &to), 0);
	return hr_conn_connect(&rig->loop, &to, NULL, &end_events, &rig->client, &rig->client.c);
}

static void fails_within(uint32_t ms, const char *address, int error, int or_error,
			 const char *says)
{
	struct rig rig;

	rig_init(&rig);
	hr_conn_setup_ms = ms;
	assert_int_equal(connect_to(&rig, address), 0);
	RUN_UNTIL(&rig, rig.client.closed);
	assert_false(rig.client.ready);
	if (rig.client.error != error)
		assert_int_equal(rig.client.error, or_error);
	assert_non_null(strstr(rig.client.why, says));
	rig_done(&rig);
}

static void fails_with(const char *address, int error, int or_error, const char *says)
{
	fails_within(600000, address, error, or_error, says);
}

static void test_nobody_there(void **state)
{
	char address[64], path[200] = "unix:///";
	struct rig rig;

	begin(&rig);
	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", rig.at.port);
	rig_done(&rig);
	fails_with(address, -ECONNREFUSED, 0, address);
	/* Without a network the resolver cannot know. */
	fails_with("tcp://no-such-host.invalid", -ENOENT, -EAGAIN, "no-such-host.invalid");
	fails_with("unix:///nonexistent/headrace.sock", -ENOENT, 0, "/nonexistent/headrace.sock");
	rig_init(&rig);
	memset(path + 8, 'x', sizeof(path) - 9);
	assert_int_equal(connect_to(&rig, path), -ENAMETOOLONG);
	rig_done(&rig);
}

/* A listener that accepts nothing. */
static int listen_deaf(struct sockaddr_in *ret, char address[64])
{
	socklen_t bytes = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)ret, bytes), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &bytes), 0);
	snprintf(address, 64, "tcp://127.0.0.1:%u", ntohs(ret->sin_port));
	return fd;
}

/* A listener whose backlog is full answers nothing at all. */
static void test_no_answer(void **state)
{
	struct sockaddr_in in;
	char address[64];
	int deaf = listen_deaf(&in, address), fill[4];
	uint64_t begun;

	for (unsigned i = 0; i < 4; i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(fill[i], (struct sockaddr *)&in, sizeof(in));
	}
	begun = uv_hrtime();
	fails_within(300, address, -ETIMEDOUT, 0, address);
	assert_true(uv_hrtime() - begun > 280000000u);
	for (unsigned i = 0; i < 4; i++)
		close(fill[i]);
	close(deaf);
}

static void test_closed_before_it_was_there(void **state)
{
	struct rig rig;

	begin(&rig);
	for (unsigned rounds = 0; rounds < 20; rounds++) {
		memset(&rig.client, 0, sizeof(rig.client));
		assert_int_equal(connect_to(&rig, rounds % 2 ? "tcp://localhost:1" : "unix:///x"),
				 0);
		for (unsigned i = 0; i < rounds / 2 && rig.client.c; i++)
			uv_run(&rig.loop, UV_RUN_NOWAIT);
		if (rig.client.c)
			hr_conn_close(rig.client.c, rounds % 3 == 0);
		RUN_UNTIL(&rig, rig.client.closed);
		assert_false(rig.client.ready);
	}
	rig_done(&rig);
}

/* Where localhost is ::1 first, the listener is at its second address. */
static void test_by_name(void **state)
{
	struct rig rig;

	begin(&rig);
	snprintf(rig.at.host, sizeof(rig.at.host), "localhost");
	rig_connect(&rig, NULL);
	rig_done(&rig);
}

static void test_sent_before_it_was_ready(void **state)
{
	struct rig rig;

	begin(&rig);
	assert_int_equal(
	    hr_conn_connect(&rig.loop, &rig.at, NULL, &end_events, &rig.client, &rig.client.c), 0);
	send_some(rig.client.c, 3);
	assert_true(hr_conn_queued(rig.client.c) > 3 * BYTES);
	RUN_UNTIL(&rig, rig.server.n == 3);
	rig_done(&rig);
}

static void test_adopted(void **state)
{
	struct hr_conn_peer peer;
	struct rig rig;
	int fds[2];

	rig_init(&rig);
	rig.client.limit = rig.server.limit = 1u << 20;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(hr_conn_adopt(&rig.loop, fds[0], &end_events, &rig.client, &rig.client.c),
			 0);
	assert_int_equal(hr_conn_adopt(&rig.loop, fds[1], &end_events, &rig.server, &rig.server.c),
			 0);
	send_some(rig.client.c, 20);
	RUN_UNTIL(&rig, rig.server.n == 20);
	hr_conn_peer(rig.server.c, &peer);
	assert_true(peer.loopback && peer.uid_known && !peer.tls);
	assert_int_equal(peer.uid, geteuid());
	hr_conn_close(rig.server.c, false);
	RUN_UNTIL(&rig, rig.client.closed && rig.server.closed);
	rig_done(&rig);
}

/* ---- who ----------------------------------------------------------------------------------------- */

static void whose(const char *listen, const char *ask, uint32_t uid)
{
	struct hr_conn_peer peer;
	struct rig rig;

	rig_init(&rig);
	rig_listen(&rig, listen);
	if (ask)
		snprintf(rig.at.host, sizeof(rig.at.host), "%s", ask);
	rig_connect(&rig, NULL);
	hr_conn_peer(rig.server.c, &peer);
	assert_true(peer.loopback);
	assert_true(peer.uid_known);
	assert_int_equal(peer.uid, uid);
	hr_conn_peer(rig.client.c, &peer); /* the client knows of its server, too */
	assert_true(peer.uid_known);
	assert_int_equal(peer.uid, uid);
	rig_done(&rig);
}

static void test_whose_socket(void **state)
{
	char folder[] = "/tmp/headrace-net-XXXXXX", path[64], address[80];

	whose(ANY, NULL, geteuid());
	whose("tcp://[::1]:0", NULL, geteuid());
	whose("tcp://[::]:0", "127.0.0.1", geteuid()); /* comes as ::ffff:127.0.0.1 */
	whose("tcp://[::]:0", "::ffff:127.0.0.1", geteuid());
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(address, sizeof(address), "unix://%s", path);
	whose(address, NULL, geteuid());
	unlink(path);
	rmdir(folder);
}

static void test_another_users_socket(void **state)
{
	struct hr_conn_peer peer;
	struct rig rig;
	pid_t child;
	char byte;
	int fd, go[2];

	if (geteuid() != 0) {
		printf("SKIPPED test_another_users_socket: only root can be another user\n");
		skip();
	}
	begin(&rig);
	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct sockaddr_in in = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					 .sin_port = htons(rig.at.port)};

		close(go[1]);
		fd = setuid(12345) == 0 ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
		_exit(connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0 ||
		      read(go[0], &byte, 1) != 0);
	}
	close(go[0]);
	RUN_UNTIL(&rig, rig.server.ready);
	hr_conn_peer(rig.server.c, &peer);
	assert_true(peer.loopback && peer.uid_known);
	assert_int_equal(peer.uid, 12345);
	close(go[1]);
	waitpid(child, NULL, 0);
	/* It is dead, and its socket belongs to nobody; the kernel says 0. */
	hr_conn_peer(rig.server.c, &peer);
	assert_false(peer.uid_known);
	rig_done(&rig);
}

/* Sends and closes before anybody looks. */
static void test_a_socket_without_owner(void **state)
{
	struct hr_conn_peer peer;
	struct rig rig;
	int fd;

	begin(&rig);
	fd = rig_raw(&rig);
	hr_conn_pause(rig.server.c, true);
	assert_int_equal(write(fd, "HRF1", 4), 4);
	close(fd);
	hr_conn_peer(rig.server.c, &peer);
	assert_true(peer.loopback);
	assert_false(peer.uid_known);
	rig_done(&rig);
}

/* Until the server accepts a connection, its socket belongs to no process. */
static void test_not_accepted(void **state)
{
	struct hr_conn_peer peer;
	struct sockaddr_in in;
	char address[64];
	int deaf = listen_deaf(&in, address), fd;
	struct rig rig;

	rig_init(&rig);
	assert_int_equal(connect_to(&rig, address), 0);
	RUN_UNTIL(&rig, rig.client.ready);
	hr_conn_peer(rig.client.c, &peer);
	assert_true(peer.loopback);
	assert_false(peer.uid_known);
	fd = accept(deaf, NULL, NULL);
	hr_conn_peer(rig.client.c, &peer);
	assert_true(peer.uid_known);
	assert_int_equal(peer.uid, geteuid());
	close(fd);
	close(deaf);
	rig_done(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_close_sends_what_is_queued),
	    cmocka_unit_test(test_close_now_drops_it),
	    cmocka_unit_test(test_close_waits_for_a_while),
	    cmocka_unit_test(test_last_words_arrive_though_much_was_unread),
	    cmocka_unit_test(test_no_frame_after_close),
	    cmocka_unit_test(test_refused_when_accepted),
	    cmocka_unit_test(test_nobody_there),
	    cmocka_unit_test(test_no_answer),
	    cmocka_unit_test(test_closed_before_it_was_there),
	    cmocka_unit_test(test_by_name),
	    cmocka_unit_test(test_sent_before_it_was_ready),
	    cmocka_unit_test(test_adopted),
	    cmocka_unit_test(test_whose_socket),
	    cmocka_unit_test(test_another_users_socket),
	    cmocka_unit_test(test_a_socket_without_owner),
	    cmocka_unit_test(test_not_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
