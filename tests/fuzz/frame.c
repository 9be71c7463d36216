/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame from the wire. The CRC keeps a fuzzer out, so the target computes it: input is flags (one
 * byte), then the payload. What unpacks must come back the same after another round of packing.
 */
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void again(const Headrace__Frame *msg)
{
	Headrace__Frame *copy;
	uint8_t *buf;
	size_t bytes, whole;

	if (hr_frame_pack(msg, 1, &buf, &bytes) < 0)
		return;
	if (hr_frame_check(buf, bytes, &whole) < 0 || whole != bytes)
		abort();
	/* protobuf-c packs unknown fields of number 0, which it then refuses. */
	if (hr_frame_unpack(buf, bytes, &copy) == 0) {
		if (copy->body_case != msg->body_case || copy->seq != msg->seq)
			abort();
		headrace__frame__free_unpacked(copy, NULL);
	}
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct hr_frame_hdr h = {.magic = HR_FRAME_MAGIC};
	Headrace__Frame *msg;
	uint8_t *buf;
	size_t whole;

	(void)hr_frame_check(data, bytes, &whole); /* as it is */
	if (bytes < 1)
		return 0;
	buf = malloc(sizeof(h) + bytes - 1);
	if (!buf)
		return 0;
	h.length = (uint32_t)(bytes - 1);
	h.flags = data[0] & HR_FRAME_ZSTD;
	memcpy(buf + sizeof(h), data + 1, bytes - 1);
	h.crc32c = hr_crc32c(hr_crc32c(0, &h.length, 8), buf + sizeof(h), bytes - 1);
	memcpy(buf, &h, sizeof(h));
	if (hr_frame_check(buf, sizeof(h) + bytes - 1, &whole) < 0 ||
	    whole != sizeof(h) + bytes - 1)
		abort();
	if (hr_frame_unpack(buf, whole, &msg) == 0) {
		again(msg);
		headrace__frame__free_unpacked(msg, NULL);
	}
	free(buf);
	return 0;
}
