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

#define HR_FRAME_MAGIC	   0x31465248u /* "HRF1" */
#define HR_FRAME_HDR_BYTES 16u
#define HR_FRAME_MAX_BYTES (64u << 20) /* largest payload, compressed and uncompressed */
#define HR_FRAME_ZSTD	   1u
#define HR_FRAME_CONTROL   2u /* on a connection only: the payload is a Wire message (net/wire.h) */
#define HR_STORE_VERSION   1u

struct hr_frame_hdr {
	uint32_t magic;
	uint32_t length;
	uint32_t flags;
	uint32_t crc32c;
};
_Static_assert(sizeof(struct hr_frame_hdr) == HR_FRAME_HDR_BYTES, "frame header");

/*
 * Packs `msg` after a header. Compresses it if `compress` is set and that saves space. *ret_buf is
 * malloc'ed for the caller. Errors: -ENOMEM, -E2BIG.
 */
int hr_frame_pack(const Headrace__Frame *msg, int compress, uint8_t **ret_buf, size_t *ret_bytes);

/* As hr_frame_pack, with the caller's zstd context, for many frames. NULL: no compression. */
int hr_frame_pack_with(const Headrace__Frame *msg, ZSTD_CCtx *zstd, uint8_t **ret_buf,
		       size_t *ret_bytes);

/* Writes the header of a payload that starts at buf + HR_FRAME_HDR_BYTES. Returns `buf`. */
uint8_t *hr_frame_seal(uint8_t *buf, size_t payload_bytes, uint32_t flags);

/*
 * Checks the header at buf[0..bytes). 0: header, length and CRC are right, and *ret_bytes is the
 * size of the whole frame. -EAGAIN: call again with *ret_bytes bytes; -EBADMSG: no frame; -E2BIG:
 * over the limit.
 */
int hr_frame_check(const uint8_t *buf, size_t bytes, size_t *ret_bytes);

/*
 * As hr_frame_check, for a connection, where control frames are allowed. *ret_flags: the header's
 * flags. -E2BIG: more than `max_bytes` with the header, returned as soon as the header is complete.
 */
int hr_frame_check_any(const uint8_t *buf, size_t bytes, size_t max_bytes, size_t *ret_bytes,
		       uint32_t *ret_flags);

/*
 * Unpacks a frame that hr_frame_check accepted. Free it with headrace__frame__free_unpacked(msg,
 * NULL). -EBADMSG: not decodable, or larger than the limit after decompression; -ENOMEM.
 */
int hr_frame_unpack(const uint8_t *buf, size_t bytes, Headrace__Frame **ret_msg);

/* As hr_frame_unpack, with memory of `allocator` (NULL: malloc), for readers of many messages. */
int hr__frame_unpack(const uint8_t *buf, size_t bytes, ProtobufCAllocator *allocator,
		     Headrace__Frame **ret_msg);

/*
 * Copies a message, given as the `base` of its struct, by packing and unpacking it, because
 * protobuf-c has no function that copies. Free it with headrace__..__free_unpacked. NULL: no
 * memory.
 */
void *hr_message_copy(const ProtobufCMessage *msg);

/* CRC-32C (Castagnoli), by the CPU's instruction if possible. `crc`: result so far, 0 at first. */
uint32_t hr_crc32c(uint32_t crc, const void *data, size_t bytes);

/* As hr_crc32c, without the CPU's instruction: for other CPUs and for tests. */
uint32_t hr__crc32c_table(uint32_t crc, const void *data, size_t bytes);

#endif
