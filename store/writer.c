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

int hr_writer_skip(struct hr_writer *w, uint64_t mark)
{
	uint64_t before = w->mark;
	int r;

	if (mark < before)
		return -EINVAL;
	if (mark == before)
		return 0;
	w->mark = mark;
	r = hr_writer_roll(w);
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
	r = hr_writer_roll(w);
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
		r = hr__writer_make_room(w, bytes);
	if (r < 0)
		return r;
	offset = w->offset;
	r = hr__writer_append_bytes(w, frame, bytes);
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
		r = hr__writer_seal(w);
		hr__writer_cut(w);
	}
	writer_free(w);
	return r;
}
