/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a connection, in pieces of odd sizes, and the control messages that they hold.
 *
 * The first byte seeds the sizes of the pieces and says what the rest is: bytes as they come (even), or, because the CRC keeps a
 * fuzzer out, frames to be made (odd): flags (one byte), length (two), payload. Those must arrive as they were sent, in any pieces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/assembly.h"
#include "net/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FRAMES_MOST 64u
#define LIMIT	    (64u << 10)

struct sent {
	size_t offset, bytes;
	bool control;
};

struct stream {
	uint8_t *bytes;
	size_t n;
	struct sent frames[FRAMES_MOST];
	unsigned made, seen;
	bool known; /* what is sent was made by us */
};

/* What unpacks must come back the same after another round of packing. */
static void check_message(const uint8_t *frame, size_t bytes)
{
	Headrace__Wire *msg, *again;
	uint8_t *packed;
	size_t packed_bytes;

	if (hr_wire_unpack(frame, bytes, &msg) < 0)
		return;
	if (hr_wire_pack(msg, &packed, &packed_bytes) == 0) {
		/* protobuf-c packs unknown fields of number 0, which it then refuses. */
		if (hr_wire_unpack(packed, packed_bytes, &again) == 0) {
			if (again->body_case != msg->body_case)
				abort();
			headrace__wire__free_unpacked(again, NULL);
		}
		free(packed);
	}
	headrace__wire__free_unpacked(msg, NULL);
}

static void check_frame(struct stream *s, struct hr_assembly *a)
{
	bool control;
	size_t bytes;
	uint8_t *frame = hr_assembly_frame(a, &bytes, &control);

	if (bytes > LIMIT || hr_assembly_within(a))
		abort();
	if (s->known) {
		const struct sent *f = &s->frames[s->seen];

		if (s->seen == s->made || f->bytes != bytes || f->control != control ||
		    memcmp(s->bytes + f->offset, frame, bytes) != 0)
			abort();
	}
	s->seen++;
	if (control)
		check_message(frame, bytes);
	free(frame);
}

/* As conn.c does: straight into the frame where there is one, else through hr_assembly_take. */
static int feed(struct stream *s, struct hr_assembly *a, uint8_t *piece, size_t n, bool direct)
{
	size_t room, taken;
	uint8_t *tail = direct ? hr_assembly_tail(a, &room) : NULL;
	int r;

	if (tail) {
		taken = room < n ? room : n;
		memcpy(tail, piece, taken);
		r = hr_assembly_grown(a, taken);
	} else {
		r = hr_assembly_take(a, piece, n, &taken);
	}
	if (r == 1)
		check_frame(s, a);
	if (r < 0 && s->known)
		abort();
	if (r >= 0 && taken < n && (r == 0 || taken == 0))
		abort();
	return r < 0 ? r : (int)taken;
}

static void run(struct stream *s, unsigned seed)
{
	struct hr_assembly a;

	hr_assembly_init(&a, LIMIT);
	for (size_t at = 0; at < s->n;) {
		size_t n;
		uint8_t *piece;
		int r;

		seed = seed * 1103515245u + 12345u;
		n = 1 + (seed >> 16) % (seed & 0x8000 ? 40 : 5000);
		if (n > s->n - at)
			n = s->n - at;
		piece = malloc(n); /* of its own, so that a look beyond it is seen */
		if (!piece)
			break;
		memcpy(piece, s->bytes + at, n);
		r = feed(s, &a, piece, n, seed & 0x4000);
		free(piece);
		if (r < 0)
			break;
		at += (size_t)r;
	}
	hr_assembly_done(&a);
}

static void make_frames(struct stream *s, const uint8_t *data, size_t bytes)
{
	while (bytes >= 3 && s->made < FRAMES_MOST) {
		uint32_t flags = data[0] % 3; /* HR_FRAME_ZSTD, HR_FRAME_CONTROL or neither */
		size_t n = data[1] | (size_t)data[2] << 8;
		uint8_t *frame = s->bytes + s->n;

		data += 3;
		bytes -= 3;
		if (n > bytes)
			n = bytes;
		if (n > LIMIT - HR_FRAME_HDR_BYTES)
			n = LIMIT - HR_FRAME_HDR_BYTES;
		memcpy(frame + HR_FRAME_HDR_BYTES, data, n);
		hr_frame_seal(frame, n, flags);
		s->frames[s->made++] =
		    (struct sent){s->n, HR_FRAME_HDR_BYTES + n, flags == HR_FRAME_CONTROL};
		s->n += HR_FRAME_HDR_BYTES + n;
		data += n;
		bytes -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct stream s = {0};

	if (bytes < 1)
		return 0;
	s.bytes = malloc(bytes + FRAMES_MOST * HR_FRAME_HDR_BYTES);
	if (!s.bytes)
		return 0;
	s.known = data[0] & 1;
	if (s.known) {
		make_frames(&s, data + 1, bytes - 1);
	} else {
		memcpy(s.bytes, data + 1, bytes - 1);
		s.n = bytes - 1;
	}
	run(&s, data[0]);
	if (s.known && s.seen != s.made)
		abort();
	free(s.bytes);
	return 0;
}
