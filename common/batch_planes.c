/* SPDX-License-Identifier: Apache-2.0 */
#include "common/batch_planes.h"

#include <errno.h>

void hr__splitter_start(struct hr__splitter *s, uint8_t *planes, size_t max_rows)
{
	*s = (struct hr__splitter){.planes = planes, .stride = max_rows + 1};
}

static uint8_t *plane_data(const struct hr__splitter *s, unsigned p)
{
	return s->planes + p * s->stride + 1;
}

void hr__splitter_add(struct hr__splitter *s, const uint64_t *codes, uint32_t n)
{
	uint64_t seen = 0, seen_signed = 0;

	for (uint32_t i = 0; i < n; i++) {
		seen |= codes[i];
		seen_signed |= codes[i] ^ -(codes[i] >> 63);
	}
	s->seen |= seen;
	s->seen_signed |= seen_signed;
	for (unsigned p = 0; p < HR__MAX_PLANES; p++) {
		uint8_t *to = plane_data(s, p) + s->rows;
		unsigned shift = p * 8;

		if (!(s->seen >> shift & 255))
			continue;
		if (!(s->written >> p & 1))
			memset(plane_data(s, p), 0, s->rows);
		s->written |= 1u << p;
		for (uint32_t i = 0; i < n; i++)
			to[i] = (uint8_t)(codes[i] >> shift);
	}
	s->rows += n;
}

static ProtobufCBinaryData pack_plane(struct hr__splitter *s, ZSTD_CCtx *zstd, unsigned p,
				      uint8_t *arena)
{
	uint8_t *data = plane_data(s, p), *how = data - 1;
	size_t rows = s->rows, worth = rows - rows / 20,
	       packed; /* saving < 5 % is not worth decoding */

	if (!(s->written >> p & 1))
		data[0] = 0;
	if (!(s->written >> p & 1) || memcmp(data, data + 1, rows - 1) == 0) {
		*how = HR__PLANE_CONSTANT;
		return (ProtobufCBinaryData){2, how};
	}
	packed = ZSTD_compress2(zstd, arena + 1, worth, data, rows);
	if (ZSTD_isError(packed)) { /* did not fit */
		*how = HR__PLANE_RAW;
		return (ProtobufCBinaryData){1 + rows, how};
	}
	arena[0] = HR__PLANE_ZSTD;
	return (ProtobufCBinaryData){1 + packed, arena};
}

size_t hr__splitter_pack(struct hr__splitter *s, ZSTD_CCtx *zstd, unsigned width, uint8_t *arena,
			 ProtobufCBinaryData *ret)
{
	size_t used = 0;

	for (unsigned p = 0; p < width; p++) {
		ret[p] = pack_plane(s, zstd, p, arena + used);
		if (ret[p].data == arena + used)
			used += ret[p].len;
	}
	return used;
}

int hr__plane_unpack(ZSTD_DCtx *zstd, const ProtobufCBinaryData *stored, uint32_t rows,
		     uint8_t *room, struct hr__plane *ret)
{
	if (stored->len < 2)
		return -EBADMSG;
	switch (stored->data[0]) {
	case HR__PLANE_CONSTANT:
		if (stored->len != 2)
			return -EBADMSG;
		*ret = (struct hr__plane){.constant = stored->data[1]};
		return 0;
	case HR__PLANE_RAW:
		if (stored->len - 1 != rows)
			return -EBADMSG;
		*ret = (struct hr__plane){.data = stored->data + 1};
		return 0;
	case HR__PLANE_ZSTD:
		if (ZSTD_decompressDCtx(zstd, room, rows, stored->data + 1, stored->len - 1) !=
		    rows)
			return -EBADMSG;
		*ret = (struct hr__plane){.data = room};
		return 0;
	default:
		return -EBADMSG;
	}
}

void hr__planes_join(const struct hr__plane *planes, unsigned width, uint32_t first, uint32_t n,
		     uint64_t *ret)
{
	uint64_t constant = 0;

	for (unsigned p = 0; p < width; p++)
		if (!planes[p].data)
			constant |= (uint64_t)planes[p].constant << (p * 8);
	for (uint32_t i = 0; i < n; i++)
		ret[i] = constant;
	for (unsigned p = 0; p < width; p++) {
		const uint8_t *from;

		if (!planes[p].data)
			continue;
		from = planes[p].data + first;
		for (uint32_t i = 0; i < n; i++)
			ret[i] |= (uint64_t)from[i] << (p * 8);
	}
}
