/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - framing of protobuf messages: the unit of wire, spool and store
 *
 *      0        4        8        12       16
 *      +--------+--------+--------+--------+----------------- ... --+
 *      | magic  | length | flags  | crc32c | payload, length bytes   |
 *      +--------+--------+--------+--------+----------------- ... --+
 *
 * crc32c covers length, flags and payload. With HR_FRAME_ZSTD, the payload is one zstd frame, whose
 * header has the size of the content. All fields are little-endian. All functions are pure, and use
 * the caller's memory.
 */
#ifndef HEADRACE_COMMON_FRAME_H
#define HEADRACE_COMMON_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "proto/headrace.pb-c.h"

#define HR_FRAME_MAGIC	   0x31465248u
#define HR_FRAME_HDR_BYTES 16u
#define HR_FRAME_MAX_BYTES (64u << 20) /* largest payload, before and after compression */
#define HR_FRAME_ZSTD	   1u
#define HR_FRAME_CONTROL   2u /* only on a connection: the payload is a Wire message (net/wire.h) */
#define HR_STORE_VERSION   1u

struct hr_frame_hdr {
	uint32_t magic;
	uint32_t length;
	uint32_t flags;
	uint32_t crc32c;
};
_Static_assert(sizeof(struct hr_frame_hdr) == HR_FRAME_HDR_BYTES, "frame header");

/*
 * Packs `msg` with a header. Compresses it if `compress` is set and compression saves space.
 * *ret_buf is malloc'ed for the caller. Errors: -ENOMEM, -E2BIG.
 */
int hr_frame_pack(const Headrace__Frame *msg, int compress, uint8_t **ret_buf, size_t *ret_bytes);

/* Like hr_frame_pack, with a zstd context of the caller, for many frames. NULL: no compression. */
int hr_frame_pack_with(const Headrace__Frame *msg, ZSTD_CCtx *zstd, uint8_t **ret_buf,
		       size_t *ret_bytes);

/* Writes the header of a payload that starts at buf + HR_FRAME_HDR_BYTES. Returns `buf`. */
uint8_t *hr_frame_seal(uint8_t *buf, size_t payload_bytes, uint32_t flags);

/*
 * Checks the frame at buf[0..bytes). 0: header, length and CRC are right, and *ret_bytes is the
 * size of the frame. -EAGAIN: call again with *ret_bytes bytes. -EBADMSG: not a frame. -E2BIG: over
 * the limit.
 */
int hr_frame_check(const uint8_t *buf, size_t bytes, size_t *ret_bytes);

/*
 * Like hr_frame_check, for a connection, where control frames are allowed. *ret_flags: the header's
 * flags. -E2BIG: longer than `max_bytes`, returned as soon as the header is complete.
 */
int hr_frame_check_any(const uint8_t *buf, size_t bytes, size_t max_bytes, size_t *ret_bytes,
		       uint32_t *ret_flags);

/*
 * Unpacks a frame that hr_frame_check accepted. Free it with headrace__frame__free_unpacked(msg,
 * NULL). Returns 0, -ENOMEM, or -EBADMSG: not decodable, or over the limit after decompression.
 */
int hr_frame_unpack(const uint8_t *buf, size_t bytes, Headrace__Frame **ret_msg);

/* Like hr_frame_unpack, with memory of `allocator` (NULL: malloc), for readers of many messages. */
int hr_frame_unpack_into(const uint8_t *buf, size_t bytes, ProtobufCAllocator *allocator,
			 Headrace__Frame **ret_msg);

/*
 * Copies a message, given as the `base` of its struct. Packs and unpacks it, because protobuf-c
 * cannot copy. Free it with headrace__..__free_unpacked. NULL: no memory.
 */
void *hr_message_copy(const ProtobufCMessage *msg);

/* CRC-32C (Castagnoli). `crc`: the result for the preceding bytes, 0 at first. */
uint32_t hr_crc32c(uint32_t crc, const void *data, size_t bytes);

/* hr_crc32c without the CPU's instruction: for CPUs that lack it, and for tests. */
uint32_t hr__crc32c_table(uint32_t crc, const void *data, size_t bytes);

#endif
