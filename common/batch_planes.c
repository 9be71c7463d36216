/* SPDX-License-Identifier: Apache-2.0 */
#include "common/batch_planes.h"

#include <assert.h>
#include <errno.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

	assert(s->rows + n < s->stride);
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
	       packed; /* to save less than 5 % is not worth the time of decoding */

	if (!(s->written >> p & 1))
		data[0] = 0;
	if (!(s->written >> p & 1) || memcmp(data, data + 1, rows - 1) == 0) {
		*how = HR__PLANE_CONSTANT;
		return (ProtobufCBinaryData){2, how};
	}
	packed = ZSTD_compress2(zstd, arena + 1, worth, data, rows);
	if (ZSTD_isError(packed)) { /* the result did not fit */
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

/* Joins the adjacent bytes of 8 planes into codes of rows [0, n). Returns the number of codes. */
#if defined(__SSE2__)
#define JOIN_ROWS 16u

static inline __m128i batch_planes_load(const uint8_t *plane, uint32_t i)
{
	return _mm_loadu_si128((const __m128i *)(plane + i));
}

static inline void batch_planes_store(uint64_t *to, __m128i codes, __m128i constant)
{
	_mm_storeu_si128((__m128i *)to, _mm_or_si128(codes, constant));
}

/* Joins the 32-bit halves of 8 rows into codes. */
static inline void join_halves(__m128i low0, __m128i low1, __m128i high0, __m128i high1,
			       __m128i constant, uint64_t *ret)
{
	batch_planes_store(ret, _mm_unpacklo_epi32(low0, high0), constant);
	batch_planes_store(ret + 2, _mm_unpackhi_epi32(low0, high0), constant);
	batch_planes_store(ret + 4, _mm_unpacklo_epi32(low1, high1), constant);
	batch_planes_store(ret + 6, _mm_unpackhi_epi32(low1, high1), constant);
}

/* Joins the bytes of 4 planes, for rows [i, i + 16), into 16 words of 32 bits. */
static inline void join_words(const uint8_t *const planes[4], uint32_t i, __m128i ret[4])
{
	__m128i p0 = batch_planes_load(planes[0], i), p1 = batch_planes_load(planes[1], i);
	__m128i p2 = batch_planes_load(planes[2], i), p3 = batch_planes_load(planes[3], i);
	__m128i low01 = _mm_unpacklo_epi8(p0, p1), high01 = _mm_unpackhi_epi8(p0, p1);
	__m128i low23 = _mm_unpacklo_epi8(p2, p3), high23 = _mm_unpackhi_epi8(p2, p3);

	ret[0] = _mm_unpacklo_epi16(low01, low23);
	ret[1] = _mm_unpackhi_epi16(low01, low23);
	ret[2] = _mm_unpacklo_epi16(high01, high23);
	ret[3] = _mm_unpackhi_epi16(high01, high23);
}

/* Joins 8 planes if `wide`, otherwise the 4 lower ones, because most codes fit in 32 bits. */
static uint32_t join_blocks(const uint8_t *const planes[HR__MAX_PLANES], bool wide,
			    uint64_t constant, uint32_t n, uint64_t *ret)
{
	__m128i all = _mm_set1_epi64x((long long)constant);
	__m128i low[4], high[4] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
				   _mm_setzero_si128()};
	uint32_t i = 0;

	for (; i + JOIN_ROWS <= n; i += JOIN_ROWS) {
		join_words(planes, i, low);
		if (wide)
			join_words(planes + 4, i, high);
		join_halves(low[0], low[1], high[0], high[1], all, ret + i);
		join_halves(low[2], low[3], high[2], high[3], all, ret + i + 8);
	}
	return i;
}
#else
static uint32_t join_blocks(const uint8_t *const planes[HR__MAX_PLANES], bool wide,
			    uint64_t constant, uint32_t n, uint64_t *ret)
{
	(void)planes;
	(void)wide;
	(void)constant;
	(void)n;
	(void)ret;
	return 0; /* the caller joins all rows */
}
#endif

static bool all_zero(const uint8_t *plane, uint32_t n)
{
	uint64_t seen = 0, word;
	uint32_t i = 0;

	for (; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, plane + i, sizeof(word));
		seen |= word;
	}
	for (; i < n; i++)
		seen |= plane[i];
	return seen == 0;
}

bool hr__planes_join(const struct hr__plane *planes, unsigned width, uint32_t first, uint32_t n,
		     uint64_t *ret)
{
	static const uint8_t zeros[HR__CHUNK_ROWS];
	const uint8_t *from[HR__MAX_PLANES];
	uint64_t constant = 0;
	unsigned used = 0; /* number of planes up to the last one that is not all zero */
	uint32_t done;

	assert(width <= HR__MAX_PLANES && n <= HR__CHUNK_ROWS);
	for (unsigned p = 0; p < HR__MAX_PLANES; p++) {
		from[p] = zeros;
		if (p >= width)
			continue;
		if (!planes[p].data) {
			constant |= (uint64_t)planes[p].constant << (p * 8);
		} else if (!all_zero(planes[p].data + first, n)) {
			from[p] = planes[p].data + first;
			used = p + 1;
		}
	}
	if (used == 0 && constant == 0)
		return false;
	done = join_blocks(from, used > HR__MAX_PLANES / 2, constant, n, ret);
	for (uint32_t i = done; i < n; i++) {
		ret[i] = constant;
		for (unsigned p = 0; p < used; p++)
			ret[i] |= (uint64_t)from[p][i] << (p * 8);
	}
	return true;
}
