/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - removes old jobs from the store
 *
 * By age, it removes jobs that have received no data for age_ms. By size, it removes ended jobs with
 * the oldest data first, then jobs that have been silent for an hour. Its thread makes a pass every
 * minute, or every hour if it only forgets streams. Jobs with a stream open in ingest stay.
 *
 * `state` stays with the stream's secret and mark, so that repeated frames are still recognized
 * (hr_writer_open). Queries continue to read open segments; later queries print a note. `state` is
 * removed forget_ms after the last data of an ended stream, or forget_ms plus age_ms after that of
 * another stream. Frames that come even later are stored as new ones.
 */
#ifndef HEADRACE_COLLECTOR_RETENTION_H
#define HEADRACE_COLLECTOR_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hr_retention_config {
	const char *store;
	uint64_t age_ms;     /* 0: any */
	uint64_t size_bytes; /* 0: any */
	/* minimum silence before a job without an end is removed; at least an hour */
	uint64_t silent_ms;
	/* time after which no daemon returns to a removed stream; 0: no limit */
	uint64_t forget_ms;
	uint64_t (*real_ns)(void); /* the wall clock; NULL: the real one */
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
