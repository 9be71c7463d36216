/* SPDX-License-Identifier: Apache-2.0 */
#include "common/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For Paths frames, level 3 saves a tenth more than level 1, and costs less than the hashing. */
#define FRAME_ZSTD_LEVEL     3
#define FRAME_ZSTD_MIN_BYTES 128u /* below this size, zstd's own header is larger than the saving */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames and segments are little-endian");

static uint32_t frame_crc(const struct hr_frame_hdr *h, const uint8_t *payload)
{
	uint32_t crc = hr_crc32c(0, &h->length, sizeof(h->length) + sizeof(h->flags));

	return hr_crc32c(crc, payload, h->length);
}

void *hr_message_copy(const ProtobufCMessage *msg)
{
	size_t bytes = protobuf_c_message_get_packed_size(msg);
	uint8_t *buf = malloc(bytes + 1);
	ProtobufCMessage *copy = NULL;

	if (buf) {
		protobuf_c_message_pack(msg, buf);
		copy = protobuf_c_message_unpack(msg->descriptor, NULL, bytes, buf);
	}
	free(buf);
	return copy;
}

uint8_t *hr_frame_seal(uint8_t *buf, size_t payload_bytes, uint32_t flags)
{
	struct hr_frame_hdr h = {
	    .magic = HR_FRAME_MAGIC, .length = (uint32_t)payload_bytes, .flags = flags};

	h.crc32c = frame_crc(&h, buf + sizeof(h));
	memcpy(buf, &h, sizeof(h));
	return buf;
}

/* Compresses into a new buffer. NULL: compression saves nothing, or no memory is left. */
static uint8_t *compress_payload(ZSTD_CCtx *zstd, const uint8_t *payload, size_t bytes,
				 size_t *ret_bytes)
{
	size_t room = ZSTD_compressBound(bytes), packed;
	uint8_t *buf = malloc(HR_FRAME_HDR_BYTES + room);

	if (!buf)
		return NULL;
	packed = ZSTD_compressCCtx(zstd, buf + HR_FRAME_HDR_BYTES, room, payload, bytes,
				   FRAME_ZSTD_LEVEL);
	if (ZSTD_isError(packed) || packed >= bytes) {
		free(buf);
		return NULL;
	}
	*ret_bytes = packed;
	return buf;
}

int hr_frame_pack_with(const Headrace__Frame *msg, ZSTD_CCtx *zstd, uint8_t **ret_buf,
		       size_t *ret_bytes)
{
	size_t bytes = headrace__frame__get_packed_size(msg), packed_bytes;
	uint8_t *buf, *packed = NULL;
	uint32_t flags = 0;

	if (bytes > HR_FRAME_MAX_BYTES)
		return -E2BIG;
	buf = malloc(HR_FRAME_HDR_BYTES + bytes);
	if (!buf)
		return -ENOMEM;
	headrace__frame__pack(msg, buf + HR_FRAME_HDR_BYTES);
	if (zstd && bytes >= FRAME_ZSTD_MIN_BYTES)
		packed = compress_payload(zstd, buf + HR_FRAME_HDR_BYTES, bytes, &packed_bytes);
	if (packed) {
		free(buf);
		buf = packed;
		bytes = packed_bytes;
		flags = HR_FRAME_ZSTD;
	}
	assert(bytes <= HR_FRAME_MAX_BYTES); /* also after compression, or no reader accepts it */
	*ret_buf = hr_frame_seal(buf, bytes, flags);
	*ret_bytes = HR_FRAME_HDR_BYTES + bytes;
	return 0;
}

int hr_frame_pack(const Headrace__Frame *msg, int compress, uint8_t **ret_buf, size_t *ret_bytes)
{
	ZSTD_CCtx *zstd = compress ? ZSTD_createCCtx() : NULL;
	int r = hr_frame_pack_with(msg, zstd, ret_buf, ret_bytes);

	ZSTD_freeCCtx(zstd);
	return r;
}

/* `known` are the flags that are allowed. */
static int frame_check(const uint8_t *buf, size_t bytes, uint32_t known, size_t max_payload,
		       size_t *ret_bytes, uint32_t *ret_flags)
{
	const uint32_t magic = HR_FRAME_MAGIC;
	struct hr_frame_hdr h;

	if (memcmp(buf, &magic, bytes < sizeof(magic) ? bytes : sizeof(magic)) != 0)
		return -EBADMSG;
	if (bytes < sizeof(h)) {
		*ret_bytes = sizeof(h);
		return -EAGAIN;
	}
	memcpy(&h, buf, sizeof(h));
	if (h.flags & ~known)
		return -EBADMSG;
	if (h.length > max_payload)
		return -E2BIG;
	*ret_flags = h.flags;
	*ret_bytes = sizeof(h) + h.length;
	if (bytes - sizeof(h) < h.length)
		return -EAGAIN;
	return frame_crc(&h, buf + sizeof(h)) == h.crc32c ? 0 : -EBADMSG;
}

int hr_frame_check(const uint8_t *buf, size_t bytes, size_t *ret_bytes)
{
	uint32_t flags;

	return frame_check(buf, bytes, HR_FRAME_ZSTD, HR_FRAME_MAX_BYTES, ret_bytes, &flags);
}

int hr_frame_check_any(const uint8_t *buf, size_t bytes, size_t max_bytes, size_t *ret_bytes,
		       uint32_t *ret_flags)
{
	size_t most = HR_FRAME_HDR_BYTES + (size_t)HR_FRAME_MAX_BYTES;

	if (max_bytes < HR_FRAME_HDR_BYTES)
		return -E2BIG;
	if (max_bytes > most)
		max_bytes = most;
	return frame_check(buf, bytes, HR_FRAME_ZSTD | HR_FRAME_CONTROL,
			   max_bytes - HR_FRAME_HDR_BYTES, ret_bytes, ret_flags);
}

static int inflate_payload(const uint8_t *payload, size_t bytes, uint8_t **ret_plain,
			   size_t *ret_bytes)
{
	unsigned long long declared = ZSTD_getFrameContentSize(payload, bytes);
	uint8_t *plain;

	/* The two largest values, ZSTD_CONTENTSIZE_UNKNOWN and _ERROR, are refused, too. */
	if (declared > HR_FRAME_MAX_BYTES)
		return -EBADMSG;
	plain = malloc(declared ? declared : 1);
	if (!plain)
		return -ENOMEM;
	if (ZSTD_decompress(plain, declared, payload, bytes) != declared) {
		free(plain);
		return -EBADMSG;
	}
	*ret_plain = plain;
	*ret_bytes = declared;
	return 0;
}

int hr_frame_unpack_into(const uint8_t *buf, size_t bytes, ProtobufCAllocator *allocator,
			 Headrace__Frame **ret_msg)
{
	struct hr_frame_hdr h;
	const uint8_t *payload = buf + sizeof(h);
	size_t payload_bytes;
	uint8_t *plain = NULL;
	Headrace__Frame *msg;
	int r;

	if (bytes < sizeof(h))
		return -EBADMSG;
	memcpy(&h, buf, sizeof(h));
	if (h.length != bytes - sizeof(h))
		return -EBADMSG;
	payload_bytes = h.length;
	if (h.flags & HR_FRAME_ZSTD) {
		r = inflate_payload(payload, h.length, &plain, &payload_bytes);
		if (r < 0)
			return r;
		payload = plain;
	}
	msg = headrace__frame__unpack(allocator, payload_bytes, payload);
	free(plain);
	if (!msg)
		return -EBADMSG;
	*ret_msg = msg;
	return 0;
}

int hr_frame_unpack(const uint8_t *buf, size_t bytes, Headrace__Frame **ret_msg)
{
	return hr_frame_unpack_into(buf, bytes, NULL, ret_msg);
}
