/* SPDX-License-Identifier: Apache-2.0 */
#include "import/darshan/darshan_region.h"

#include <string.h>

void hr__dlog_source_begin(struct hr_darshan_source *s, struct hr_input *in,
			   enum hr_darshan_compression compression, uint64_t offset, uint64_t bytes)
{
	s->in = in;
	s->at = offset;
	s->end = bytes > UINT64_MAX - offset ? UINT64_MAX : offset + bytes;
	s->compression = compression;
	s->begun = s->cut = false;
	s->raw_at = s->raw_used = 0;
}

/* Reads more bytes of the file, if none are left. Returns how many are there, or -errno. */
static long raw_fill(struct hr_darshan_source *s)
{
	uint64_t want = s->end - s->at;
	long n;

	if (s->raw_at < s->raw_used)
		return (long)(s->raw_used - s->raw_at);
	if (s->raw_used > HR__DLOG_BACK)
		memmove(s->raw, s->raw + s->raw_used - HR__DLOG_BACK, HR__DLOG_BACK);
	want = want < HR__DLOG_BYTES ? want : HR__DLOG_BYTES;
	n = want ? hr_input_at(s->in, s->at, s->raw + HR__DLOG_BACK, want) : 0;
	if (n < 0)
		return n;
	s->cut = s->cut || (uint64_t)n < want;
	s->at += (uint64_t)n;
	s->raw_at = HR__DLOG_BACK;
	s->raw_used = HR__DLOG_BACK + (size_t)n;
	return n;
}

static void stream_begin(struct hr_darshan_source *s)
{
	isal_inflate_init(&s->z);
	s->z.crc_flag = ISAL_ZLIB;
	s->begun = true;
}

static long zlib_read(struct hr_darshan_source *s, uint8_t *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes && !s->cut) {
		size_t want = bytes - done < (1u << 30) ? bytes - done : 1u << 30;
		long left = raw_fill(s);
		int r;

		if (left < 0)
			return left;
		if (!s->begun || s->z.block_state == ISAL_BLOCK_FINISH) {
			if (left == 0)
				break;
			stream_begin(s);
		}
		s->z.next_in = s->raw + s->raw_at;
		s->z.avail_in = (uint32_t)left;
		s->z.next_out = to + done;
		s->z.avail_out = (uint32_t)want;
		r = isal_inflate(&s->z);
		s->raw_at = (size_t)(s->z.next_in - s->raw);
		if (s->z.block_state == ISAL_BLOCK_FINISH) /* bytes of the next stream */
			s->raw_at -= (size_t)s->z.read_in_length / 8;
		done += want - s->z.avail_out;
		if (r < 0 ||
		    (left == 0 && s->z.block_state != ISAL_BLOCK_FINISH && s->z.avail_out > 0))
			s->cut = true;
	}
	return (long)done;
}

static long plain_read(struct hr_darshan_source *s, uint8_t *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		long left = raw_fill(s);
		size_t n;

		if (left <= 0)
			return left < 0 ? left : (long)done;
		n = bytes - done < (size_t)left ? bytes - done : (size_t)left;
		memcpy(to + done, s->raw + s->raw_at, n);
		s->raw_at += n;
		done += n;
	}
	return (long)done;
}

long hr__dlog_source_read(struct hr_darshan_source *s, void *to, size_t bytes)
{
	return s->compression == HR_DARSHAN_PLAIN ? plain_read(s, to, bytes)
						  : zlib_read(s, to, bytes);
}
