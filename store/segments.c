/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"
#include "store/segment.h"

#define NEW_SUFFIX	".new"
#define START_BYTES_MAX (1u << 20) /* limit of a StreamStart, which has only short texts */

/* ---- inspecting ------------------------------------------------------------------------------ */

static int segments_is_segment(const struct dirent *entry)
{
	return hr__segment_number(entry->d_name) > 0;
}

static bool stat_segment(int dir_fd, const char *name, struct hr_segment_file *ret)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) /* removed by another process */
		return false;
	*ret = (struct hr_segment_file){.number = hr__segment_number(name),
					.bytes = (uint64_t)st.st_size,
					.time_ns = st.st_mtim.tv_sec * INT64_C(1000000000) +
						   st.st_mtim.tv_nsec};
	return true;
}

int hr_segments_list(int stream_dir_fd, struct hr_segment_file **ret, size_t *ret_n)
{
	struct hr_segment_file *files = NULL;
	struct dirent **entries;
	size_t used = 0;
	int n = scandirat(stream_dir_fd, ".", &entries, segments_is_segment, alphasort);

	if (n < 0)
		return -errno;
	if (n > 0)
		files = malloc((size_t)n * sizeof(*files));
	for (int i = 0; i < n; i++) {
		used += files && stat_segment(stream_dir_fd, entries[i]->d_name, &files[used]);
		free(entries[i]);
	}
	free(entries);
	if (n > 0 && !files)
		return -ENOMEM;
	*ret = files;
	*ret_n = used;
	return 0;
}

int hr_segment_first_seq(int stream_dir_fd, uint32_t number, uint64_t *ret)
{
	struct hr_source source = {0};
	struct hr_segment_hdr h;
	int r = hr_segment_open(stream_dir_fd, number, O_RDONLY, &source);

	if (r < 0)
		return r;
	r = hr_segment_header(&source, &h);
	close(source.fd);
	if (r == 0)
		*ret = h.first_seq;
	return r;
}

static int read_index(const struct hr_source *source, struct hr_index *ix,
		      struct hr_segment_info *ret)
{
	struct hr_frame_entry paths;
	struct hr_segment_hdr h;
	struct hr_segment_places scan = {0};
	int r = hr_segment_header(source, &h);

	if (r < 0)
		return r;
	ret->first_seq = h.first_seq;
	r = hr_segment_footer(source, &h, ix, &paths);
	ret->sealed = r == 0;
	if (r != -ENODATA && r != -EBADMSG)
		return r;
	r = hr_segment_scan(source, hr_index_visit, ix, &scan);
	ret->damaged = scan.n_holes > 0;
	free(scan.holes);
	return r;
}

int hr_segment_info(int stream_dir_fd, uint32_t number, struct hr_segment_info *ret)
{
	struct hr_segment_info info = {0};
	struct hr_index ix = {0};
	struct hr_source source = {0};
	uint64_t next;
	int r = hr_segment_open(stream_dir_fd, number, O_RDONLY, &source);

	if (r < 0)
		return r;
	r = read_index(&source, &ix, &info);
	close(source.fd);
	next = info.first_seq;
	for (size_t i = 0; i < ix.n_frames; i++) {
		const struct hr_frame_entry *f = &ix.frames[i];

		if (f->seq == 0 || hr__is_start_copy(f))
			continue;
		info.damaged |= f->seq != next;
		next = f->seq + 1;
		info.kinds |= UINT64_C(1) << (f->kind & 63);
	}
	info.last_seq = next - 1;
	hr_index_done(&ix);
	if (r == 0)
		*ret = info;
	return r;
}

int hr_segment_start(int stream_dir_fd, uint32_t number, Headrace__Frame **ret)
{
	const uint64_t at = sizeof(struct hr_segment_hdr);
	struct hr_source source = {0};
	struct hr_segment_hdr h;
	struct hr_frame_hdr frame;
	Headrace__Frame *msg = NULL;
	int r = hr_segment_open(stream_dir_fd, number, O_RDONLY, &source);

	if (r < 0)
		return r;
	r = hr_segment_header(&source, &h);
	if (r == 0)
		r = hr__source_read(&source, at, &frame, sizeof(frame));
	if (r == 0 && frame.length > START_BYTES_MAX)
		r = -EBADMSG;
	if (r == 0)
		r = hr__source_frame(&source, at, (uint32_t)sizeof(frame) + frame.length, NULL,
				     &msg);
	close(source.fd);
	if (r == 0 && msg->body_case != HEADRACE__FRAME__BODY_STREAM_START) {
		headrace__frame__free_unpacked(msg, NULL);
		r = -EBADMSG;
	}
	if (r == 0)
		*ret = msg;
	return r;
}

/* ---- rewriting ------------------------------------------------------------------------------- */

struct rewrite {
	const struct hr_source *source;
	hr_segment_replace *replace;
	void *context;
	uint8_t *buf;
	size_t bytes, room;
	struct hr_index index;
};

static int segments_put(struct rewrite *w, const void *data, size_t bytes)
{
	if (!hr_array_fit(w->buf, w->bytes + bytes, w->room))
		return -ENOMEM;
	if (data)
		memcpy(w->buf + w->bytes, data, bytes);
	w->bytes += bytes;
	return 0;
}

static int copy_frame(struct rewrite *w, uint64_t offset, uint32_t bytes,
		      const Headrace__Frame *msg)
{
	size_t at = w->bytes;
	int r = segments_put(w, NULL, bytes);

	if (r == 0)
		r = hr__source_read(w->source, offset, w->buf + at, bytes);
	return r == 0 ? hr__index_add(&w->index, at, bytes, msg) : r;
}

static int rewrite_frame(void *context, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	struct rewrite *w = context;
	const Headrace__Frame *with;
	uint8_t *packed;
	size_t packed_bytes;
	int r;

	if (msg->body_case == HEADRACE__FRAME__BODY_INDEX)
		return 0;
	with = w->replace(w->context, msg);
	if (!with)
		return copy_frame(w, offset, bytes, msg);
	r = hr_frame_pack(with, 0, &packed, &packed_bytes);
	if (r < 0)
		return r;
	r = hr__index_add(&w->index, w->bytes, (uint32_t)packed_bytes, with);
	if (r == 0)
		r = segments_put(w, packed, packed_bytes);
	free(packed);
	return r;
}

/* Makes the new file's content in memory, because segments of a spool are small. */
static int compose(struct rewrite *w)
{
	struct hr_segment_hdr h;
	struct hr_segment_places scan = {0};
	uint8_t *footer = NULL;
	size_t bytes = 0;
	int r = hr_segment_header(w->source, &h);

	if (r == 0)
		r = segments_put(w, &h, sizeof(h));
	if (r == 0)
		r = hr_segment_scan(w->source, rewrite_frame, w, &scan);
	free(scan.holes);
	if (r == 0 && (scan.n_holes > 0 || w->index.n_frames == 0))
		r = -EBADMSG;
	if (r == 0)
		r = hr__index_pack(&w->index, w->bytes, &footer, &bytes);
	if (r < 0)
		return r;
	r = segments_put(w, footer, bytes);
	free(footer);
	return r;
}

int hr_segment_rewrite(int stream_dir_fd, uint32_t number, hr_segment_replace *replace,
		       void *context, uint64_t *ret_bytes)
{
	struct rewrite w = {.replace = replace, .context = context};
	struct hr_source source = {0};
	struct stat st;
	char name[16];
	int r = hr_segment_open(stream_dir_fd, number, O_RDONLY, &source);

	if (r < 0)
		return r;
	w.source = &source;
	r = compose(&w);
	hr_segment_name(number, name);
	if (r == 0 && fstat(source.fd, &st) < 0)
		r = -errno;
	if (r == 0) /* synced, so that a whole segment remains after a crash */
		r = hr_store_replace_file(stream_dir_fd, name, w.buf, w.bytes, true,
					  (struct timespec[]){st.st_atim, st.st_mtim});
	if (r == 0)
		*ret_bytes = w.bytes;
	close(source.fd);
	hr_index_done(&w.index);
	free(w.buf);
	return r;
}

static int is_leftover(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, NEW_SUFFIX) == 0;
}

void hr_segments_sweep(int stream_dir_fd)
{
	struct dirent **entries;
	int n = scandirat(stream_dir_fd, ".", &entries, is_leftover, NULL);

	for (int i = 0; i < n; i++) {
		unlinkat(stream_dir_fd, entries[i]->d_name, 0);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}
