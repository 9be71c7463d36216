/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conn.c - frames over connections: sizes, pieces, limits, damage, pauses
 */
#include "tests/net/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/wire.h"

#define ANY "tcp://127.0.0.1:0"

static void begin(struct rig *rig)
{
	rig_init(rig);
	rig_listen(rig, ANY);
}

static void write_all(int fd, const void *buf, size_t bytes)
{
	assert_int_equal(write(fd, buf, bytes), bytes);
}

/* Around every border: the header, what is read at once, the limit of strangers. */
static const size_t sizes[] = {0,     1,     15,    16,	   17,	  100,	 4096,	16351, 16352,
			       16353, 16368, 16384, 32768, 40000, 65519, 65520, 300000};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_frames_in_odd_pieces(void **state)
{
	static const size_t pieces[] = {1, 3, 17, 1000, 16384, 70000};
	struct rig rig;

	for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
		size_t total = 0;
		uint8_t *all = malloc(1u << 20);
		uint64_t begun_ms;
		int fd;

		assert_non_null(all);
		begin(&rig);
		begun_ms = uv_now(&rig.loop);
		rig.server.limit = 1u << 20;
		fd = rig_raw(&rig);
		/* One by one is slow: the small ones only. */
		for (size_t i = 0; i < SIZES - (p == 0 ? 7 : 0); i++) {
			uint8_t *frame =
			    make_frame(sizes[i], (unsigned)i, i % 2 * HR_FRAME_CONTROL);

			memcpy(all + total, frame, HR_FRAME_HDR_BYTES + sizes[i]);
			total += HR_FRAME_HDR_BYTES + sizes[i];
			free(frame);
		}
		for (size_t at = 0; at < total; at += pieces[p]) {
			write_all(fd, all + at, total - at < pieces[p] ? total - at : pieces[p]);
			uv_run(&rig.loop, UV_RUN_NOWAIT);
		}
		RUN_UNTIL(&rig, rig.server.n == SIZES - (p == 0 ? 7 : 0));
		for (size_t i = 0; i < rig.server.n; i++)
			assert_frame(&rig.server, i, sizes[i], (unsigned)i,
				     i % 2 * HR_FRAME_CONTROL);
		assert_in_range(hr_conn_received_ms(rig.server.c), begun_ms, uv_now(&rig.loop));
		free(all);
		close(fd);
		RUN_UNTIL(&rig, rig.server.closed);
		assert_int_equal(rig.server.error, 0);
		rig_done(&rig);
	}
}

static void test_both_ways(void **state)
{
	struct rig rig;

	begin(&rig);
	rig.client.limit = rig.server.limit = 1u << 20;
	rig_connect(&rig, NULL);
	for (unsigned i = 0; i < 200; i++) {
		size_t bytes = sizes[i % SIZES];

		assert_int_equal(hr_conn_send(rig.client.c, make_frame(bytes, i, 0), 16 + bytes),
				 0);
		assert_int_equal(
		    hr_conn_send(rig.server.c, make_frame(i, i, HR_FRAME_CONTROL), 16 + i), 0);
	}
	RUN_UNTIL(&rig, rig.server.n == 200 && rig.client.n == 200);
	for (unsigned i = 0; i < 200; i++) {
		assert_frame(&rig.server, i, sizes[i % SIZES], i, 0);
		assert_frame(&rig.client, i, i, i, HR_FRAME_CONTROL);
	}
	RUN_UNTIL(&rig, rig.client.drained > 0);
	assert_int_equal(hr_conn_queued(rig.client.c), 0);
	rig_done(&rig);
}

static void test_messages(void **state)
{
	Headrace__Wire msg = HEADRACE__WIRE__INIT, *got;
	Headrace__Ping ping = HEADRACE__PING__INIT;
	struct rig rig;

	begin(&rig);
	rig_connect(&rig, NULL);
	ping.id = 77;
	msg.body_case = HEADRACE__WIRE__BODY_PING;
	msg.ping = &ping;
	assert_int_equal(hr_conn_send_now(rig.server.c, &msg), 0);
	RUN_UNTIL(&rig, rig.client.n == 1);
	assert_true(rig.client.kept[0].control);
	assert_int_equal(hr_wire_unpack(rig.client.kept[0].frame, rig.client.kept[0].bytes, &got),
			 0);
	assert_int_equal(got->body_case, HEADRACE__WIRE__BODY_PING);
	assert_int_equal(got->ping->id, 77);
	headrace__wire__free_unpacked(got, NULL);
	rig_done(&rig);
}

/* What a stranger's bytes end in. `limit` 0: the first one. */
static void bad(const void *bytes, size_t n, size_t limit, int error)
{
	struct rig rig;
	int fd;

	begin(&rig);
	rig.server.limit = limit;
	fd = rig_raw(&rig);
	write_all(fd, bytes, n);
	RUN_UNTIL(&rig, rig.server.closed);
	assert_int_equal(rig.server.error, error);
	assert_int_equal(rig.server.n, 0);
	assert_int_not_equal(rig.server.why[0], '\0');
	close(fd);
	rig_done(&rig);
}

static void test_what_is_no_frame(void **state)
{
	struct hr_frame_hdr h = {.magic = HR_FRAME_MAGIC, .length = HR_CONN_FIRST_BYTES - 15};
	uint8_t *frame = make_frame(100, 1, 0);

	bad("GET / HTTP/1.1\r\n", 16, 0, -EBADMSG);
	bad("G", 1, 0, -EBADMSG);      /* one byte tells */
	bad(&h, sizeof(h), 0, -E2BIG); /* nothing behind the header is waited for */
	h.length = 1u << 20;
	bad(&h, sizeof(h), 1u << 20, -E2BIG);
	h.length = HR_FRAME_MAX_BYTES + 1;
	bad(&h, sizeof(h), SIZE_MAX, -E2BIG);
	h.flags = HR_FRAME_CONTROL;
	h.length = HR_WIRE_MAX_BYTES + 1;
	bad(&h, sizeof(h), SIZE_MAX, -E2BIG);
	h.length = 10;
	h.flags = HR_FRAME_CONTROL | HR_FRAME_ZSTD;
	bad(&h, sizeof(h), 0, -EBADMSG);
	h.flags = 64;
	bad(&h, sizeof(h), 0, -EBADMSG);
	frame[50] ^= 1;
	bad(frame, 116, 0, -EBADMSG);
	free(frame);
}

static void test_end_of_the_peer(void **state)
{
	uint8_t *frame = make_frame(50000, 1, 0);
	struct rig rig;
	int fd;

	for (size_t bytes = 1; bytes < 50016; bytes += 16667) {
		begin(&rig);
		fd = rig_raw(&rig);
		write_all(fd, frame, bytes);
		close(fd);
		RUN_UNTIL(&rig, rig.server.closed);
		assert_int_equal(rig.server.error, -ECONNRESET);
		assert_int_equal(rig.server.n, 0);
		rig_done(&rig);
	}
	begin(&rig);
	fd = rig_raw(&rig);
	write_all(fd, frame, 50016);
	close(fd);
	RUN_UNTIL(&rig, rig.server.closed);
	assert_int_equal(rig.server.error, 0);
	assert_int_equal(rig.server.n, 1);
	rig_done(&rig);
	free(frame);
}

/* 40 MB do not fit into the buffers of sockets: they wait at the sender until the reader goes on. */
static void test_a_paused_reader_holds_the_sender(void **state)
{
	const unsigned frames = 100;
	const size_t bytes = 400000;
	struct rig rig;
	size_t waiting;

	begin(&rig);
	rig.server.limit = 1u << 20;
	rig_connect(&rig, NULL);
	hr_conn_pause(rig.server.c, true);
	for (unsigned i = 0; i < frames; i++)
		assert_int_equal(hr_conn_send(rig.client.c, make_frame(bytes, i, 0), 16 + bytes),
				 0);
	rig_run_for(&rig, 200);
	waiting = hr_conn_queued(rig.client.c);
	assert_true(waiting > frames * bytes / 2);
	assert_int_equal(rig.client.drained, 0);
	assert_int_equal(rig.server.n, 0);
	hr_conn_pause(rig.server.c, false);
	RUN_UNTIL(&rig, rig.server.n == frames && rig.client.drained > 0);
	assert_int_equal(hr_conn_queued(rig.client.c), 0);
	for (unsigned i = 0; i < frames; i++)
		assert_frame(&rig.server, i, bytes, i, 0);
	rig_done(&rig);
}

/* Frames that were read together with the one at which the owner pauses wait, too. */
static void test_a_pause_takes_effect_at_once(void **state)
{
	struct rig rig;

	begin(&rig);
	rig.server.pause_after = 3;
	rig_connect(&rig, NULL);
	for (unsigned i = 0; i < 10; i++)
		hr_conn_send(rig.client.c, make_frame(100, i, 0), 116);
	RUN_UNTIL(&rig, rig.server.n == 3);
	rig_run_for(&rig, 50);
	assert_int_equal(rig.server.n, 3);
	rig.server.pause_after = 6;
	hr_conn_pause(rig.server.c, false);
	assert_int_equal(rig.server.n, 3); /* not from within */
	RUN_UNTIL(&rig, rig.server.n == 6);
	rig_run_for(&rig, 50);
	assert_int_equal(rig.server.n, 6);
	hr_conn_pause(rig.server.c, false);
	RUN_UNTIL(&rig, rig.server.n == 10);
	rig_done(&rig);
}

static void test_a_frame_that_the_owner_refuses(void **state)
{
	struct rig rig;

	begin(&rig);
	rig.server.refuse = -EACCES;
	rig_connect(&rig, NULL);
	hr_conn_send(rig.client.c, make_frame(100, 1, 0), 116);
	hr_conn_send(rig.client.c, make_frame(100, 2, 0), 116);
	RUN_UNTIL(&rig, rig.server.closed && rig.client.closed);
	assert_int_equal(rig.server.error, -EACCES);
	assert_int_equal(rig.server.n, 1);
	rig_done(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_frames_in_odd_pieces),
	    cmocka_unit_test(test_both_ways),
	    cmocka_unit_test(test_messages),
	    cmocka_unit_test(test_what_is_no_frame),
	    cmocka_unit_test(test_end_of_the_peer),
	    cmocka_unit_test(test_a_paused_reader_holds_the_sender),
	    cmocka_unit_test(test_a_pause_takes_effect_at_once),
	    cmocka_unit_test(test_a_frame_that_the_owner_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
