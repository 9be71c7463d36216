/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_planes.h - a column of codes as byte planes
 *
 * Plane p consists of byte p of every code; plane 0 has the lowest bytes. A splitter takes codes in
 * chunks. A plane gets memory at its first byte that is not zero. The packer stores each plane in
 * the shortest form. A splitter belongs to one encoder and one thread.
 */
#ifndef HEADRACE_COMMON_BATCH_PLANES_H
#define HEADRACE_COMMON_BATCH_PLANES_H

#include <zstd.h>

#include "common/batch_model.h"

struct hr__splitter {
	/* HR__MAX_PLANES planes of `stride` bytes: a byte `how`, and the data of the plane */
	uint8_t *planes;
	size_t stride;
	uint32_t rows;
	uint32_t written;     /* bit p: plane p has a nonzero byte, and so memory */
	uint64_t seen;	      /* all codes, combined by OR */
	uint64_t seen_signed; /* the same for signed codes; negative codes are inverted */
};

/* Starts a column of at most `max_rows`. `planes` has HR__MAX_PLANES * (max_rows + 1) bytes. */
void hr__splitter_start(struct hr__splitter *s, uint8_t *planes, size_t max_rows);
void hr__splitter_add(struct hr__splitter *s, const uint64_t *codes, uint32_t n);

/*
 * Stores a column in ret[0..width). Constant and raw planes stay in place. Compressed planes are
 * written to `arena` (width * rows bytes). Returns the number of bytes used in `arena`.
 */
size_t hr__splitter_pack(struct hr__splitter *s, ZSTD_CCtx *zstd, unsigned width, uint8_t *arena,
			 ProtobufCBinaryData *ret);

/* A decoded plane. If `data` is NULL, every byte is `constant`. */
struct hr__plane {
	const uint8_t *data;
	uint8_t constant;
};

/* Unpacks an untrusted plane. Only a compressed plane uses `room` (`rows` bytes). 0 or -EBADMSG. */
int hr__plane_unpack(ZSTD_DCtx *zstd, const ProtobufCBinaryData *stored, uint32_t rows,
		     uint8_t *room, struct hr__plane *ret);

/* Joins n <= HR__CHUNK_ROWS rows from `first` on into codes. False: all are 0, and not written. */
bool hr__planes_join(const struct hr__plane *planes, unsigned width, uint32_t first, uint32_t n,
		     uint64_t *ret);

#endif
