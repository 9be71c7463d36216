/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that send a byte a second and never come to an end: closed in time, and nobody else is. The seconds are the test's. */
#include "tests/collector/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define HELLO_S 10u  /* for the first message */
#define FRAME_S 300u /* for a frame */
#define EARLY_S 30u  /* the kernel's clock goes on, too */

static char store_path[4096];

/* Who works next to them. */
struct honest {
	struct client client;
	uint64_t seq;
};

static void begin(struct collector *c, void **state, struct honest *h)
{
	snprintf(store_path, sizeof(store_path), "%s", help_path(state, "store"));
	collector_clocks(help_path(state, "clock"));
	collector_start(c, store_path, help_path(state, "log"), NULL);
	client_join(&h->client, c->address, "n1");
	client_open(&h->client, 1, "7", "n1", 5);
	h->seq = client_opened(&h->client, 1);
	client_use(&h->client, 1);
}

static void end(struct collector *c, struct honest *h)
{
	client_done(&h->client);
	assert_int_equal(collector_stop(c), 0);
	collector_clocks(NULL);
	frames_check(store_path, "7", "n1", h->seq);
}

/* A byte of each of `slow`, a second that passes, and a frame of the honest one, whose Ack says that it has passed. */
static void second(struct client *slow, size_t n, const uint8_t *byte, struct honest *h)
{
	for (size_t i = 0; i < n; i++)
		client_send(&slow[i], byte, 1);
	collector_later(1);
	h->seq++;
	client_losses(&h->client, h->seq, h->seq);
	client_acked(&h->client, 1, h->seq);
}

static bool hears_nothing(const struct client *c)
{
	uint8_t byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* A Hello that does not end: whoever it may be has 10 s, however busy they look. */
static void test_hello(void **state)
{
	static const struct hr_frame_hdr hello = {HR_FRAME_MAGIC, 4096, HR_FRAME_CONTROL, 0};
	const uint8_t *bytes = (const uint8_t *)&hello;
	struct client slow[3];
	struct collector c;
	struct honest h;

	begin(&c, state, &h);
	for (size_t i = 0; i < 3; i++)
		client_connect(&slow[i], c.address);
	for (unsigned s = 0; s < HELLO_S; s++) {
		if (s == HELLO_S / 2)
			for (size_t i = 0; i < 3; i++)
				assert_true(hears_nothing(&slow[i]));
		second(slow, 3, &bytes[s], &h);
	}
	for (unsigned s = 0; s < 3; s++) /* they were let in some time after they came */
		second(slow, 0, NULL, &h);
	for (size_t i = 0; i < 3; i++) {
		Headrace__Wire *msg = client_expect(&slow[i], HEADRACE__WIRE__BODY_REFUSAL);

		assert_string_equal(msg->refusal->text, "no Hello within 10 s");
		headrace__wire__free_unpacked(msg, NULL);
		client_expect_end(&slow[i]);
		client_done(&slow[i]);
	}
	end(&c, &h);
}

/* A frame that does not end: its bytes are signs of life, and it has 5 minutes. */
static void test_frame(void **state)
{
	struct frame f = frame_bulk(2, 2 * FRAME_S);
	struct client slow;
	struct collector c;
	struct honest h;

	begin(&c, state, &h);
	client_join(&slow, c.address, "n2");
	slow.mute = true; /* it is in the middle of a frame */
	client_open(&slow, 1, "7", "n2", 5);
	client_opened(&slow, 1);
	client_use(&slow, 1);
	for (unsigned s = 0; s < FRAME_S + 3; s++) {
		if (s == FRAME_S - EARLY_S)
			assert_false(collector_printed(&c, "closed"));
		second(&slow, 1, &f.buf[s], &h);
	}
	client_expect_end(&slow);
	client_done(&slow);
	free(f.buf);
	assert_int_equal(collector_printed_times(&c, "sends no data, or is too slow: closed"), 1);
	end(&c, &h);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_hello), T(test_frame)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
