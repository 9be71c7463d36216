/* SPDX-License-Identifier: Apache-2.0 */
#include "import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAW_BYTES (256u << 10)
/* At the end of a member, igzip has up to 8 bytes too many, which may be from the last read. */
#define RAW_BACK 16u

struct hr_input {
	int fd;
	struct hr_input *whole; /* of a part: the input of its file */
	enum hr_input_format format;
	bool begun, ended, cut;
	uint64_t at, end; /* the next byte of the file, and the end of the part */
	uint64_t bytes;
	size_t raw_used, raw_at;
	size_t head_used, head_at;
	struct inflate_state inflate;
	uint8_t raw[RAW_BACK + RAW_BYTES];
	uint8_t head[HR_INPUT_HEAD_BYTES + HR_INPUT_SLACK];
};

/* Opens a regular file. Returns a descriptor or -errno. */
static int regular_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		r = -ESPIPE;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int input_new(int fd, struct hr_input *whole, struct hr_input **ret)
{
	struct hr_input *in = malloc(sizeof(*in));

	if (!in)
		return -ENOMEM;
	memset(in, 0, offsetof(struct hr_input, inflate));
	in->fd = fd;
	in->whole = whole;
	in->end = UINT64_MAX;
	*ret = in;
	return 0;
}

int hr_input_open(const char *path, struct hr_input **ret)
{
	int fd = regular_open(path), r;

	if (fd < 0)
		return fd;
	r = input_new(fd, NULL, ret);
	if (r)
		close(fd);
	else
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return r;
}

int hr_input_part_new(struct hr_input *of, struct hr_input **ret)
{
	return input_new(of->fd, of, ret);
}

void hr_input_part(struct hr_input *part, enum hr_input_format format, uint64_t offset,
		   uint64_t bytes)
{
	part->format = format;
	part->begun = true;
	part->ended = part->cut = false;
	part->at = offset;
	part->end = bytes > UINT64_MAX - offset ? UINT64_MAX : offset + bytes;
	part->raw_at = part->raw_used = 0;
	part->inflate.block_state = ISAL_BLOCK_FINISH; /* the first stream follows */
}

void hr_input_close(struct hr_input *in)
{
	if (!in)
		return;
	if (!in->whole)
		close(in->fd);
	free(in);
}

/* Reads more bytes of the file, if none are left. Returns how many are there, or -errno. */
static long raw_fill(struct hr_input *in)
{
	uint64_t left = in->end - in->at;
	size_t want = left < RAW_BYTES ? (size_t)left : RAW_BYTES;
	long n;

	if (in->raw_at < in->raw_used)
		return (long)(in->raw_used - in->raw_at);
	if (in->raw_used > RAW_BACK)
		memmove(in->raw, in->raw + in->raw_used - RAW_BACK, RAW_BACK);
	n = hr_input_at(in->whole ? in->whole : in, in->at, in->raw + RAW_BACK, want);
	if (n < 0)
		return n;
	in->cut |= in->whole && (size_t)n < want; /* the file ends within the part */
	in->at += (uint64_t)n;
	in->raw_at = RAW_BACK;
	in->raw_used = RAW_BACK + (size_t)n;
	return n;
}

static long content_begin(struct hr_input *in)
{
	long n = raw_fill(in);

	in->begun = true;
	if (n < 2 || in->raw[in->raw_at] != 0x1f || in->raw[in->raw_at + 1] != 0x8b)
		return n;
	in->format = HR_INPUT_GZIP;
	in->inflate.block_state = ISAL_BLOCK_FINISH; /* the first member follows */
	return n;
}

/* Begins the next member or stream after the last one has ended. False: none follows. */
static bool member_next(struct hr_input *in, long left)
{
	bool gzip = in->format == HR_INPUT_GZIP;

	if (left == 0 || (gzip && in->raw[in->raw_at] != 0x1f)) {
		in->ended = true; /* padding may follow the last member */
		in->cut |= left > 0 && in->raw[in->raw_at] != 0;
		return false;
	}
	isal_inflate_init(&in->inflate);
	in->inflate.crc_flag = gzip ? ISAL_GZIP : ISAL_ZLIB;
	return true;
}

static long inflate_read(struct hr_input *in, uint8_t *to, size_t bytes)
{
	struct inflate_state *s = &in->inflate;

	s->next_out = to;
	s->avail_out = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
	while (s->avail_out > 0 && !in->ended) {
		long left = raw_fill(in);
		int r;

		if (left < 0)
			return left;
		if (s->block_state == ISAL_BLOCK_FINISH) {
			uint32_t avail = s->avail_out;
			uint8_t *next = s->next_out;

			if (!member_next(in, left))
				break;
			s->next_out = next;
			s->avail_out = avail;
		}
		s->next_in = in->raw + in->raw_at;
		s->avail_in = (uint32_t)left;
		r = isal_inflate(s);
		in->raw_at = (size_t)(s->next_in - in->raw);
		/* Of gzip, igzip gives back what it has read of the next member. */
		if (in->format == HR_INPUT_ZLIB && s->block_state == ISAL_BLOCK_FINISH)
			in->raw_at -= (size_t)s->read_in_length / 8;
		if (r < 0 || (left == 0 && s->block_state != ISAL_BLOCK_FINISH && s->avail_out)) {
			in->cut = in->ended = true;
			break;
		}
	}
	return (long)(s->next_out - to);
}

static long content_read(struct hr_input *in, uint8_t *to, size_t bytes)
{
	long n;

	if (!in->begun && (n = content_begin(in)) < 0)
		return n;
	if (in->format != HR_INPUT_PLAIN)
		return inflate_read(in, to, bytes);
	n = raw_fill(in);
	if (n <= 0)
		return n;
	n = (size_t)n < bytes ? n : (long)bytes;
	memcpy(to, in->raw + in->raw_at, (size_t)n);
	in->raw_at += (size_t)n;
	return n;
}

/* Returns the size of the byte order mark of UTF-8 at the begin of a text file, or 0. */
static size_t mark_bytes(const struct hr_input *in)
{
	static const uint8_t mark[] = {0xef, 0xbb, 0xbf};

	return in->head_used >= sizeof(mark) && memcmp(in->head, mark, sizeof(mark)) == 0
		   ? sizeof(mark)
		   : 0;
}

long hr_input_head(struct hr_input *in, const uint8_t **ret)
{
	size_t skipped;

	while (in->head_used < HR_INPUT_HEAD_BYTES) {
		long n =
		    content_read(in, in->head + in->head_used, HR_INPUT_HEAD_BYTES - in->head_used);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		in->head_used += (size_t)n;
	}
	memset(in->head + in->head_used, 0, HR_INPUT_SLACK);
	skipped = mark_bytes(in);
	if (in->head_at < skipped)
		in->head_at = skipped;
	*ret = in->head + skipped;
	return (long)(in->head_used - skipped);
}

long hr_input_read(struct hr_input *in, uint8_t *to, size_t bytes)
{
	size_t n = in->head_used - in->head_at;

	if (n == 0)
		return content_read(in, to, bytes);
	n = n < bytes ? n : bytes;
	memcpy(to, in->head + in->head_at, n);
	in->head_at += n;
	return (long)n;
}

long hr_input_fill(struct hr_input *in, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		long n = hr_input_read(in, (uint8_t *)to + done, bytes - done);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (long)done;
}

long hr_input_at(struct hr_input *in, uint64_t offset, void *to, size_t bytes)
{
	size_t done = 0;

	if (offset > INT64_MAX - bytes)
		return 0;
	while (done < bytes) {
		ssize_t n =
		    pread(in->fd, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	if (done > 0 && in->bytes < offset + done)
		in->bytes = offset + done;
	return (long)done;
}

void hr_input_count(struct hr_input *in, uint64_t bytes)
{
	in->bytes += bytes;
}

uint64_t hr_input_bytes(const struct hr_input *in)
{
	return in->bytes;
}

bool hr_input_cut(const struct hr_input *in)
{
	return in->cut;
}

int hr_window_init(struct hr_window *w, struct hr_input *in, size_t bytes)
{
	*w = (struct hr_window){.in = in, .p = malloc(bytes + HR_INPUT_SLACK), .room = bytes};
	return w->p ? 0 : -ENOMEM;
}

int hr_window_more(struct hr_window *w)
{
	long n;

	if (w->ended)
		return 0;
	memmove(w->p, w->p + w->at, w->used - w->at);
	w->used -= w->at;
	w->at = 0;
	if (w->used == w->room) {
		char *more =
		    w->room < HR_WINDOW_MOST ? realloc(w->p, 2 * w->room + HR_INPUT_SLACK) : NULL;

		if (!more)
			return w->room < HR_WINDOW_MOST ? -ENOMEM : -E2BIG;
		w->p = more;
		w->room *= 2;
	}
	n = hr_input_read(w->in, (uint8_t *)w->p + w->used, w->room - w->used);
	if (n < 0)
		return (int)n;
	w->ended = n == 0;
	w->used += (size_t)n;
	memset(w->p + w->used, 0, HR_INPUT_SLACK);
	return n > 0;
}
