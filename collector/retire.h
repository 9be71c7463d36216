/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire.h - one job's streams give up their segments and keep their marks, and later those
 *
 * Purpose   What retention does to a job, and what it has to know of it first. It reads folders and last footers, never frames.
 * Owner     Nothing is kept; descriptors are the caller's.
 * Threads   Retention's. A stream's lock keeps writers out while it is done.
 */
#ifndef HEADRACE_COLLECTOR_RETIRE_H
#define HEADRACE_COLLECTOR_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

/* A folder of a stream, while it is visited. */
struct hr__stream_folder {
	int fd;
	int job_fd;
	const char *name;
};

/* Calls `visit` for each folder of streams in a job. 0, or the first error. */
typedef int hr__visit_stream(const struct hr__stream_folder *f, void *context);
int hr__each_stream(int jobs_fd, const char *job, hr__visit_stream *visit, void *context);

/* Will nothing come any more: does its last segment end in a StreamEnd, has it none, or is it closed? */
bool hr__stream_over(int stream_fd);

struct hr__retire_job {
	uint64_t bytes;	   /* of segments */
	uint64_t heard_ns; /* latest sign of life of any stream, or change of a segment */
	bool in_use;	   /* a writer has one of them */
};

int hr__retire_look(int jobs_fd, const char *job, struct hr__retire_job *ret);

/* Is each of its streams over? */
bool hr__retire_ended(int jobs_fd, const char *job);

/*
 * Removes the segments of all its streams; *ret_bytes says how much. -EBUSY: a writer has come meanwhile, and that stream
 * stays.
 */
int hr__retire_job(int jobs_fd, const char *job, uint64_t now_ns, uint64_t *ret_bytes);

/*
 * Removes the folders of its streams that have no segments and were last heard of, or retired, before: those that were whole,
 * and those whose end never came. Returns how many.
 */
unsigned hr__retire_forget(int jobs_fd, const char *job, uint64_t ended_before_ns,
			   uint64_t silent_before_ns);

#endif
