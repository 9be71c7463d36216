/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool/spool_stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"
#include "store/segments.h"
#include "daemon/spool/spool_internal.h"

struct stream_part { /* a segment of the stream */
	uint32_t number;
	uint64_t first_seq; /* number of the first frame after the StreamStart */
};

struct hr__spool_reader {
	struct hr_spool *spool;
	int dir_fd, sender_fd;
	Headrace__Frame *start;
	struct stream_part *parts;
	size_t n_parts, parts_room;
	/* Where the next frame is read. */
	int fd; /* descriptor of segment `at`; -1: none */
	size_t at;
	uint64_t offset, next_seq;
	uint64_t noted; /* first_seq of the first segment with a frame after `acked` */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Returns the text of the collectors of a stream. NULL: no memory. */
static char *read_aim(int dir_fd)
{
	char text[4096];
	int n = hr_store_read_file(dir_fd, HR__SPOOL_AIM, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return strdup(text);
}

static int spool_stream_identify(struct hr_spool_stream *st)
{
	struct hr__spool_reader *o = st->own;
	struct hr_segment_file *files;
	size_t n;
	int r = hr_segments_list(o->dir_fd, &files, &n);

	if (r)
		return r;
	r = n ? -EBADMSG : -ENOENT;
	for (size_t i = 0; i < n && r; i++)
		r = hr_segment_start(o->dir_fd, files[i].number, &o->start);
	free(files);
	if (r)
		return r;
	st->id = o->start->stream_start;
	st->acked = hr__spool_acked(o->dir_fd);
	st->has_secret = hr_store_read_file(o->dir_fd, HR__SPOOL_SECRET, st->secret,
					    sizeof(st->secret)) == (int)sizeof(st->secret);
	st->aim = read_aim(o->dir_fd);
	return st->aim ? 0 : -ENOMEM;
}

int hr_spool_stream_open(struct hr_spool *s, const char *folder, struct hr_spool_stream **ret)
{
	struct hr_spool_stream *st = calloc(1, sizeof(*st));
	struct hr__spool_reader *o = calloc(1, sizeof(*o));
	int r = st && o ? 0 : -ENOMEM;

	if (r) {
		free(st);
		free(o);
		return r;
	}
	st->own = o;
	o->spool = s;
	o->dir_fd = o->sender_fd = o->fd = -1;
	st->folder = strdup(folder);
	o->dir_fd = openat(s->dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!st->folder || o->dir_fd < 0)
		r = st->folder ? -errno : -ENOMEM;
	if (!r)
		r = hr_lock_file(o->dir_fd, HR__SPOOL_SENDER, O_CREAT, &o->sender_fd);
	if (!r)
		r = spool_stream_identify(st);
	if (!r)
		r = hr_spool_stream_refresh(st, false);
	if (r) {
		hr_spool_stream_free(st);
		return r;
	}
	*ret = st;
	return 0;
}

void hr_spool_stream_free(struct hr_spool_stream *st)
{
	struct hr__spool_reader *o = st ? st->own : NULL;

	if (!st)
		return;
	hr_spool_stream_rest(st);
	if (o->sender_fd >= 0)
		close(o->sender_fd);
	if (o->dir_fd >= 0)
		close(o->dir_fd);
	if (o->start)
		headrace__frame__free_unpacked(o->start, NULL);
	free(o->parts);
	free(o);
	free(st->folder);
	free(st->aim);
	free(st);
}

/* ---- segments -------------------------------------------------------------------------------- */

static int spool_stream_add_part(struct hr__spool_reader *o, uint32_t number)
{
	uint64_t first_seq;
	int r = hr_segment_first_seq(o->dir_fd, number, &first_seq);

	if (r)
		return r;
	if (!hr_array_reserve(o->parts, o->n_parts, o->parts_room))
		return -ENOMEM;
	o->parts[o->n_parts++] = (struct stream_part){number, first_seq};
	return 0;
}

int hr_spool_stream_refresh(struct hr_spool_stream *st, bool newest)
{
	struct hr__spool_reader *o = st->own;
	struct hr_segment_file *files;
	struct hr_segment_info info;
	size_t n;
	int r = hr_segments_list(o->dir_fd, &files, &n);

	if (r)
		return r;
	hr_spool_stream_rest(st);
	o->n_parts = 0;
	st->bytes = 0;
	for (size_t i = 0; i < n && !r; i++) {
		r = spool_stream_add_part(o, files[i].number);
		if (r == -EBADMSG && i + 1 == n)
			r = 0; /* left incomplete by a kill; the next writer removes it */
		st->bytes += files[i].bytes;
		st->time_ns = files[i].time_ns;
	}
	free(files);
	if (!r && !o->n_parts)
		r = -ENOENT;
	if (!r)
		st->first_seq = o->parts[0].first_seq;
	if (!r && newest) {
		r = hr_segment_info(o->dir_fd, o->parts[o->n_parts - 1].number, &info);
		if (!r)
			st->last_seq = info.last_seq;
	}
	return r;
}

/* Finds the segment that contains frame `seq`. First adds the segments that a writer has made. */
static int find_part(struct hr__spool_reader *o, uint64_t seq, size_t *ret)
{
	size_t i;
	int r;

	do
		r = o->n_parts ? spool_stream_add_part(o, o->parts[o->n_parts - 1].number + 1)
			       : -ENOENT;
	while (!r);
	/* With these errors, the next segment is absent or has no header yet, and so no frame. */
	if (r != -ENOENT && r != -EBADMSG)
		return r;
	i = o->n_parts;
	while (i > 0 && o->parts[i - 1].first_seq > seq)
		i--;
	if (!i)
		return -ENOENT;
	*ret = i - 1;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_at(int fd, uint64_t offset, void *buf, size_t bytes)
{
	uint8_t *to = buf;

	while (bytes > 0) {
		ssize_t n = pread(fd, to, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		to += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int read_header(const struct hr__spool_reader *o, struct hr_frame_hdr *ret)
{
	int r = read_at(o->fd, o->offset, ret, sizeof(*ret));

	if (!r && (ret->magic != HR_FRAME_MAGIC || ret->length > HR_FRAME_MAX_BYTES))
		r = -EBADMSG;
	return r;
}

/*
 * Opens segment `at`. The first segment begins with the StreamStart, which is frame 1. Each other
 * segment begins with a copy of the StreamStart; this copy has the number of the previous frame.
 * All later numbers are consecutive.
 */
static int open_part(struct hr__spool_reader *o, size_t at)
{
	char name[16];

	if (o->fd >= 0)
		close(o->fd);
	hr_segment_name(o->parts[at].number, name);
	o->fd = hr_store_open_file(o->dir_fd, name, O_RDONLY);
	if (o->fd < 0)
		return o->fd;
	o->at = at;
	o->offset = sizeof(struct hr_segment_hdr);
	o->next_seq = o->parts[at].first_seq == 1 ? 1 : o->parts[at].first_seq - 1;
	return 0;
}

static int go_to(struct hr__spool_reader *o, uint64_t seq)
{
	struct hr_frame_hdr h;
	size_t at;
	int r = find_part(o, seq, &at);

	if (r)
		return r;
	if (o->fd < 0 || o->at != at || o->next_seq > seq)
		r = open_part(o, at);
	while (!r && o->next_seq < seq) {
		r = read_header(o, &h);
		if (!r) {
			o->offset += sizeof(h) + h.length;
			o->next_seq++;
		}
	}
	return r;
}

int hr_spool_stream_read(struct hr_spool_stream *st, uint64_t seq, uint8_t **ret, size_t *ret_bytes)
{
	struct hr__spool_reader *o = st->own;
	struct hr_frame_hdr h;
	size_t bytes, whole;
	uint8_t *buf;
	int r = go_to(o, seq);

	if (!r)
		r = read_header(o, &h);
	if (r)
		return r;
	bytes = sizeof(h) + h.length;
	buf = malloc(bytes);
	if (!buf)
		return -ENOMEM;
	r = read_at(o->fd, o->offset, buf, bytes);
	if (!r && (hr_frame_check(buf, bytes, &whole) || whole != bytes))
		r = -EBADMSG;
	if (r) {
		free(buf);
		return r;
	}
	o->offset += bytes;
	o->next_seq++;
	*ret = buf;
	*ret_bytes = bytes;
	return 0;
}

void hr_spool_stream_rest(struct hr_spool_stream *st)
{
	struct hr__spool_reader *o = st->own;

	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

/* ---- acknowledged frames --------------------------------------------------------------------- */

static int note_acknowledged(struct hr__spool_reader *o, uint64_t seq)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", seq);

	return hr_store_replace_file(o->dir_fd, HR__SPOOL_ACKED, text, (size_t)n, false, NULL);
}

/* Returns how many segments at the beginning of the stream have only frames up to `seq`. */
static size_t done_with(const struct hr__spool_reader *o, uint64_t seq)
{
	size_t n = 0;

	while (n + 1 < o->n_parts && o->parts[n + 1].first_seq <= seq + 1)
		n++;
	return n;
}

static uint64_t remove_parts(struct hr__spool_reader *o, size_t n)
{
	uint64_t removed = 0;
	struct hr_segment_file *files;
	size_t n_files;

	if (hr_segments_list(o->dir_fd, &files, &n_files))
		return 0;
	for (size_t i = 0; i < n_files && files[i].number <= o->parts[n - 1].number; i++) {
		char name[16];

		hr_segment_name(files[i].number, name);
		if (unlinkat(o->dir_fd, name, 0) == 0)
			removed += files[i].bytes;
	}
	free(files);
	o->n_parts -= n;
	memmove(o->parts, o->parts + n, o->n_parts * sizeof(*o->parts));
	return removed;
}

int hr_spool_stream_acknowledge(struct hr_spool_stream *st, uint64_t seq, bool keep)
{
	struct hr__spool_reader *o = st->own;
	uint64_t removed;
	size_t at, n;
	int lock, r;

	r = find_part(o, seq + 1, &at); /* also finds segments that the writer has made since */
	n = r ? 0 : done_with(o, seq);
	if (!n || (keep && o->noted == o->parts[n].first_seq))
		return r == -ENOENT ? 0 : r;
	/* Another process may be rewriting a segment to make room: takes the spool's lock. */
	r = hr_spool_lock(o->spool, &lock);
	if (r)
		return r;
	if (keep) {
		r = note_acknowledged(o, seq);
		if (!r)
			o->noted = o->parts[n].first_seq;
	} else {
		removed = remove_parts(o, n);
		if (o->fd >= 0 && o->at < n)
			hr_spool_stream_rest(st);
		o->at -= o->fd >= 0 ? n : 0;
		st->first_seq = o->parts[0].first_seq;
		st->bytes -= removed < st->bytes ? removed : st->bytes;
	}
	close(lock);
	return r;
}

int hr_spool_stream_note(struct hr_spool_stream *st, uint64_t seq)
{
	int lock, r = hr_spool_lock(st->own->spool, &lock);

	if (r)
		return r;
	r = note_acknowledged(st->own, seq);
	close(lock);
	return r;
}

enum hr_spool_end hr_spool_stream_end(struct hr_spool_stream *st)
{
	int dir_fd = st->own->dir_fd;

	if (hr_stream_locked(dir_fd))
		return HR_SPOOL_WRITTEN;
	return faccessat(dir_fd, HR__SPOOL_JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0
		   ? HR_SPOOL_JOURNAL
		   : HR_SPOOL_ENDED;
}

static void remove_files(int dir_fd)
{
	struct dirent **entries;
	int n = scandirat(dir_fd, ".", &entries, NULL, NULL);

	for (int i = 0; i < n; i++) {
		unlinkat(dir_fd, entries[i]->d_name, 0); /* fails for "." and ".." */
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static int remove_folder(struct hr_spool_stream *st)
{
	struct hr__spool_reader *o = st->own;
	char *slash;
	int r;

	remove_files(o->dir_fd);
	r = unlinkat(o->spool->dir_fd, st->folder, AT_REMOVEDIR) < 0 ? -errno : 0;
	slash = strrchr(st->folder, '/');
	*slash = '\0'; /* also removes the folder of the job, if it is empty */
	(void)!unlinkat(o->spool->dir_fd, st->folder, AT_REMOVEDIR);
	*slash = '/';
	return r;
}

int hr_spool_stream_remove(struct hr_spool_stream *st)
{
	struct hr__spool_reader *o = st->own;
	int lock, writer = -1, r = hr_spool_lock(o->spool, &lock);

	if (r)
		return r;
	r = hr_stream_lock(o->dir_fd, &writer);
	if (!r && hr_spool_stream_end(st) == HR_SPOOL_JOURNAL)
		r = -EBUSY;
	hr_spool_stream_rest(st);
	if (!r)
		r = remove_folder(st);
	if (writer >= 0)
		close(writer);
	close(lock);
	return r;
}

/* ---- discarding a job ------------------------------------------------------------------------ */

struct discard {
	struct hr_spool *spool;
	const struct hr_stream *streams; /* the streams of all jobs of the spool */
	size_t n;
	struct hr_spool_discarded done;
};

static bool spool_discard_is(const struct hr_stream *s, const Headrace__StreamStart *id)
{
	return s->attempt == id->attempt && s->instance == id->instance &&
	       strcmp(s->cluster, id->cluster) == 0 && strcmp(s->job, id->job) == 0 &&
	       strcmp(s->node, id->node) == 0 && strcmp(s->boot_id, id->boot_id) == 0;
}

static const struct hr_stream *spool_discard_find(const struct discard *d,
						  const Headrace__StreamStart *id)
{
	for (size_t i = 0; i < d->n; i++)
		if (spool_discard_is(&d->streams[i], id))
			return &d->streams[i];
	return NULL;
}

static void spool_discard_count(struct discard *d, const struct hr_stream *s, uint64_t acked)
{
	d->done.streams++;
	for (uint32_t i = 0; i < s->n_frames; i++)
		d->done.frames += s->frames[i].seq > acked;
	for (uint32_t i = 0; i < s->n_batches; i++)
		if (s->frames[s->batches[i].frame].seq > acked)
			d->done.events += s->batches[i].count;
}

static int see(void *arg, const char *folder, int dir_fd)
{
	struct discard *d = arg;
	struct hr_spool_stream *st;
	const struct hr_stream *s;

	(void)dir_fd;
	if (hr_spool_stream_open(d->spool, folder, &st) != 0)
		return 0;
	s = spool_discard_find(d, st->id);
	if (s && hr_spool_stream_remove(st) == 0)
		spool_discard_count(d, s, st->acked);
	hr_spool_stream_free(st);
	return 0;
}

int hr_spool_discard(struct hr_spool *s, const char *job, struct hr_spool_discarded *ret,
		     char **ret_error)
{
	const struct hr_catalog_filter filter = {.job = job};
	const char *path = hr_spool_path(s);
	struct discard d = {.spool = s};
	struct hr_catalog *c;
	int r = hr_catalog_open(&path, 1, &filter, &c, ret_error);

	if (r < 0)
		return r;
	d.n = hr_catalog_streams(c, &d.streams);
	r = hr_spool_each(s, see, &d);
	d.done.kept = (unsigned)d.n - d.done.streams;
	hr_catalog_free(c);
	*ret = d.done;
	return r;
}
