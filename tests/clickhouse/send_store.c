/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_store.c - send_store STORE ADDRESS: sends all streams of a store to a collector
 *
 * Each stream arrives with the names, numbers and frames that it has in the store, so that the
 * collector has the same data. Prints the number of frames.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collector/client.h"

#define UNACKED_BYTES (1u << 20)

static void open_stream(struct client *c, const struct hr_stream *s, uint32_t channel)
{
	uint8_t secret[HR_WIRE_SECRET_BYTES] = {7};
	Headrace__Open open = HEADRACE__OPEN__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	open.channel = channel;
	open.cluster = (char *)s->cluster;
	open.job = (char *)s->job;
	open.attempt = s->attempt;
	open.node = (char *)s->node;
	open.boot_id = (char *)s->boot_id;
	open.instance = s->instance;
	open.secret = (ProtobufCBinaryData){sizeof(secret), secret};
	msg.body_case = HEADRACE__WIRE__BODY_OPEN;
	msg.open = &open;
	client_tell(c, &msg);
}

/* What is sent and not yet acknowledged. */
struct sending {
	struct client client;
	uint64_t
	    *last; /* of each channel: the last frame that was sent, until it is acknowledged */
	size_t n, waiting; /* waiting: channels with such frames */
	size_t bytes;
	uint64_t frames;
};

/* Waits until the collector has acknowledged all. */
static void wait_acked(struct sending *k)
{
	while (k->waiting > 0) {
		Headrace__Wire *msg = client_expect(&k->client, HEADRACE__WIRE__BODY_ACK);
		uint64_t *last = &k->last[msg->ack->channel - 1];

		if (*last > 0 && msg->ack->seq >= *last) {
			*last = 0;
			k->waiting--;
		}
		headrace__wire__free_unpacked(msg, NULL);
	}
	k->bytes = 0;
}

static void send_frame(struct sending *k, const struct hr_stream *s, uint32_t i, uint32_t channel)
{
	Headrace__Frame *msg;
	struct frame f;

	if (hr_stream_read(s, i, &msg) < 0 || hr_frame_pack(msg, 1, &f.buf, &f.bytes) < 0)
		abort();
	k->waiting += k->last[channel - 1] == 0;
	k->last[channel - 1] = msg->seq;
	headrace__frame__free_unpacked(msg, NULL);
	k->bytes += f.bytes;
	k->frames++;
	client_frame(&k->client, f);
	if (k->bytes > UNACKED_BYTES) {
		wait_acked(k);
		client_use(&k->client, channel);
	}
}

static void send_stream(struct sending *k, const struct hr_stream *s, uint32_t channel,
			uint64_t mark)
{
	client_use(&k->client, channel);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		const struct hr_frame_ref *ref = &s->frames[i];

		if (ref->seq > mark && frame_is_sent(ref->kind))
			send_frame(k, s, i, channel);
	}
}

static void send_all(struct sending *k, const struct hr_stream *streams)
{
	uint64_t *marks = calloc(k->n, sizeof(*marks));

	k->last = calloc(k->n, sizeof(*k->last));
	if (!marks || !k->last)
		abort();
	for (uint32_t i = 0; i < k->n; i++)
		open_stream(&k->client, &streams[i], i + 1);
	for (size_t i = 0; i < k->n; i++) {
		Headrace__Wire *msg = client_expect(&k->client, HEADRACE__WIRE__BODY_OPENED);

		marks[msg->opened->channel - 1] = msg->opened->mark;
		headrace__wire__free_unpacked(msg, NULL);
	}
	for (uint32_t i = 0; i < k->n; i++)
		send_stream(k, &streams[i], i + 1, marks[i]);
	wait_acked(k);
	free(marks);
	free(k->last);
}

int main(int argc, char **argv)
{
	const struct hr_stream *streams;
	struct hr_catalog *catalog;
	struct sending k = {0};
	char *error = NULL;

	if (argc != 3) {
		fputs("usage: send_store STORE ADDRESS\n", stderr);
		return 2;
	}
	if (hr_catalog_open((const char *const[]){argv[1]}, 1, NULL, &catalog, &error) < 0) {
		fprintf(stderr, "send_store: %s: %s\n", argv[1], error);
		return 1;
	}
	k.n = hr_catalog_streams(catalog, &streams);
	client_join(&k.client, argv[2], "sender");
	send_all(&k, streams);
	client_done(&k.client);
	hr_catalog_free(catalog);
	printf("%zu streams, %llu frames\n", k.n, (unsigned long long)k.frames);
	return 0;
}
