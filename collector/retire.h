/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire.h - removes the segments of a job's streams, and later the marks of the streams
 *
 * These functions read the footers of sealed segments, never their frames. While they change a
 * stream, they hold its lock, so that no writer can open it.
 */
#ifndef HEADRACE_COLLECTOR_RETIRE_H
#define HEADRACE_COLLECTOR_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

struct hr__retired_folder {
	int fd;
	int job_fd;
	const char *name;
};

/* Calls `visit` for each stream's folder. Returns 0, or the first error. */
typedef int hr__visit_stream(const struct hr__retired_folder *f, void *context);
int hr__each_stream(int jobs_fd, const char *job, hr__visit_stream *visit, void *context);

/* Returns whether the stream ended with a StreamEnd, has no frames, or was closed. */
bool hr__stream_over(int stream_fd);

struct hr__retire_job {
	uint64_t bytes;
	uint64_t heard_ns; /* time of the latest data or change of a segment */
	bool in_use;	   /* a writer has one of the streams open */
};

int hr__retire_inspect(int jobs_fd, const char *job, struct hr__retire_job *ret);

bool hr__retire_ended(int jobs_fd, const char *job);

/* Removes the segments. -EBUSY: a writer has opened one of the streams; this stream stays. */
int hr__retire_job(int jobs_fd, const char *job, uint64_t now_ns, uint64_t *ret_bytes);

/*
 * Removes the folders of streams without segments if the last data and the removal were before
 * `ended_before_ns` (ended streams) or `silent_before_ns` (others). Returns the number of removed
 * folders.
 */
unsigned hr__retire_forget(int jobs_fd, const char *job, uint64_t ended_before_ns,
			   uint64_t silent_before_ns);

#endif
