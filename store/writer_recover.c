/* SPDX-License-Identifier: Apache-2.0 */
#include "store/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/layout.h"
#include "store/segment.h"
#include "store/stream_state.h"

static int index_frame(void *context, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	/* A footer without a whole trailer: its frames belong to the tail. */
	if (msg->body_case == HEADRACE__FRAME__BODY_INDEX)
		return -ECANCELED;
	return hr__index_add(context, offset, bytes, msg);
}

/* True: the frames have consecutive numbers, which a footer requires. */
static bool unbroken(const struct hr__index *ix)
{
	const struct hr__frame_entry *f = ix->frames;

	if (f[0].kind != HEADRACE__FRAME__BODY_STREAM_START)
		return false;
	for (size_t i = 1; i < ix->n_frames; i++)
		if (f[i].seq != f[0].seq + i)
			return false;
	return true;
}

/* Removes a segment without a whole frame, whose writer died while it made the segment. */
static int drop_segment(struct hr_writer *w, const struct hr__source *source)
{
	char name[16];

	hr__segment_name(w->number, name);
	w->other_bytes -= source->bytes;
	return unlinkat(w->dir_fd, name, 0) < 0 ? -errno : -ENOENT;
}

/*
 * Scans a segment without footer and cuts its tail. The segment becomes the open one, unless it is
 * damaged inside. Then it stays unchanged, and a new segment follows.
 */
static int recover_segment(struct hr_writer *w, const struct hr__source *source, bool sound_header,
			   uint64_t *cut_bytes)
{
	struct hr__scan scan = {0};
	const struct hr__frame_entry *last;
	uint64_t end = 0;
	int r = hr__segment_scan(source, index_frame, &w->index, &scan);

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
	w->fd = source->fd;
	w->offset = end;
	w->other_bytes -= source->bytes;
	w->unsynced = w->number;
	if (sound_header && unbroken(&w->index))
		hr__writer_reserve(w);
	else
		hr__writer_leave_segment(w);
	return 0;
}

/* Sets mark and state from segment w->number. -ENOENT: it had no whole frame, and was removed. */
static int open_segment(struct hr_writer *w, uint64_t *cut_bytes)
{
	struct hr__source source = {0};
	struct hr_segment_hdr h;
	struct hr__frame_entry paths;
	struct stat st;
	bool sound_header = false;
	char name[16];
	int r;

	hr__segment_name(w->number, name);
	source.fd = hr_store_open_file(w->dir_fd, name, O_RDWR);
	if (source.fd < 0)
		return source.fd;
	r = fstat(source.fd, &st) < 0 ? -errno : 0;
	if (r == 0) {
		source.bytes = (uint64_t)st.st_size;
		r = hr__segment_header(&source, &h);
	}
	if (r == 0) {
		sound_header = true;
		r = hr__segment_footer(&source, &h, &w->index, &paths);
		if (r == 0)
			w->mark = w->index.last_seq ? w->index.last_seq : h.first_seq - 1;
		hr__index_done(&w->index);
	}
	if (r == -ENODATA || r == -EBADMSG)
		r = recover_segment(w, &source, sound_header, cut_bytes);
	if (w->fd != source.fd)
		close(source.fd);
	return r;
}

static int last_segment(int dir_fd, uint32_t *ret_number, uint64_t *ret_bytes)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	*ret_number = 0;
	*ret_bytes = 0;
	while ((entry = readdir(dir)) != NULL) { // NOLINT(concurrency-mt-unsafe): own DIR
		uint32_t number = hr__segment_number(entry->d_name);

		if (number > *ret_number)
			*ret_number = number;
		if (number && fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			*ret_bytes += (uint64_t)st.st_size;
	}
	closedir(dir);
	return 0;
}

void hr__writer_note_synced(struct hr_writer *w)
{
	w->synced_number = w->number;
	w->synced_offset = w->fd >= 0 ? w->offset : HR__WRITER_WHOLE;
}

/* A stream without segments is new, or a collector has retired it. */
static int writer_recover_begin(struct hr_writer *w)
{
	struct hr_stream_state state;
	int r = hr_stream_state_read(w->dir_fd, &state);

	if (r < 0 && r != -ENOENT)
		return r; /* an unreadable mark must not become 0 */
	w->mark = r == 0 && state.retired ? state.mark : 0;
	return hr__writer_start_segment(w);
}

int hr__writer_resume(struct hr_writer *w, uint64_t *cut_bytes)
{
	int r = last_segment(w->dir_fd, &w->number, &w->other_bytes);

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
	char name[16];
	int fd, r = 0;

	for (; w->number > w->synced_number; w->number--) {
		hr__segment_name(w->number, name);
		if (unlinkat(w->dir_fd, name, 0) < 0 && errno != ENOENT)
			return -errno;
	}
	if (w->number == 0)
		return 0;
	hr__segment_name(w->number, name);
	fd = hr_store_open_file(w->dir_fd, name, O_RDWR);
	if (fd < 0)
		return fd;
	if (w->synced_offset != HR__WRITER_WHOLE && ftruncate(fd, (off_t)w->synced_offset) < 0)
		r = -errno;
	/* so that the recovery reads from the disk */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
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
