/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - removes old jobs from the store
 *
 * A thread makes a pass every minute, or every hour if it only removes marks. A pass removes:
 *
 *   by age    jobs without new data for age_ms
 *   by size   jobs with the oldest data, until the store has at most size_bytes: first ended jobs,
 *             then jobs without new data for silent_ms
 *   marks     the file `state` of a removed stream, forget_ms after its last data and its removal;
 *             if the stream did not end, age_ms + forget_ms after them
 *
 * A job stays while ingest has one of its streams open. Of a removed job, the file `state` of each
 * stream remains, with the secret and the mark (the number of the last frame), so that repeated
 * frames are recognized (hr_writer_open). Once `state` is removed, such frames begin a new stream.
 * Running queries continue, and later queries print a note.
 */
#ifndef HEADRACE_COLLECTOR_RETENTION_H
#define HEADRACE_COLLECTOR_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hr_retention_config {
	const char *store;
	uint64_t age_ms;     /* 0: no limit */
	uint64_t size_bytes; /* 0: no limit */
	/*
	 * a job that has not ended may be removed by size after this time without new data; at
	 * least an hour
	 */
	uint64_t silent_ms;
	/* 0: marks stay */
	uint64_t forget_ms;
	uint64_t (*real_ns)(void); /* NULL: the real wall clock */
	/* returns the bytes stored so far; any thread may call it; NULL: unknown */
	uint64_t (*written)(void *self);
	void *self;
};

struct hr_retention_result {
	unsigned jobs;
	uint64_t bytes;
	unsigned forgotten;
	uint64_t left_bytes;
};

/*
 * Makes one pass in the caller's thread. Returns -errno if the store cannot be read; *ret is valid
 * anyway.
 */
int hr_retention_once(const struct hr_retention_config *config, struct hr_retention_result *ret);

struct hr_retention;

/* Starts the thread. Sets *ret to NULL if the configuration never removes anything. */
int hr_retention_start(const struct hr_retention_config *config, struct hr_retention **ret);

/* Uses new rules, and makes a pass at once. */
void hr_retention_change(struct hr_retention *r, uint64_t age_ms, uint64_t size_bytes,
			 uint64_t forget_ms);

struct hr_retention_stats {
	uint64_t store_bytes; /* size at the last pass, plus the bytes that were written since */
	uint64_t removed_jobs, removed_bytes;
};
/* Returns false before the first pass. Accepts NULL. */
bool hr_retention_stats(struct hr_retention *r, struct hr_retention_stats *ret);
void hr_retention_stop(struct hr_retention *r); /* waits for the current pass; accepts NULL */

#endif
