/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/server/retire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/layout.h"
#include "collector/segment.h"
#include "collector/stream_state.h"

/* Calls `visit` for each folder of streams in a job. 0, or the first error. */
typedef int visit_stream(int stream_fd, void *context);

static int each_stream(int jobs_fd, const char *job, visit_stream *visit, void *context)
{
	int fd = openat(jobs_fd, job, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while ((entry = readdir(dir)) != NULL) { // NOLINT(concurrency-mt-unsafe): own DIR
		int stream, error;

		if (entry->d_name[0] == '.')
			continue;
		stream = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (stream < 0)
			continue;
		error = visit(stream, context);
		if (r == 0)
			r = error;
		close(stream);
	}
	closedir(dir);
	return r;
}

static int is_segment(const struct dirent *entry)
{
	return hr__segment_number(entry->d_name) > 0;
}

static void free_names(struct dirent **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* ---- looking --------------------------------------------------------------------------------- */

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static int look(int stream_fd, void *context)
{
	struct hr__retire_job *job = context;
	struct hr_stream_state state;
	struct dirent **names;
	int n = scandirat(stream_fd, ".", &names, is_segment, alphasort);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		struct stat st;

		if (fstatat(stream_fd, names[i]->d_name, &st, 0) < 0)
			continue;
		job->bytes += (uint64_t)st.st_size;
		if (ns_of(&st.st_mtim) > job->heard_ns)
			job->heard_ns = ns_of(&st.st_mtim);
	}
	free_names(names, n);
	if (hr_stream_state_read(stream_fd, &state) == 0 && state.heard_ns > job->heard_ns)
		job->heard_ns = state.heard_ns;
	job->in_use |= hr__stream_locked(stream_fd);
	return 0;
}

int hr__retire_look(int jobs_fd, const char *job, struct hr__retire_job *ret)
{
	*ret = (struct hr__retire_job){0};
	return each_stream(jobs_fd, job, look, ret);
}

/* ---- the last segment ------------------------------------------------------------------------ */

static int note_frame(void *context, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	if (msg->body_case == HEADRACE__FRAME__BODY_INDEX)
		return 0;
	return hr__index_add(context, offset, bytes, msg);
}

/* Its index, from the footer, or by reading what has none. */
static int index_of(int stream_fd, const char *name, struct hr__index *ix)
{
	struct hr__source source = {.fd = openat(stream_fd, name, O_RDONLY | O_CLOEXEC)};
	struct hr_segment_hdr h;
	struct hr__frame_entry paths;
	struct hr__scan scan = {0};
	struct stat st = {0};
	int r = source.fd < 0 || fstat(source.fd, &st) < 0 ? -errno : 0;

	if (r == 0) {
		source.bytes = (uint64_t)st.st_size;
		r = hr__segment_header(&source, &h);
	}
	if (r == 0)
		r = hr__segment_footer(&source, &h, ix, &paths);
	if (r == -ENODATA || r == -EBADMSG) {
		hr__index_done(ix);
		r = hr__segment_scan(&source, note_frame, ix, &scan);
		free(scan.holes);
	}
	if (source.fd >= 0)
		close(source.fd);
	return r;
}

/* The last frame of the last segment that has one. -ENODATA: none has. */
static int last_frame(int stream_fd, struct hr__frame_entry *ret)
{
	struct dirent **names;
	int n = scandirat(stream_fd, ".", &names, is_segment, alphasort), r = -ENODATA;

	if (n < 0)
		return -errno;
	for (int i = n - 1; i >= 0 && r == -ENODATA; i--) {
		struct hr__index ix = {0};

		r = index_of(stream_fd, names[i]->d_name, &ix);
		if (r == 0)
			r = -ENODATA;
		for (size_t f = 0; r == -ENODATA && f < ix.n_frames; f++) {
			const struct hr__frame_entry *e = &ix.frames[ix.n_frames - 1 - f];

			if (e->seq == 0)
				continue;
			*ret = *e;
			r = 0;
		}
		hr__index_done(&ix);
	}
	free_names(names, n);
	return r;
}

static int check_ended(int stream_fd, void *context)
{
	struct hr__frame_entry last;
	bool *ended = context;
	int r = last_frame(stream_fd, &last);

	if (r != -ENODATA) /* else it has left already */
		*ended &= r == 0 && last.kind == HEADRACE__FRAME__BODY_STREAM_END;
	return 0;
}

bool hr__retire_ended(int jobs_fd, const char *job)
{
	bool ended = true;

	return each_stream(jobs_fd, job, check_ended, &ended) == 0 && ended;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Oldest first: whoever finds some of them finds the one that knows the mark. */
static int remove_segments(int stream_fd, uint64_t *ret_bytes)
{
	struct dirent **names;
	int n = scandirat(stream_fd, ".", &names, is_segment, alphasort), r = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n && r == 0; i++) {
		struct stat st;
		bool known = fstatat(stream_fd, names[i]->d_name, &st, 0) == 0;

		if (unlinkat(stream_fd, names[i]->d_name, 0) < 0)
			r = -errno;
		else if (known)
			*ret_bytes += (uint64_t)st.st_size;
	}
	free_names(names, n);
	return r;
}

/* The mark is on disk before the segments that told it go. */
static int retire_locked(int stream_fd, uint64_t *ret_bytes)
{
	struct hr_stream_state state = {0};
	struct hr__frame_entry last = {0};
	int r = hr_stream_state_read(stream_fd, &state);

	if (r < 0 && r != -ENOENT)
		return r;
	r = last_frame(stream_fd, &last);
	if (r == -ENODATA)
		return 0;
	if (r < 0)
		return r;
	state.retired = true;
	state.connected = false;
	state.mark = last.seq;
	r = hr_stream_state_write(stream_fd, &state, true);
	return r < 0 ? r : remove_segments(stream_fd, ret_bytes);
}

static int retire(int stream_fd, void *context)
{
	int lock, r = hr__stream_lock(stream_fd, &lock);

	if (r < 0)
		return r;
	r = retire_locked(stream_fd, context);
	close(lock);
	return r;
}

int hr__retire_job(int jobs_fd, const char *job, uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	return each_stream(jobs_fd, job, retire, ret_bytes);
}
