/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text_out.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#include "common/text.h"

#define GZIP_LEVEL  1
#define SLACK_BYTES 4096u /* more than deflate adds to data that it cannot compress */

struct hr_gzip {
	struct isal_zstream stream;
	uint8_t level[ISAL_DEF_LVL1_DEFAULT];
	uint8_t *out;
	size_t size;
};

int hr_text_out_init(struct hr_text_out *o, FILE *to, bool plain)
{
	*o = (struct hr_text_out){.to = to, .size = HR_MEMBER_BYTES + SLACK_BYTES};
	o->data = o->at = malloc(o->size);
	o->gzip = plain ? NULL : calloc(1, sizeof(*o->gzip));
	if (o->data != NULL && (plain || o->gzip != NULL))
		return 0;
	free(o->data);
	free(o->gzip);
	return -ENOMEM;
}

static int write_bytes(struct hr_text_out *o, const void *data, size_t n)
{
	if (fwrite(data, 1, n, o->to) == n)
		return 0;
	return errno != 0 ? -errno : -EIO;
}

/* Writes the open member. */
static int write_member(struct hr_text_out *o)
{
	size_t n = (size_t)(o->at - o->data), room = n + n / 8 + SLACK_BYTES;
	struct hr_gzip *z = o->gzip;

	o->at = o->data;
	if (z == NULL)
		return write_bytes(o, o->data, n);
	if (z->size < room) {
		free(z->out);
		z->size = room;
		z->out = malloc(room);
	}
	if (z->out == NULL) {
		z->size = 0;
		return -ENOMEM;
	}
	isal_deflate_stateless_init(&z->stream);
	z->stream.level = GZIP_LEVEL;
	z->stream.level_buf = z->level;
	z->stream.level_buf_size = sizeof(z->level);
	z->stream.gzip_flag = IGZIP_GZIP;
	z->stream.end_of_stream = 1;
	z->stream.next_in = (uint8_t *)o->data;
	z->stream.avail_in = (uint32_t)n;
	z->stream.next_out = z->out;
	z->stream.avail_out = (uint32_t)z->size;
	if (isal_deflate_stateless(&z->stream) != COMP_OK || z->stream.avail_in > 0)
		return -EIO;
	return write_bytes(o, z->out, z->stream.total_out);
}

int hr_text_out_done(struct hr_text_out *o)
{
	int r = o->at != o->data ? write_member(o) : 0;

	free(o->data);
	if (o->gzip != NULL)
		free(o->gzip->out);
	free(o->gzip);
	return r;
}

int hr_text_out_room(struct hr_text_out *o, size_t bytes)
{
	size_t n = (size_t)(o->at - o->data);
	char *grown;
	int r;

	if (n >= HR_MEMBER_BYTES) {
		r = write_member(o);
		if (r < 0)
			return r;
		n = 0;
	}
	if (o->size - n >= bytes)
		return 0;
	grown = realloc(o->data, n + bytes);
	if (grown == NULL)
		return -ENOMEM;
	o->data = grown;
	o->at = grown + n;
	o->size = n + bytes;
	return 0;
}

void hr_text_out_uint(struct hr_text_out *o, uint64_t v)
{
	static const uint64_t powers[] = {
	    /* clang-format off */
	    UINT64_C(1), UINT64_C(10), UINT64_C(100), UINT64_C(1000), UINT64_C(10000),
	    UINT64_C(100000), UINT64_C(1000000), UINT64_C(10000000), UINT64_C(100000000),
	    UINT64_C(1000000000), UINT64_C(10000000000), UINT64_C(100000000000),
	    UINT64_C(1000000000000), UINT64_C(10000000000000), UINT64_C(100000000000000),
	    UINT64_C(1000000000000000), UINT64_C(10000000000000000), UINT64_C(100000000000000000),
	    UINT64_C(1000000000000000000), UINT64_C(10000000000000000000),
	    /* clang-format on */
	};
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
				    "31323334353637383940414243444546474849505152535455565758596061"
				    "62636465666768697071727374757677787980818283848586878889909192"
				    "93949596979899";
	/* log10(2) is about 1233 / 4096; the estimate is one too high for some numbers. */
	unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1), n = bits * 1233 >> 12;
	char *at;

	n += v >= powers[n] || n == 0;
	o->at += n;
	for (at = o->at; v >= 100; v /= 100) {
		at -= 2;
		memcpy(at, pairs + 2 * (v % 100), 2);
	}
	if (v >= 10)
		memcpy(at - 2, pairs + 2 * v, 2);
	else
		at[-1] = (char)('0' + v);
}

void hr_text_out_int(struct hr_text_out *o, int64_t v)
{
	if (v < 0)
		*o->at++ = '-';
	hr_text_out_uint(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void hr_text_out_hex(struct hr_text_out *o, uint64_t v)
{
	uint64_t half[2] = {v >> 32, v & UINT32_MAX};

	for (unsigned i = 0; i < 2; i++, o->at += 8) {
		/* Spreads the digits over the bytes of a word, the first one lowest. */
		uint64_t x = half[i];

		x = (x << 16 | x) & UINT64_C(0x0000ffff0000ffff);
		x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
		x = (x << 4 | x) & UINT64_C(0x0f0f0f0f0f0f0f0f);
		/* A byte above 9 becomes a letter: 'a' - 10 is 39 above '0'. */
		x += UINT64_C(0x3030303030303030) +
		     ((x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101)) * 39;
		x = __builtin_bswap64(x);
		memcpy(o->at, &x, 8);
	}
}

void hr_text_out_string(struct hr_text_out *o, const void *text, size_t n)
{
	char *escaped = hr_text_escaped(text, n);

	*o->at++ = '"';
	for (const char *c = escaped; c != NULL && *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			*o->at++ = '\\';
		*o->at++ = *c;
	}
	*o->at++ = '"';
	free(escaped);
}
