/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers at a real headrace-collector: what they say wrong, do not say, or ask for; and those who work next to them. */
#include "tests/collector/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STORE help_path(state, "store")
#define LOG   help_path(state, "log")

#define IN_FLIGHT "headrace_collector_in_flight_bytes"

static char store_path[4096];

static void start(struct collector *c, void **state)
{
	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(c, store_path, LOG, NULL);
}

/* ---- what they say ---------------------------------------------------------------------------- */

static void test_versions(void **state)
{
	struct collector c;
	struct client d;

	start(&c, state);
	client_connect(&d, c.address);
	assert_null(client_hello(&d, 1, 99, "n1")); /* a newer one that still speaks ours */
	client_done(&d);
	client_connect(&d, c.address);
	assert_string_equal(client_hello(&d, HR_WIRE_VERSION + 1, 99, "n1"), "version");
	client_expect_end(&d);
	client_done(&d);
	client_connect(&d, c.address);
	assert_string_equal(client_hello(&d, 0, 0, "n1"), "version");
	client_done(&d);
	client_connect(&d, c.address);
	assert_string_equal(client_hello(&d, 3, 1, "n1"), "version");
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
}

static void test_malformed(void **state)
{
	/* a Wire message with field 900 only, of a newer version */
	static const uint8_t newer[] = {0xa2, 0x38, 0x01, 'x'};
	uint8_t message[HR_FRAME_HDR_BYTES + sizeof(newer)];
	struct collector c;
	struct client d;

	start(&c, state);
	client_join(&d, c.address, "n1");
	memcpy(message + HR_FRAME_HDR_BYTES, newer, sizeof(newer));
	hr_frame_seal(message, sizeof(newer), HR_FRAME_CONTROL);
	client_send(&d, message, sizeof(message));
	client_open(&d, 1, "a", "n1", 5);
	client_opened(&d, 1);
	client_open(&d, 2, "b", "n1", 5);
	client_opened(&d, 2);
	client_use(&d, 1);
	client_frame(&d, frame_garbage());
	client_nacked(&d, 1, "malformed");
	client_use(&d, 2); /* the other channel and the connection stay */
	client_losses(&d, 2, 4);
	client_acked(&d, 2, 4);
	client_send(&d, "this is no frame at all", 23);
	client_expect_end(&d);
	client_done(&d);

	client_connect(&d, c.address); /* data before Hello */
	client_losses(&d, 2, 2);
	client_expect_end(&d);
	client_done(&d);
	client_connect(&d, c.address); /* more than a stranger may make us hold */
	memcpy(message, &(struct hr_frame_hdr){HR_FRAME_MAGIC, 1u << 20, 0, 0}, HR_FRAME_HDR_BYTES);
	client_send(&d, message, HR_FRAME_HDR_BYTES);
	client_expect_end(&d);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store_path, "b", "n1", 4);
}

/* What the kernel says about a local connection counts, whatever its frames say. */
static void test_mere_user(void **state)
{
	struct collector c;
	struct client d;

	if (getuid() != 0) {
		printf("SKIPPED mere user: not root\n");
		skip();
	}
	start(&c, state);
	assert_int_equal(seteuid(65534), 0);
	client_connect(&d, c.address);
	assert_int_equal(seteuid(0), 0);
	assert_null(client_hello(&d, 1, 1, "n1"));
	client_open(&d, 1, "_node", "n1", 5);
	client_nacked(&d, 1, "denied");
	client_open(&d, 2, "7", "n1", 5);
	assert_int_equal(client_opened(&d, 2), 1);
	client_use(&d, 2);
	client_frame(&d, frame_job(2, 65534));
	client_acked(&d, 2, 2);
	client_frame(&d, frame_job(3, 0));
	client_nacked(&d, 2, "denied");
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	assert_true(collector_printed(&c, "65534"));
	frames_check(store_path, "7", "n1", 2);
}

/* The log: who says one thing often does not hide another; lines cannot be forged; 127.0.0.0/8 is one host. */
static void test_log(void **state)
{
	struct collector c;
	struct client d;

	start(&c, state);
	client_join(&d, c.address, "n1");
	client_open(&d, 0, "\n<0>forged", "n1", 5);
	client_nacked(&d, 0, "denied");
	client_open(&d, 1, "", "n1", 5);
	client_nacked(&d, 1, "malformed");
	client_done(&d);
	client_connect(&d, c.address);
	assert_string_equal(client_hello(&d, 9, 9, "n1"), "version");
	client_done(&d);
	assert_true(collector_printed(&c, "job \\x0A<0>forged on n1: channel numbers begin at 1"));
	assert_true(collector_printed(&c, "a stream must have a job, a node and an instance"));
	assert_true(collector_printed(&c, ": a test supports protocols 9 to 9"));
	assert_int_equal(collector_stop(&c), 0);
}

/* ---- who says nothing, or not all of it ----------------------------------------------------------- */

/* Half a frame and then silence: gone, and nobody else is harmed. */
static void test_silent(void **state)
{
	struct frame f = frame_loss(2);
	struct client half, mute, honest;
	struct collector c;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_clocks(help_path(state, "clocks"));
	collector_start(&c, store_path, LOG, "--ping", "200s", NULL);
	client_join(&half, c.address, "n1");
	client_join(&mute, c.address, "n2");
	client_join(&honest, c.address, "n3");
	client_open(&half, 1, "7", "n1", 5);
	client_opened(&half, 1);
	client_open(&honest, 1, "7", "n3", 5);
	client_opened(&honest, 1);
	client_use(&half, 1);
	client_send(&half, f.buf, f.bytes / 2);
	free(f.buf);
	half.mute = mute.mute = true;
	client_use(&honest, 1);
	for (uint64_t seq = 2; seq < 12; seq++) { /* silent for three Pings */
		client_losses(&honest, seq, seq);
		client_acked(&honest, 1, seq);
		collector_later(100);
	}
	client_losses(&honest, 12, 12);
	client_acked(&honest, 1, 12);
	client_expect_end(&half);
	client_expect_end(&mute);
	client_done(&half);
	client_done(&mute);
	client_done(&honest);
	assert_int_equal(collector_stop(&c), 0);
	assert_true(collector_printed(&c, "sends no data, or is too slow"));
}

/* A thousand who have said who they are and nothing else: the one that works does not notice. */
static void test_idle(void **state)
{
	static struct client idle[1000];
	struct collector c;
	struct client d;

	start(&c, state);
	for (size_t i = 0; i < 1000; i++)
		client_join(&idle[i], c.address, "idle");
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_use(&d, 1);
	for (uint64_t seq = 2; seq < 20; seq++) {
		client_losses(&d, seq, seq);
		client_acked(&d, 1, seq);
	}
	for (size_t i = 0; i < 1000; i++)
		client_done(&idle[i]);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
}

/* Those that say nothing make room for those that do. */
static void test_too_many(void **state)
{
	struct client idle[40], d;
	struct collector c;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(&c, store_path, LOG, "--max-connections", "20", NULL);
	for (size_t i = 0; i < 40; i++)
		client_connect(&idle[i], c.address);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_expect_end(&idle[0]);
	for (size_t i = 0; i < 40; i++)
		client_done(&idle[i]);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	assert_true(collector_printed(&c, "max_connections"));
}

/* Beginnings of frames, each of nearly 64 KiB, where there is memory for four: the first to begin go, the others are served. */
static void test_begun(void **state)
{
	const struct hr_frame_hdr header = {.magic = HR_FRAME_MAGIC, .length = 65000};
	struct client begun[8], d;
	struct collector c;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(&c, store_path, LOG, "--max-frame", "64KiB", "--window", "64KiB",
			"--memory", "256KiB", NULL);
	for (int i = 0; i < 8; i++) {
		/* The collector answers, so it has the header before; its clock is of milliseconds. */
		client_join(&begun[i], c.address, "n1");
		usleep(5000);
		client_send(&begun[i], &header, sizeof(header));
		client_send(&begun[i], "half", 4);
	}
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "a", "n1", 5);
	assert_int_equal(client_opened(&d, 1), 1);
	client_use(&d, 1);
	client_losses(&d, 2, 10);
	client_acked(&d, 1, 10);
	for (int i = 0; i < 4; i++)
		assert_null(client_next(&begun[i]));
	assert_true(collector_printed(&c, "the other side does not complete a frame"));
	for (int i = 0; i < 8; i++)
		client_done(&begun[i]);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
}

/* The value of a metric of the collector, whose log has the address. */
static double metric(const struct collector *c, const char *name)
{
	static const char before[] = "metrics at ", get[] = "GET /metrics HTTP/1.0\r\n\r\n";
	char line[4352], text[65536], *address = NULL;
	FILE *log = fopen(c->log, "re");
	struct client d;
	size_t n = 0;
	ssize_t more;

	while (!address && fgets(line, sizeof(line), log))
		address = strstr(line, before);
	fclose(log);
	if (!address) {
		fail();
		return 0;
	}
	address += strlen(before);
	address[strcspn(address, " \n")] = '\0';
	client_connect(&d, address);
	client_send(&d, get, strlen(get));
	while ((more = recv(d.fd, text + n, sizeof(text) - 1 - n, 0)) > 0)
		n += (size_t)more;
	client_done(&d);
	text[n] = '\0';
	snprintf(line, sizeof(line), "\n%s ", name);
	assert_non_null(strstr(text, line));
	return strtod(strstr(text, line) + strlen(line), NULL);
}

/* Connections that break while the collector works at their frames: they leave nothing behind. */
static void test_broken(void **state)
{
	struct collector c;
	struct client d;
	uint64_t mark;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(&c, store_path, LOG, "--metrics", "tcp://127.0.0.1:0", NULL);
	for (int i = 0; i < 20; i++) {
		client_join(&d, c.address, "n1");
		client_open(&d, 1, "a", "n1", 5);
		mark = client_opened(&d, 1);
		client_use(&d, 1);
		for (uint64_t k = 1; k <= 20; k++)
			client_frame(&d, frame_bulk(mark + k, 60000));
		client_done(&d);
	}
	for (int i = 0; i < 30000 && metric(&c, IN_FLIGHT) > 0; i++)
		usleep(10000);
	assert_true(metric(&c, IN_FLIGHT) == 0);
	assert_int_equal(collector_stop(&c), 0);
}

/* ---- who asks for much ---------------------------------------------------------------------------- */

/* The end of whoever asks for answers and reads none; an Open of channel 0 is answered with a Nack. */
static void test_unread(void **state)
{
	struct collector c;
	struct client d;

	start(&c, state);
	client_join(&d, c.address, "n1");
	for (int i = 0; i < 100 && !collector_printed(&c, "does not read the answers"); i++)
		for (int k = 0; k < 10000; k++)
			client_open(&d, 0, "a", "n1", 5);
	assert_true(collector_printed(&c, "does not read the answers"));
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
}

/* One channel opened again and again: the collector takes no more of them than it can work at, and others do not wait long. */
static void test_reopened(void **state)
{
	struct collector c;
	struct client d, other;
	Headrace__Wire *msg;
	unsigned opened = 0;

	start(&c, state);
	client_join(&d, c.address, "n1");
	client_join(&other, c.address, "n2");
	for (int i = 0; i < 5000; i++)
		client_open(&d, 1, i % 2 ? "a" : "b", "n1", 5);
	client_open(&other, 1, "c", "n2", 5);
	assert_int_equal(client_opened(&other, 1), 1);
	client_open(&d, 2, "last", "n1", 5);
	do { /* of those that a newer Open has not overtaken */
		msg = client_expect(&d, HEADRACE__WIRE__BODY_OPENED);
		opened = msg->opened->channel;
		headrace__wire__free_unpacked(msg, NULL);
	} while (opened != 2);
	client_done(&d);
	client_done(&other);
	assert_int_equal(collector_stop(&c), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct rlimit files = {4096,
				     4096}; /* test_idle needs a thousand, where that is allowed */
	const struct CMUnitTest tests[] = {
	    T(test_versions), T(test_malformed), T(test_mere_user), T(test_log),
	    T(test_silent),   T(test_idle),	 T(test_too_many),  T(test_begun),
	    T(test_broken),   T(test_unread),	 T(test_reopened),
	};

	(void)setrlimit(RLIMIT_NOFILE, &files);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
