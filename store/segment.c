/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segment.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"
#include "store/segments.h"

#define WINDOW_BYTES (1u << 20)

void hr_segment_name(uint32_t number, char ret[16])
{
	snprintf(ret, 16, "%06u.seg", number);
}

int hr_segment_open(int dir_fd, uint32_t number, int flags, struct hr_source *ret)
{
	struct stat st;
	char name[16];
	int fd;

	hr_segment_name(number, name);
	fd = hr__store_open_stat(dir_fd, name, flags, &st);
	if (fd >= 0)
		*ret = (struct hr_source){.fd = fd, .bytes = (uint64_t)st.st_size};
	return fd < 0 ? fd : 0;
}

int hr__source_read(const struct hr_source *s, uint64_t offset, void *buf, size_t bytes)
{
	uint8_t *to = buf;

	if (offset > s->bytes || bytes > s->bytes - offset)
		return -ESTALE;
	if (s->memory) {
		memcpy(to, s->memory + offset, bytes);
		return 0;
	}
	while (bytes > 0) {
		ssize_t n = pread(s->fd, to, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		to += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

int hr__source_frame(const struct hr_source *s, uint64_t offset, uint32_t bytes,
		     ProtobufCAllocator *allocator, Headrace__Frame **ret)
{
	size_t whole;
	uint8_t *buf;
	int r;

	if (bytes > HR_FRAME_HDR_BYTES + HR_FRAME_MAX_BYTES)
		return -EBADMSG;
	if (offset > s->bytes || bytes > s->bytes - offset)
		return -ESTALE;
	buf = malloc(bytes ? bytes : 1);
	if (!buf)
		return -ENOMEM;
	r = hr__source_read(s, offset, buf, bytes);
	if (r == 0 && (hr_frame_check(buf, bytes, &whole) < 0 || whole != bytes))
		r = -EBADMSG;
	if (r == 0)
		r = hr_frame_unpack_into(buf, bytes, allocator, ret);
	free(buf);
	return r;
}

int hr_segment_header(const struct hr_source *s, struct hr_segment_hdr *ret)
{
	static const uint8_t magic[] = HR__SEGMENT_MAGIC;
	struct hr_segment_hdr h;
	int r;

	if (s->bytes < sizeof(h))
		return -EBADMSG;
	r = hr__source_read(s, 0, &h, sizeof(h));
	if (r < 0)
		return r;
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.version == 0 || h.first_seq == 0)
		return -EBADMSG;
	if (h.version > HR_STORE_VERSION || h.incompatible != 0)
		return -EPROTONOSUPPORT;
	*ret = h;
	return 0;
}

int hr_segment_footer(const struct hr_source *s, const struct hr_segment_hdr *h,
		      struct hr_index *ix, struct hr_frame_entry *ret_paths)
{
	static const uint8_t magic[] = HR__TRAILER_MAGIC;
	struct hr_segment_trailer t;
	Headrace__Frame *msg = NULL;
	uint64_t end;
	int r;

	if (s->bytes < sizeof(*h) + sizeof(t))
		return -ENODATA;
	end = s->bytes - sizeof(t);
	r = hr__source_read(s, end, &t, sizeof(t));
	if (r < 0)
		return r;
	if (memcmp(t.magic, magic, sizeof(magic)) != 0)
		return -ENODATA;
	if (t.crc32c != hr_crc32c(0, &t, 2 * sizeof(uint64_t)) || t.index_offset > end ||
	    t.index_bytes != end - t.index_offset || t.index_bytes > UINT32_MAX)
		return -EBADMSG;
	r = hr__source_frame(s, t.index_offset, (uint32_t)t.index_bytes, NULL, &msg);
	if (r < 0)
		return r;
	r = hr__index_unpack(ix, msg, h->first_seq, t.index_offset, ret_paths);
	headrace__frame__free_unpacked(msg, NULL);
	if (r < 0)
		hr_index_done(ix);
	return r;
}

/* ---- scanning -------------------------------------------------------------------------------- */

struct window {
	const struct hr_source *source;
	uint8_t *buf; /* NULL: the source is in memory */
	size_t room;
	uint64_t offset;
	size_t bytes;
	uint64_t checked; /* number of bytes whose checksum was computed */
};

/* Returns at least `need` bytes at `offset`. Only at the source's end, *ret_bytes is smaller. */
static int window_at(struct window *w, uint64_t offset, size_t need, const uint8_t **ret,
		     size_t *ret_bytes)
{
	uint64_t left = w->source->bytes - offset;
	size_t want;
	int r;

	if (w->source->memory) {
		*ret = w->source->memory + offset;
		*ret_bytes = (size_t)left;
		return 0;
	}
	if (offset < w->offset || offset + need > w->offset + w->bytes) {
		want = need < WINDOW_BYTES ? WINDOW_BYTES : need;
		want = want < left ? want : (size_t)left;
		w->bytes = 0;
		if (want > w->room) {
			free(w->buf);
			w->room = 0;
			w->buf = malloc(want);
			if (!w->buf)
				return -ENOMEM;
			w->room = want;
		}
		r = hr__source_read(w->source, offset, w->buf, want);
		if (r < 0)
			return r;
		w->offset = offset;
		w->bytes = want;
	}
	assert(offset >= w->offset && offset - w->offset <= w->bytes);
	*ret = w->buf + (offset - w->offset);
	*ret_bytes = w->bytes - (size_t)(offset - w->offset);
	return 0;
}

/* Reads the frame at `offset`. 1: it is whole. 0: no whole frame is there. Negative: read error. */
static int frame_at(struct window *w, uint64_t offset, const uint8_t **ret, size_t *ret_bytes)
{
	size_t need = HR_FRAME_HDR_BYTES, have;
	int r = window_at(w, offset, need, ret, &have);

	if (r < 0)
		return r;
	r = hr_frame_check(*ret, have, &need);
	if (r == -EAGAIN && need <= w->source->bytes - offset) {
		r = window_at(w, offset, need, ret, &have);
		if (r < 0)
			return r;
		r = hr_frame_check(*ret, have, &need);
	}
	w->checked += need;
	*ret_bytes = need;
	return r == 0;
}

/* Returns the number of bytes that are stored. A sparse file may be much longer. */
static uint64_t stored_bytes(const struct hr_source *s)
{
	struct stat st;

	if (s->memory || fstat(s->fd, &st) < 0)
		return s->bytes;
	return (uint64_t)st.st_blocks * 512 < s->bytes ? (uint64_t)st.st_blocks * 512 : s->bytes;
}

/* Moves *offset over a hole. Returns false if there is no data from there on. */
static bool skip_hole(const struct hr_source *s, uint64_t *offset)
{
	off_t data = s->memory ? (off_t)*offset : lseek(s->fd, (off_t)*offset, SEEK_DATA);

	if (data > (off_t)*offset)
		*offset = (uint64_t)data;
	return data >= 0 || errno != ENXIO;
}

/*
 * Finds the next whole frame after damage. Each magic that does not begin a frame may cost a
 * checksum over 64 MiB. So the search ends when it has read a few times the bytes that are stored.
 * The bytes from there on count as the tail.
 */
static int next_frame(struct window *w, uint64_t *offset, const uint8_t **ret, size_t *ret_bytes)
{
	const uint32_t magic = HR_FRAME_MAGIC;
	uint64_t budget = 8 * stored_bytes(w->source) + WINDOW_BYTES;

	while (skip_hole(w->source, offset) && w->source->bytes - *offset >= HR_FRAME_HDR_BYTES &&
	       w->checked < budget) {
		const uint8_t *at, *found;
		size_t have;
		int r = window_at(w, *offset, HR_FRAME_HDR_BYTES, &at, &have);

		if (r < 0)
			return r;
		found = memmem(at, have, &magic, sizeof(magic));
		if (!found) {
			*offset += have - sizeof(magic) + 1;
			continue;
		}
		*offset += (uint64_t)(found - at);
		r = frame_at(w, *offset, ret, ret_bytes);
		if (r != 0)
			return r;
		*offset += 1;
	}
	return 0;
}

static int note_hole(struct hr_segment_places *scan, uint64_t offset, uint64_t bytes)
{
	if (!hr_array_reserve(scan->holes, scan->n_holes, scan->holes_room))
		return -ENOMEM;
	scan->holes[scan->n_holes++] = (struct hr__scan_hole){offset, bytes};
	return 0;
}

/* Passes on a frame. If it has a good CRC but cannot be unpacked, it counts as damaged, too. */
static int visit(const uint8_t *buf, size_t bytes, uint64_t offset, hr__scan_frame *frame,
		 void *context, struct hr_segment_places *scan)
{
	Headrace__Frame *msg;
	int r = hr_frame_unpack(buf, bytes, &msg);

	if (r == -EBADMSG)
		return note_hole(scan, offset, bytes);
	if (r < 0)
		return r;
	r = frame(context, offset, (uint32_t)bytes, msg);
	headrace__frame__free_unpacked(msg, NULL);
	return r;
}

int hr_index_visit(void *index, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	if (msg->body_case == HEADRACE__FRAME__BODY_INDEX) /* an incomplete footer */
		return 0;
	return hr__index_add(index, offset, bytes, msg);
}

int hr_segment_scan(const struct hr_source *s, hr__scan_frame *frame, void *context,
		    struct hr_segment_places *ret)
{
	struct window w = {.source = s};
	struct hr_segment_places scan = {.end = sizeof(struct hr_segment_hdr)};
	uint64_t offset = scan.end;
	int r = 0;

	while (s->bytes > offset && s->bytes - offset >= HR_FRAME_HDR_BYTES) {
		const uint8_t *buf;
		size_t bytes;

		r = frame_at(&w, offset, &buf, &bytes);
		if (r == 0) {
			r = next_frame(&w, &offset, &buf, &bytes);
			if (r == 1 && note_hole(&scan, scan.end, offset - scan.end) < 0)
				r = -ENOMEM;
		}
		if (r <= 0)
			break;
		r = visit(buf, bytes, offset, frame, context, &scan);
		if (r < 0)
			break;
		offset += bytes;
		scan.end = offset;
	}
	free(w.buf);
	if (r < 0) {
		free(scan.holes);
		return r;
	}
	assert(scan.end <= s->bytes || scan.end == sizeof(struct hr_segment_hdr));
	*ret = scan;
	return 0;
}
