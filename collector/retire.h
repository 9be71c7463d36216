/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire.h - removes the segments of a job's streams, and later their marks
 *
 * Purpose   What retention does to a job, and what it must know about it before. It reads folders
 *           and last footers, never frames of a sealed segment.
 * Owner     Nothing is kept; descriptors are the caller's.
 * Threads   Retention's. It holds a stream's lock, which keeps writers out.
 */
#ifndef HEADRACE_COLLECTOR_RETIRE_H
#define HEADRACE_COLLECTOR_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

/* A folder of a stream, during a visit. */
struct hr__stream_folder {
	int fd;
	int job_fd;
	const char *name;
};

/* Calls `visit` for each folder of streams in a job. 0, or the first error. */
typedef int hr__visit_stream(const struct hr__stream_folder *f, void *context);
int hr__each_stream(int jobs_fd, const char *job, hr__visit_stream *visit, void *context);

/* Whether the stream ended with a StreamEnd, has no frames, or was closed. */
bool hr__stream_over(int stream_fd);

struct hr__retire_job {
	uint64_t bytes;	   /* of segments */
	uint64_t heard_ns; /* the latest data of any stream, or change of a segment */
	bool in_use;	   /* a writer has one of them open */
};

int hr__retire_inspect(int jobs_fd, const char *job, struct hr__retire_job *ret);

/* Whether all of its streams are over. */
bool hr__retire_ended(int jobs_fd, const char *job);

/* Removes the segments of all its streams. -EBUSY: a writer has opened a stream, which stays. */
int hr__retire_job(int jobs_fd, const char *job, uint64_t now_ns, uint64_t *ret_bytes);

/*
 * Removes the folders of its streams without segments whose last data, or removal, is older: one
 * limit for ended streams, one for others. Returns how many.
 */
unsigned hr__retire_forget(int jobs_fd, const char *job, uint64_t ended_before_ns,
			   uint64_t silent_before_ns);

#endif
