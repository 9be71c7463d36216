/* SPDX-License-Identifier: Apache-2.0 */
/* writer_segment.c - the segments of a writer: disk space, start and end, recovery */
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/layout.h"
#include "store/segment.h"
#include "store/segments.h"
#include "store/stream_state.h"

#define ROOM_STEP_BYTES (1u << 20) /* reserved in advance if the disk has enough space */

/* ---- disk space ------------------------------------------------------------------------------ */

/* Reserves disk space up to `end`. *room_end: the end of the reserved space. */
static int reserve(struct hr_writer *w, int fd, uint64_t end, uint64_t *room_end)
{
	int r;

	if (w->no_room_ahead || end <= *room_end)
		return 0;
	do
		r = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)*room_end, (off_t)(end - *room_end));
	while (r < 0 && errno == EINTR);
	if (r < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
		w->no_room_ahead = true; /* NFS before 4.2, for example, cannot reserve */
		return 0;
	}
	if (r < 0)
		return -errno;
	*room_end = end;
	return 0;
}

int hr__writer_make_room(struct hr_writer *w, uint64_t bytes)
{
	uint64_t need = w->offset + bytes + HR_WRITER_RESERVE_BYTES;

	if (need <= w->room_end || reserve(w, w->fd, need + ROOM_STEP_BYTES, &w->room_end) == 0)
		return 0;
	return reserve(w, w->fd, need, &w->room_end);
}

void hr__writer_cut(struct hr_writer *w)
{
	/* If this fails, the next append or the recovery cuts the segment. */
	(void)!ftruncate(w->fd, (off_t)w->offset);
	w->room_end = w->offset;
}

int hr__writer_append_bytes(struct hr_writer *w, const uint8_t *buf, size_t bytes)
{
	int r;

	assert(w->fd >= 0 && w->offset >= sizeof(struct hr_segment_hdr));
	r = hr__write_at(w->fd, buf, bytes, w->offset);
	if (r < 0) {
		hr__writer_cut(w);
		(void)hr__writer_make_room(w, 0); /* reserves space again, after the cut */
		return r;
	}
	w->offset += bytes;
	if (w->unsynced == 0)
		w->unsynced = w->number;
	return 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

int hr__writer_seal(struct hr_writer *w)
{
	const struct hr_index *ix = &w->index;
	uint8_t *buf;
	size_t bytes;
	int r;

	/* the index has all frames of the segment */
	assert(ix->n_frames > 0 &&
	       ix->frames[ix->n_frames - 1].offset + ix->frames[ix->n_frames - 1].bytes ==
		   w->offset);
	r = hr__index_pack(ix, w->offset, &buf, &bytes);
	if (r < 0)
		return r;
	r = hr__writer_append_bytes(w, buf, bytes);
	free(buf);
	return r;
}

void hr__writer_leave_segment(struct hr_writer *w)
{
	assert(w->fd >= 0);
	hr__writer_cut(w);
	close(w->fd);
	w->fd = -1;
	w->other_bytes += w->offset;
	w->offset = w->room_end = 0;
	hr_index_done(&w->index);
}

/* Reserves disk space in the open segment, which an earlier writer may have left. */
static void reserve_again(struct hr_writer *w)
{
	w->room_end = w->offset;
	(void)hr__writer_make_room(w, 0);
}

/* Packs the header and the StreamStart of the next segment into one malloc'ed buffer. */
static int pack_head(const struct hr_writer *w, Headrace__Frame *frame, uint8_t **ret_buf,
		     size_t *ret_bytes)
{
	struct hr_segment_hdr h = {.magic = HR__SEGMENT_MAGIC, .version = HR_STORE_VERSION};
	uint8_t *packed, *buf;
	size_t bytes;
	int r = hr_frame_pack(frame, 0, &packed, &bytes);

	if (r < 0)
		return r;
	buf = malloc(sizeof(h) + bytes);
	if (buf) {
		h.first_seq = w->mark + 1;
		memcpy(buf, &h, sizeof(h));
		memcpy(buf + sizeof(h), packed, bytes);
		*ret_buf = buf;
		*ret_bytes = sizeof(h) + bytes;
	}
	free(packed);
	return buf ? 0 : -ENOMEM;
}

/* Makes a file with the next segment's start and reserved space. On failure, leaves no file. */
static int make_segment(struct hr_writer *w, const uint8_t *head, size_t bytes, int *ret_fd,
			uint64_t *ret_room_end)
{
	uint64_t room_end = bytes;
	char name[16];
	int fd, r;

	if (w->number == HR__SEGMENT_MAX)
		return -EFBIG;
	hr_segment_name(w->number + 1, name);
	fd = hr_store_open_file(w->dir_fd, name, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	r = hr__write_at(fd, head, bytes, 0);
	if (r == 0)
		r = reserve(w, fd, bytes + HR_WRITER_RESERVE_BYTES, &room_end);
	if (r < 0) {
		close(fd);
		unlinkat(w->dir_fd, name, 0);
		return r;
	}
	*ret_fd = fd;
	*ret_room_end = room_end;
	return 0;
}

int hr_writer_roll(struct hr_writer *w)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	uint64_t room_end = 0;
	uint8_t *buf;
	size_t bytes;
	int fd = -1, r;

	frame.seq = w->mark ? w->mark : 1;
	frame.body_case = HEADRACE__FRAME__BODY_STREAM_START;
	frame.stream_start = &w->start;
	r = pack_head(w, &frame, &buf, &bytes);
	if (r < 0)
		return r;
	r = make_segment(w, buf, bytes, &fd, &room_end);
	free(buf);
	if (r < 0)
		return r;
	if (w->fd >= 0) {
		(void)hr__writer_seal(w); /* a segment without a footer is readable, too */
		hr__writer_leave_segment(w);
	}
	w->fd = fd;
	w->number++;
	w->offset = bytes;
	w->room_end = room_end;
	w->mark = frame.seq;
	w->folder_changed = true;
	if (w->unsynced == 0)
		w->unsynced = w->number;
	r = hr__index_add(&w->index, sizeof(struct hr_segment_hdr),
			  (uint32_t)(bytes - sizeof(struct hr_segment_hdr)), &frame);
	if (r < 0)
		hr__writer_leave_segment(w);
	return r;
}

/* ---- recovery -------------------------------------------------------------------------------- */

static int index_frame(void *context, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	/* A footer without a whole trailer: its frames belong to the tail, which is cut. */
	if (msg->body_case == HEADRACE__FRAME__BODY_INDEX)
		return -ECANCELED;
	return hr__index_add(context, offset, bytes, msg);
}

/* Whether the numbers (seq) of the frames have no gap, as a footer requires. */
static bool unbroken(const struct hr_index *ix)
{
	const struct hr_frame_entry *f = ix->frames;

	if (f[0].kind != HEADRACE__FRAME__BODY_STREAM_START)
		return false;
	for (size_t i = 1; i < ix->n_frames; i++)
		if (f[i].seq != f[0].seq + i)
			return false;
	return true;
}

/* Removes a segment without a whole frame, whose writer died while it made the segment. */
static int drop_segment(struct hr_writer *w, const struct hr_source *source)
{
	char name[16];

	hr_segment_name(w->number, name);
	w->other_bytes -= source->bytes;
	return unlinkat(w->dir_fd, name, 0) < 0 ? -errno : -ENOENT;
}

/*
 * Scans a segment without footer, and cuts its tail. The segment becomes the open one. If it is
 * damaged before the tail, it stays unchanged, and a new segment follows.
 */
static int recover_segment(struct hr_writer *w, struct hr_source *source, bool sound_header,
			   uint64_t *cut_bytes)
{
	struct hr_segment_places scan = {0};
	const struct hr_frame_entry *last;
	uint64_t end = 0;
	int r = hr_segment_scan(source, index_frame, &w->index, &scan);

	free(scan.holes);
	if (r < 0 && r != -ECANCELED)
		return r;
	if (w->index.n_frames > 0) {
		last = &w->index.frames[w->index.n_frames - 1];
		end = last->offset + last->bytes;
		w->mark = last->seq;
	}
	*cut_bytes += source->bytes - end;
	if (end == 0)
		return drop_segment(w, source);
	if (end < source->bytes && ftruncate(source->fd, (off_t)end) < 0)
		return -errno;
	w->fd = source->fd; /* the writer closes it from now on */
	source->fd = -1;
	w->offset = end;
	w->other_bytes -= source->bytes;
	w->unsynced = w->number;
	if (sound_header && unbroken(&w->index))
		reserve_again(w);
	else
		hr__writer_leave_segment(w);
	return 0;
}

/* Sets mark and state from the last segment. -ENOENT: it had no whole frame, and was removed. */
static int open_segment(struct hr_writer *w, uint64_t *cut_bytes)
{
	struct hr_source source = {0};
	struct hr_segment_hdr h;
	struct hr_frame_entry paths;
	bool sound_header = false;
	int r = hr_segment_open(w->dir_fd, w->number, O_RDWR, &source);

	if (r < 0)
		return r;
	r = hr_segment_header(&source, &h);
	if (r == 0) {
		sound_header = true;
		r = hr_segment_footer(&source, &h, &w->index, &paths);
		if (r == 0)
			w->mark = w->index.last_seq ? w->index.last_seq : h.first_seq - 1;
		hr_index_done(&w->index);
	}
	if (r == -ENODATA || r == -EBADMSG)
		r = recover_segment(w, &source, sound_header, cut_bytes);
	if (source.fd >= 0)
		close(source.fd);
	return r;
}

/* Finds the number of the last segment, and the size of all segments. */
static int find_segments(struct hr_writer *w)
{
	struct hr_segment_file *files;
	size_t n;
	int r = hr_segments_list(w->dir_fd, &files, &n);

	if (r < 0)
		return r;
	w->number = 0;
	w->other_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		w->number = files[i].number;
		w->other_bytes += files[i].bytes;
	}
	free(files);
	return 0;
}

void hr__writer_note_synced(struct hr_writer *w)
{
	w->synced_number = w->number;
	w->synced_offset = w->fd >= 0 ? w->offset : HR__WRITER_WHOLE;
}

/* Begins a stream without segments: it is new, or a collector has retired it. */
static int writer_recover_begin(struct hr_writer *w)
{
	struct hr_stream_state state;
	int r = hr_stream_state_read(w->dir_fd, &state);

	if (r < 0 && r != -ENOENT)
		return r; /* an unreadable mark must not become 0 */
	w->mark = r == 0 && state.retired ? state.mark : 0;
	return hr_writer_roll(w);
}

int hr__writer_resume(struct hr_writer *w, uint64_t *cut_bytes)
{
	int r = find_segments(w);

	while (r == 0 && w->number > 0) {
		r = open_segment(w, cut_bytes);
		if (r == 0)
			hr__writer_note_synced(w);
		if (r != -ENOENT)
			return r;
		w->number--;
		r = 0;
	}
	return r < 0 ? r : writer_recover_begin(w);
}

/* Removes segments that began after the last successful sync, and cuts the one before them. */
static int undo(struct hr_writer *w)
{
	struct hr_source source;
	char name[16];
	int r;

	for (; w->number > w->synced_number; w->number--) {
		hr_segment_name(w->number, name);
		if (unlinkat(w->dir_fd, name, 0) < 0 && errno != ENOENT)
			return -errno;
	}
	if (w->number == 0)
		return 0;
	r = hr_segment_open(w->dir_fd, w->number, O_RDWR, &source);
	if (r < 0)
		return r;
	if (w->synced_offset != HR__WRITER_WHOLE &&
	    ftruncate(source.fd, (off_t)w->synced_offset) < 0)
		r = -errno;
	/* so that the recovery reads from the disk */
	(void)posix_fadvise(source.fd, 0, 0, POSIX_FADV_DONTNEED);
	close(source.fd);
	return r;
}

int hr_writer_rewind(struct hr_writer *w)
{
	uint64_t cut_bytes = 0;
	int r;

	if (w->fd >= 0)
		hr__writer_leave_segment(w);
	r = undo(w);
	if (r < 0)
		return r;
	w->folder_changed = true;
	return hr__writer_resume(w, &cut_bytes);
}
