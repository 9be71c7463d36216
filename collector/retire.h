/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire.h - removes the segments of the streams of a job, and later the files `state`
 *
 * These functions read only the footers of sealed segments. They lock a stream before they change
 * it, so that no writer can open it.
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

/* Calls `visit` for the folder of each stream. Returns 0, or the first error. */
typedef int hr__visit_stream(const struct hr__retired_folder *f, void *context);
int hr__each_stream(int jobs_fd, const char *job, hr__visit_stream *visit, void *context);

/* Returns whether the stream has a StreamEnd, has no frames, or was closed by an operator. */
bool hr__stream_over(int stream_fd);

struct hr__retire_job {
	uint64_t bytes;
	uint64_t heard_ns; /* time of the latest data of all streams */
	bool in_use;	   /* a writer has opened one of the streams */
};

int hr__retire_inspect(int jobs_fd, const char *job, struct hr__retire_job *ret);

bool hr__retire_ended(int jobs_fd, const char *job);

/* Removes the segments. -EBUSY: a stream stays, because a writer has opened it. */
int hr__retire_job(int jobs_fd, const char *job, uint64_t now_ns, uint64_t *ret_bytes);

/*
 * Removes the folder of a stream without segments if its last data and its removal are older than
 * ended_before_ns or, for a stream without an end, silent_before_ns. Returns the number of removed
 * folders.
 */
unsigned hr__retire_forget(int jobs_fd, const char *job, uint64_t ended_before_ns,
			   uint64_t silent_before_ns);

#endif
