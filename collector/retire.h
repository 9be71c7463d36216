/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire.h - removes the segments of a job's streams, and later their marks
 *
 * Reads footers, never frames of sealed segments. Holds a stream's lock against writers.
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

/* Calls `visit` for each stream's folder. 0, or the first error. */
typedef int hr__visit_stream(const struct hr__retired_folder *f, void *context);
int hr__each_stream(int jobs_fd, const char *job, hr__visit_stream *visit, void *context);

/* Whether the stream ended with a StreamEnd, has no frames, or was closed. */
bool hr__stream_over(int stream_fd);

struct hr__retire_job {
	uint64_t bytes;
	uint64_t heard_ns; /* time of the latest data or change of a segment */
	bool in_use;	   /* a writer has one of them open */
};

int hr__retire_inspect(int jobs_fd, const char *job, struct hr__retire_job *ret);

bool hr__retire_ended(int jobs_fd, const char *job);

/* -EBUSY: a writer has opened one of the streams, which stays. */
int hr__retire_job(int jobs_fd, const char *job, uint64_t now_ns, uint64_t *ret_bytes);

/*
 * Removes folders without segments whose last data or removal was before the limit for ended
 * streams, or that for others. Returns how many.
 */
unsigned hr__retire_forget(int jobs_fd, const char *job, uint64_t ended_before_ns,
			   uint64_t silent_before_ns);

#endif
