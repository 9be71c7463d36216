/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - appends to a stream
 *
 * Every change of a segment is one pwrite at its end. If a writer dies, at most one partial frame
 * remains, which the next writer cuts.
 *      none   --(append: header + StreamStart)-->  open
 *      open   --(append past the limit and the next one can be made, close: footer)-->  sealed = none
 *      open   --(damage inside, found at recovery)-->  left as it is = none
 *
 * The writer reserves disk space before it needs it (fallocate, which keeps the file's size). On a
 * full disk, the last HR_WRITER_RESERVE_BYTES remain for hr_writer_append_last, so that the end of
 * a stream can still record what is missing.
 */
#include "store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/layout.h"
#include "store/segment.h"
#include "store/segments.h"

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

static int writer_make_room(struct hr_writer *w, uint64_t bytes)
{
	uint64_t need = w->offset + bytes + HR_WRITER_RESERVE_BYTES;

	if (need <= w->room_end || reserve(w, w->fd, need + ROOM_STEP_BYTES, &w->room_end) == 0)
		return 0;
	return reserve(w, w->fd, need, &w->room_end);
}

/* Cuts the open segment after its last frame: removes a failed write and the reserved space. */
static void cut(struct hr_writer *w)
{
	/* If this fails, the next append or the recovery cuts the segment. */
	(void)!ftruncate(w->fd, (off_t)w->offset);
	w->room_end = w->offset;
}

static int append_bytes(struct hr_writer *w, const uint8_t *buf, size_t bytes)
{
	int r = hr__write_at(w->fd, buf, bytes, w->offset);

	if (r < 0) {
		cut(w);
		(void)writer_make_room(w, 0); /* reserves space again, after the cut */
		return r;
	}
	w->offset += bytes;
	if (w->unsynced == 0)
		w->unsynced = w->number;
	return 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Writes the footer. If this fails, the segment stays readable without a footer. */
static int seal(struct hr_writer *w)
{
	uint8_t *buf;
	size_t bytes;
	int r = hr__index_pack(&w->index, w->offset, &buf, &bytes);

	if (r < 0)
		return r;
	r = append_bytes(w, buf, bytes);
	free(buf);
	return r;
}

void hr__writer_leave_segment(struct hr_writer *w)
{
	cut(w);
	close(w->fd);
	w->fd = -1;
	w->other_bytes += w->offset;
	w->offset = w->room_end = 0;
	hr_index_done(&w->index);
}

void hr__writer_reserve(struct hr_writer *w)
{
	w->room_end = w->offset;
	(void)writer_make_room(w, 0);
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

int hr__writer_start_segment(struct hr_writer *w)
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
		(void)seal(w); /* a segment without a footer is readable, too */
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

/* ---- opening --------------------------------------------------------------------------------- */

/* Opens the stream's folder. `own`: does not create it, and requires hr_store_is_own. */
static int open_folder(struct hr_writer *w, int store_fd, const char *store, bool own,
		       const struct hr_stream_id *id)
{
	const char *names[3] = {"jobs"};
	char job[HR__NAME_BYTES], stream[HR__NAME_BYTES];
	int r = hr_name_encode(id->job, job);

	if (r == 0)
		r = hr_stream_name(id, stream);
	if (r < 0)
		return r;
	names[1] = job;
	names[2] = stream;
	for (int i = 0; i < 3; i++) {
		int fd, above = i == 0 ? store_fd : w->dir_fd;

		r = own ? hr_store_open_folder(above, names[i])
			: hr__folder_open(above, names[i], &fd);
		if (r < 0)
			return r;
		fd = own ? r : fd;
		if (w->dir_fd >= 0)
			close(w->dir_fd);
		w->dir_fd = fd;
	}
	if (own && !hr_store_is_own(w->dir_fd))
		return -EPERM;
	w->dir = hr_arena_get(&w->memory, strlen(store) + strlen(job) + strlen(stream) + 16);
	if (!w->dir)
		return -ENOMEM;
	sprintf(w->dir, "%s/jobs/%s/%s", store, job, stream);
	return 0;
}

static int copy_id(struct hr_writer *w, const struct hr_stream_id *id)
{
	Headrace__StreamStart *s = &w->start;

	headrace__stream_start__init(s);
	s->version = HR_STORE_VERSION;
	s->attempt = id->attempt;
	s->instance = id->instance;
	s->added_to = id->added_to;
	s->cluster = hr_arena_text(&w->memory, id->cluster);
	s->job = hr_arena_text(&w->memory, id->job);
	s->node = hr_arena_text(&w->memory, id->node);
	s->boot_id = hr_arena_text(&w->memory, id->boot_id);
	return s->cluster && s->job && s->node && s->boot_id ? 0 : -ENOMEM;
}

static void writer_free(struct hr_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->lock_fd >= 0)
		close(w->lock_fd);
	if (w->dir_fd >= 0)
		close(w->dir_fd);
	hr_index_done(&w->index);
	hr_arena_free(&w->memory);
	free(w);
}

static int open_stream(int store_fd, const char *store, bool own, const struct hr_stream_id *id,
		       struct hr_writer **ret, uint64_t *ret_cut_bytes)
{
	struct hr_writer *w = calloc(1, sizeof(*w));
	uint64_t cut_bytes = 0;
	int r;

	if (!w)
		return -ENOMEM;
	w->dir_fd = w->lock_fd = w->fd = -1;
	w->segment_bytes = HR_SEGMENT_BYTES;
	w->index_bytes = SIZE_MAX;
	r = copy_id(w, id);
	if (r == 0)
		r = open_folder(w, store_fd, store, own, id);
	if (r == 0)
		r = hr_stream_lock(w->dir_fd, &w->lock_fd);
	if (r == 0 || r == -ENOLCK) /* no other writer has the name of this stream */
		r = hr__writer_resume(w, &cut_bytes);
	if (r < 0) {
		writer_free(w);
		return r;
	}
	if (ret_cut_bytes)
		*ret_cut_bytes = cut_bytes;
	*ret = w;
	return 0;
}

/* Opens a stream. `held`: the caller is the collector that holds the store. */
static int open_in(const char *store, bool held, const struct hr_stream_id *id,
		   struct hr_writer **ret, uint64_t *ret_cut_bytes)
{
	int fd = hr__store_make(store), r;

	if (fd < 0)
		return fd;
	r = !held && hr__store_held(fd) ? -EBUSY
					: open_stream(fd, store, false, id, ret, ret_cut_bytes);
	close(fd);
	return r;
}

int hr_writer_open(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
		   uint64_t *ret_cut_bytes)
{
	return open_in(store, false, id, ret, ret_cut_bytes);
}

int hr_writer_open_own(int store_fd, const char *store, const struct hr_stream_id *id,
		       struct hr_writer **ret)
{
	if (hr__store_held(store_fd))
		return -EBUSY;
	return open_stream(store_fd, store, true, id, ret, NULL);
}

int hr_writer_open_held(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
			uint64_t *ret_cut_bytes)
{
	return open_in(store, true, id, ret, ret_cut_bytes);
}

/* ---- use ------------------------------------------------------------------------------------- */

const char *hr_writer_dir(const struct hr_writer *w)
{
	return w->dir;
}

int hr_writer_dir_fd(const struct hr_writer *w)
{
	return w->dir_fd;
}

uint64_t hr_writer_mark(const struct hr_writer *w)
{
	return w->mark;
}

uint64_t hr_writer_bytes(const struct hr_writer *w)
{
	return w->other_bytes + w->offset;
}

void hr_writer_segment_bytes(struct hr_writer *w, uint64_t bytes)
{
	w->segment_bytes = bytes;
}

int hr_writer_roll(struct hr_writer *w)
{
	return hr__writer_start_segment(w);
}

int hr_writer_skip(struct hr_writer *w, uint64_t mark)
{
	uint64_t before = w->mark;
	int r;

	if (mark < before)
		return -EINVAL;
	if (mark == before)
		return 0;
	w->mark = mark;
	r = hr__writer_start_segment(w);
	if (r < 0 && w->fd >= 0) /* if there is no new segment, the old one stays in use */
		w->mark = before;
	return r;
}

/* Opens a segment for a frame. If the disk has no space for another one, uses a full segment. */
static int open_for_append(struct hr_writer *w)
{
	int r;

	if (w->fd >= 0 && w->offset <= w->segment_bytes &&
	    hr__index_bytes(&w->index) <= w->index_bytes)
		return 0;
	r = hr__writer_start_segment(w);
	return w->fd >= 0 ? 0 : r;
}

static int append_message(struct hr_writer *w, const Headrace__Frame *msg, const uint8_t *frame,
			  size_t bytes, bool last)
{
	uint64_t offset;
	int r;

	if (msg->body_case == HEADRACE__FRAME__BODY_INDEX || msg->seq == 0)
		return -EINVAL;
	if (msg->seq <= w->mark)
		return -EALREADY;
	if (msg->seq != w->mark + 1)
		return -ERANGE;
	r = open_for_append(w);
	if (r == 0 && !last)
		r = writer_make_room(w, bytes);
	if (r < 0)
		return r;
	offset = w->offset;
	r = append_bytes(w, frame, bytes);
	if (r < 0)
		return r;
	w->mark = msg->seq;
	/* The frame is stored. If the segment cannot be indexed, it is read without a footer. */
	if (hr__index_add(&w->index, offset, (uint32_t)bytes, msg) < 0)
		hr__writer_leave_segment(w);
	return 0;
}

static int writer_append(struct hr_writer *w, const uint8_t *frame, size_t bytes, bool last)
{
	Headrace__Frame *msg;
	size_t whole;
	int r = hr_frame_check(frame, bytes, &whole);

	if (r < 0 || whole != bytes)
		return r == -E2BIG ? r : -EBADMSG;
	r = hr_frame_unpack(frame, bytes, &msg);
	if (r < 0)
		return r;
	r = append_message(w, msg, frame, bytes, last);
	headrace__frame__free_unpacked(msg, NULL);
	return r;
}

int hr_writer_append(struct hr_writer *w, const uint8_t *frame, size_t bytes)
{
	return writer_append(w, frame, bytes, false);
}

int hr_writer_append_packed(struct hr_writer *w, const Headrace__Frame *msg, const uint8_t *frame,
			    size_t bytes)
{
	return append_message(w, msg, frame, bytes, false);
}

int hr_writer_append_last(struct hr_writer *w, const uint8_t *frame, size_t bytes)
{
	return writer_append(w, frame, bytes, true);
}

/* Syncs the names of new segments, and of the folders above, which may also be new. */
static int sync_folders(struct hr_writer *w)
{
	static const char *const folders[] = {".", "..", "../..", "../../.."};
	int r = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && r == 0; i++) {
		int fd = openat(w->dir_fd, folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			return -errno;
		r = fsync(fd) < 0 ? -errno : 0;
		close(fd);
	}
	return r;
}

/* Syncs the open segment by the descriptor that wrote it, which reports all write errors. */
static int sync_segment(const struct hr_writer *w, uint32_t number)
{
	struct hr_source source;
	int r;

	if (number == w->number && w->fd >= 0)
		return fdatasync(w->fd) < 0 ? -errno : 0;
	r = hr_segment_open(w->dir_fd, number, O_RDONLY, &source);
	if (r < 0)
		return r;
	r = fdatasync(source.fd) < 0 ? -errno : 0;
	close(source.fd);
	return r;
}

void hr_writer_synced(struct hr_writer *w)
{
	w->unsynced = 0;
	w->folder_changed = false;
	hr__writer_note_synced(w);
}

int hr_writer_sync(struct hr_writer *w)
{
	int r = 0;

	for (; w->unsynced && w->unsynced <= w->number; w->unsynced++) {
		r = sync_segment(w, w->unsynced);
		if (r < 0)
			return r;
	}
	w->unsynced = 0;
	if (w->folder_changed)
		r = sync_folders(w);
	if (r == 0)
		hr_writer_synced(w);
	return r;
}

static bool has_no_name(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

bool hr_writer_removed(const struct hr_writer *w)
{
	return has_no_name(w->fd) || has_no_name(w->dir_fd);
}

void hr_writer_limit_index(struct hr_writer *w, size_t bytes)
{
	w->index_bytes = bytes;
}

void hr_writer_abandon(struct hr_writer *w)
{
	if (w)
		writer_free(w);
}

int hr_writer_close(struct hr_writer *w)
{
	int r = 0;

	if (!w)
		return 0;
	if (w->fd >= 0) {
		r = seal(w);
		cut(w);
	}
	writer_free(w);
	return r;
}
