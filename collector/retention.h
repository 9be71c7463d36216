/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - removes old jobs from the store
 *
 * Purpose   By age: removes jobs without data for longer than that. By size: above it, removes jobs
 *           that have ended, the one with the oldest data first; if that is not enough, those that
 *           have been silent for an hour.
 * Owner     The server.
 * Threads   One of its own, which works once a minute (once an hour, where nothing is removed). A
 *           stream that ingest has open is locked, and its job stays.
 *
 * It removes segments. `state` stays with the stream's secret and mark, so that frames which a
 * daemon sends again are still recognized (hr_writer_open). Queries that have a segment open
 * continue to read it; others get a note that it was removed. Much later `state` is removed, too:
 * `forget_ms` after the last data of a stream that has ended, and `forget_ms` plus `age_ms` after
 * that of any other. The collector stores frames of a daemon that returns even later as new ones.
 */
#ifndef HEADRACE_COLLECTOR_RETENTION_H
#define HEADRACE_COLLECTOR_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hr_retention_config {
	const char *store;
	uint64_t age_ms;     /* 0: any */
	uint64_t size_bytes; /* 0: any */
	/* at least an hour passes before a job whose daemon has not reported its end is removed */
	uint64_t silent_ms;
	/* after which no daemon returns to a removed stream; 0: one always may */
	uint64_t forget_ms;
	uint64_t (*real_ns)(void);	 /* the wall clock; NULL: the real one */
	uint64_t (*written)(void *self); /* bytes stored so far; any thread; NULL: not known */
	void *self;
};

/* Removed jobs and bytes, and forgotten streams. */
struct hr_retention_result {
	unsigned jobs;
	uint64_t bytes;
	unsigned forgotten;
	uint64_t left_bytes; /* in the store */
};

/* One pass, in the caller's thread. -errno: the store cannot be read; *ret is valid anyway. */
int hr_retention_once(const struct hr_retention_config *config, struct hr_retention_result *ret);

struct hr_retention;

/* NULL in *ret if nothing is to be removed or forgotten. */
int hr_retention_start(const struct hr_retention_config *config, struct hr_retention **ret);

/* Uses new rules, and makes a pass at once. */
void hr_retention_change(struct hr_retention *r, uint64_t age_ms, uint64_t size_bytes,
			 uint64_t forget_ms);

/* The store's size: of the last pass, plus additions since. False: no pass yet. Accepts NULL. */
struct hr_retention_stats {
	uint64_t store_bytes;
	uint64_t removed_jobs, removed_bytes; /* since the start */
};
bool hr_retention_stats(struct hr_retention *r, struct hr_retention_stats *ret);
void hr_retention_stop(struct hr_retention *r); /* waits for the current job; accepts NULL */

#endif
