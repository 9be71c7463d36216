/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/retire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/layout.h"
#include "store/segment.h"
#include "store/segments.h"
#include "store/stream_state.h"

int hr__each_stream(int jobs_fd, const char *job, hr__visit_stream *visit, void *context)
{
	int fd = hr_store_open_folder(jobs_fd, job), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		r = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while ((entry = readdir(dir)) != NULL) { // NOLINT(concurrency-mt-unsafe): own DIR
		struct hr__retired_folder f = {.job_fd = fd, .name = entry->d_name};
		int error;

		if (entry->d_name[0] == '.')
			continue;
		f.fd = hr_store_open_folder(fd, entry->d_name);
		if (f.fd < 0)
			continue;
		error = visit(&f, context);
		if (r == 0)
			r = error;
		close(f.fd);
	}
	closedir(dir);
	return r;
}

static int retire_inspect(const struct hr__retired_folder *f, void *context)
{
	struct hr__retire_job *job = context;
	struct hr_stream_state state;
	struct hr_segment_file *segments;
	size_t n;
	int r = hr_segments_list(f->fd, &segments, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		job->bytes += segments[i].bytes;
		if ((uint64_t)segments[i].time_ns > job->heard_ns)
			job->heard_ns = (uint64_t)segments[i].time_ns;
	}
	free(segments);
	if (hr_stream_state_read(f->fd, &state) == 0 && state.heard_ns > job->heard_ns)
		job->heard_ns = state.heard_ns;
	job->in_use |= hr_stream_locked(f->fd);
	return 0;
}

int hr__retire_inspect(int jobs_fd, const char *job, struct hr__retire_job *ret)
{
	*ret = (struct hr__retire_job){0};
	return hr__each_stream(jobs_fd, job, retire_inspect, ret);
}

/* Reads the index of a segment, from its footer or, without a footer, from its frames. */
static int index_of(int stream_fd, uint32_t number, struct hr_index *ix)
{
	struct hr_source source;
	struct hr_segment_hdr h;
	struct hr_frame_entry paths;
	struct hr_segment_places scan = {0};
	int r = hr_segment_open(stream_fd, number, O_RDONLY, &source);

	if (r < 0)
		return r;
	r = hr_segment_header(&source, &h);
	if (r == 0)
		r = hr_segment_footer(&source, &h, ix, &paths);
	if (r == -ENODATA || r == -EBADMSG) {
		hr_index_done(ix);
		r = hr_segment_scan(&source, hr_index_visit, ix, &scan);
		free(scan.holes);
	}
	close(source.fd);
	return r;
}

/* Finds the last frame of a stream. -ENODATA: the stream has no frames. */
static int last_frame(int stream_fd, struct hr_frame_entry *ret)
{
	struct hr_segment_file *segments;
	size_t n;
	int r = hr_segments_list(stream_fd, &segments, &n);

	if (r < 0)
		return r;
	for (r = -ENODATA; n > 0 && r == -ENODATA; n--) {
		struct hr_index ix = {0};

		r = index_of(stream_fd, segments[n - 1].number, &ix);
		if (r == 0)
			r = -ENODATA;
		for (size_t f = 0; r == -ENODATA && f < ix.n_frames; f++) {
			const struct hr_frame_entry *e = &ix.frames[ix.n_frames - 1 - f];

			if (e->seq == 0)
				continue;
			*ret = *e;
			r = 0;
		}
		hr_index_done(&ix);
	}
	free(segments);
	return r;
}

bool hr__stream_over(int stream_fd)
{
	struct hr_stream_state state;
	struct hr_frame_entry last;
	int r;

	if (hr_stream_state_read(stream_fd, &state) == 0 && state.closed_ns > 0)
		return true;
	r = last_frame(stream_fd, &last);
	return r == -ENODATA || (r == 0 && last.kind == HEADRACE__FRAME__BODY_STREAM_END);
}

static int check_over(const struct hr__retired_folder *f, void *context)
{
	bool *over = context;

	*over &= hr__stream_over(f->fd);
	return 0;
}

bool hr__retire_ended(int jobs_fd, const char *job)
{
	bool over = true;

	return hr__each_stream(jobs_fd, job, check_over, &over) == 0 && over;
}

/* Removes the oldest segment first, so that the last frame stays if the removal is interrupted. */
static int remove_segments(int stream_fd, uint64_t *ret_bytes)
{
	struct hr_segment_file *segments;
	size_t n;
	int r = hr_segments_list(stream_fd, &segments, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++) {
		char name[16];

		hr_segment_name(segments[i].number, name);
		if (unlinkat(stream_fd, name, 0) < 0)
			r = -errno;
		else
			*ret_bytes += segments[i].bytes;
	}
	free(segments);
	return r;
}

struct retiring {
	uint64_t now_ns;
	uint64_t bytes;
};

/* Stores the number of the last frame in the file `state`, then removes the segments. */
static int retire_locked(int stream_fd, struct retiring *what)
{
	struct hr_stream_state state = {0};
	struct hr_frame_entry last = {0};
	int r = hr_stream_state_read(stream_fd, &state);

	if (r < 0 && r != -ENOENT)
		return r;
	r = last_frame(stream_fd, &last);
	if (r == -ENODATA)
		return 0;
	if (r < 0)
		return r;
	/*
	 * A retired stream that continued without new data has one frame, a copy of its
	 * StreamStart. This frame does not show whether the stream has ended.
	 */
	if (last.kind != HEADRACE__FRAME__BODY_STREAM_START)
		state.ended = last.kind == HEADRACE__FRAME__BODY_STREAM_END;
	state.retired = true;
	state.retired_ns = what->now_ns;
	state.connected = false;
	state.mark = last.seq;
	r = hr_stream_state_write(stream_fd, &state, true);
	return r < 0 ? r : remove_segments(stream_fd, &what->bytes);
}

static int retire(const struct hr__retired_folder *f, void *context)
{
	int lock, r = hr_stream_lock(f->fd, &lock);

	if (r < 0)
		return r;
	r = retire_locked(f->fd, context);
	close(lock);
	return r;
}

int hr__retire_job(int jobs_fd, const char *job, uint64_t now_ns, uint64_t *ret_bytes)
{
	struct retiring what = {.now_ns = now_ns};
	int r = hr__each_stream(jobs_fd, job, retire, &what);

	*ret_bytes = what.bytes;
	return r;
}

struct forgetting {
	uint64_t ended_before_ns, silent_before_ns;
	unsigned n;
};

static int is_something(const struct dirent *entry)
{
	static const char *const nothing[] = {".", "..", HR__LOCK_FILE, HR_STREAM_STATE_FILE,
					      HR_STREAM_STATE_NEW_FILE};

	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
		if (strcmp(entry->d_name, nothing[i]) == 0)
			return 0;
	return 1;
}

/* Returns whether only `state` is left, and no daemon needs this file. */
static bool may_be_forgotten(int stream_fd, const struct forgetting *when)
{
	struct hr_stream_state state = {0};
	struct dirent **names;
	struct stat st;
	uint64_t last_ns;
	int n = scandirat(stream_fd, ".", &names, is_something, NULL), r;

	if (n < 0 || fstat(stream_fd, &st) < 0)
		return false;
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (n > 0)
		return false;
	r = hr_stream_state_read(stream_fd, &state);
	if (r < 0 && r != -ENOENT)
		return false;
	last_ns = state.heard_ns > state.retired_ns ? state.heard_ns : state.retired_ns;
	/* an interrupted writer or retire_forget() leaves no `state` */
	if (r == -ENOENT)
		last_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return last_ns < (state.ended ? when->ended_before_ns : when->silent_before_ns);
}

/* Removes the folder. A writer that opens the stream at the same time makes a new one. */
static int retire_forget(const struct hr__retired_folder *f, void *context)
{
	struct forgetting *when = context;
	int lock;

	if (!may_be_forgotten(f->fd, when) || hr_stream_lock(f->fd, &lock) < 0)
		return 0;
	if (may_be_forgotten(f->fd, when)) {
		(void)unlinkat(f->fd, HR_STREAM_STATE_NEW_FILE, 0);
		(void)unlinkat(f->fd, HR_STREAM_STATE_FILE, 0);
		(void)unlinkat(f->fd, HR__LOCK_FILE, 0);
		when->n += unlinkat(f->job_fd, f->name, AT_REMOVEDIR) == 0;
	}
	close(lock);
	return 0;
}

unsigned hr__retire_forget(int jobs_fd, const char *job, uint64_t ended_before_ns,
			   uint64_t silent_before_ns)
{
	struct forgetting when = {.ended_before_ns = ended_before_ns,
				  .silent_before_ns = silent_before_ns};

	(void)hr__each_stream(jobs_fd, job, retire_forget, &when);
	if (when.n > 0)
		(void)unlinkat(jobs_fd, job, AT_REMOVEDIR); /* fails if the job has other streams */
	return when.n;
}
