/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - removes old jobs from the store
 *
 * A thread makes a pass every minute, or every hour if it only removes `state`. A pass removes:
 *
 *   by age    jobs without new data for age_ms
 *   by size   jobs with the oldest data, until the store has at most size_bytes: first ended jobs,
 *             then jobs without new data for silent_ms
 *   `state`   this file of a removed stream, forget_ms after its last data and its removal or, if
 *             the stream has no end, after age_ms + forget_ms
 *
 * A job stays while ingest has opened one of its streams. A removed stream keeps the file `state`
 * with its secret and the number of its last frame, so that repeated frames are recognized
 * (hr_writer_open). Without `state`, they would begin a new stream. Running queries continue, and
 * later queries print a note.
 */
#ifndef HEADRACE_COLLECTOR_RETENTION_H
#define HEADRACE_COLLECTOR_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hr_retention_config {
	const char *store;
	uint64_t age_ms;     /* 0: no limit */
	uint64_t size_bytes; /* 0: no limit */
	/* Removal by size keeps a job without an end so long after its last data; at least 1 h. */
	uint64_t silent_ms;
	/* 0: files `state` stay */
	uint64_t forget_ms;
	uint64_t (*real_ns)(void); /* returns the wall clock; NULL: the real one */
	/* returns the number of bytes stored so far (NULL: unknown); any thread may call it */
	uint64_t (*written)(void *self);
	void *self;
};

struct hr_retention_result {
	unsigned jobs;
	uint64_t bytes;
	unsigned forgotten;
	uint64_t left_bytes;
};

/* Makes one pass. Returns 0, or -errno if the store cannot be read. *ret is always valid. */
int hr_retention_once(const struct hr_retention_config *config, struct hr_retention_result *ret);

struct hr_retention;

/* Starts the thread. *ret is NULL if the configuration removes nothing. */
int hr_retention_start(const struct hr_retention_config *config, struct hr_retention **ret);

/* Sets new limits, and starts a pass at once. */
void hr_retention_change(struct hr_retention *r, uint64_t age_ms, uint64_t size_bytes,
			 uint64_t forget_ms);

struct hr_retention_stats {
	uint64_t store_bytes; /* size at the last pass, plus bytes written since then */
	uint64_t removed_jobs, removed_bytes;
};
/* Returns false if no pass has ended yet. Accepts NULL. */
bool hr_retention_stats(struct hr_retention *r, struct hr_retention_stats *ret);
void hr_retention_stop(struct hr_retention *r); /* waits for the end of a pass; accepts NULL */

#endif
