/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - removes old jobs from the store
 *
 * A thread makes a pass every minute, or every hour if it only forgets streams. A pass removes:
 *
 *   by age    jobs without new data for age_ms
 *   by size   jobs with the oldest data, until the store has at most size_bytes: first ended jobs,
 *             then jobs without new data for silent_ms
 *   marks     `state` of removed streams, forget_ms after their last data or removal; if the stream
 *             did not end, age_ms + forget_ms after it
 *
 * A job with a stream open in ingest stays. Of a removed job, `state` remains, with each stream's
 * secret and mark: repeated frames are recognized (hr_writer_open). Once `state` is removed, such
 * frames begin a new stream. Running queries continue; later ones print a note.
 */
#ifndef HEADRACE_COLLECTOR_RETENTION_H
#define HEADRACE_COLLECTOR_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hr_retention_config {
	const char *store;
	uint64_t age_ms;     /* 0: no limit */
	uint64_t size_bytes; /* 0: no limit */
	/* before a job without an end is removed by size; at least an hour */
	uint64_t silent_ms;
	/* 0: keeps marks */
	uint64_t forget_ms;
	uint64_t (*real_ns)(void); /* NULL: the real wall clock */
	/* bytes stored so far; called by any thread; NULL: unknown */
	uint64_t (*written)(void *self);
	void *self;
};

struct hr_retention_result {
	unsigned jobs;
	uint64_t bytes;
	unsigned forgotten;
	uint64_t left_bytes;
};

/* Makes one pass in the caller's thread. -errno: cannot read the store; *ret is valid anyway. */
int hr_retention_once(const struct hr_retention_config *config, struct hr_retention_result *ret);

struct hr_retention;

/* Sets *ret to NULL if nothing is to be removed or forgotten. */
int hr_retention_start(const struct hr_retention_config *config, struct hr_retention **ret);

/* Uses new rules, and makes a pass at once. */
void hr_retention_change(struct hr_retention *r, uint64_t age_ms, uint64_t size_bytes,
			 uint64_t forget_ms);

/* The store's size, estimated since the last pass. False before the first pass. Accepts NULL. */
struct hr_retention_stats {
	uint64_t store_bytes;
	uint64_t removed_jobs, removed_bytes;
};
bool hr_retention_stats(struct hr_retention *r, struct hr_retention_stats *ret);
void hr_retention_stop(struct hr_retention *r); /* waits for the current job; accepts NULL */

#endif
