/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - old jobs leave the store
 *
 * Purpose   By age: jobs of which nothing was heard for longer. By size: over it, jobs that have ended go, the one that was heard
 *           of first goes first; if that is not enough, those that have been silent for an hour.
 * Owner     The server.
 * Threads   One of its own, which works once a minute (once an hour, where nothing is removed). A stream that ingest has open is locked, and its job stays.
 *
 * What goes are segments. `state` stays with the stream's secret and mark, so that what a daemon sends again is still known, and what
 * is new is still new (hr_writer_open). Queries that have a segment open read on; others see that it has gone. Much later `state`
 * goes, too: `forget_ms` after the last sign of a stream that had ended, and that much and `age_ms` after that of any other. A daemon
 * that comes back even later is a new one, and what it sends is stored like anything new.
 */
#ifndef HEADRACE_COLLECTOR_RETENTION_H
#define HEADRACE_COLLECTOR_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hr_retention_config {
	const char *store;
	uint64_t age_ms;     /* 0: any */
	uint64_t size_bytes; /* 0: any */
	/* at least an hour is waited for a daemon that does not say that its job ended */
	uint64_t silent_ms;
	/* after which nobody comes back to a stream that was removed; 0: somebody may always */
	uint64_t forget_ms;
	uint64_t (*real_ns)(void); /* the wall clock; NULL: the real one */
	uint64_t (*written)(
	    void *self); /* bytes that came into the store so far; any thread; NULL: not known */
	void *self;
};

/* Jobs and bytes that left, and streams of which nothing is left. */
struct hr_retention_result {
	unsigned jobs;
	uint64_t bytes;
	unsigned forgotten;
	uint64_t left_bytes; /* in the store */
};

/* One look at the store, by the caller's thread. -errno: it cannot be read; what has gone until then is in *ret. */
int hr_retention_once(const struct hr_retention_config *config, struct hr_retention_result *ret);

struct hr_retention;

/* Nothing is to be removed or forgotten: NULL in *ret. */
int hr_retention_start(const struct hr_retention_config *config, struct hr_retention **ret);

/* Looks at once, by the new rules. */
void hr_retention_change(struct hr_retention *r, uint64_t age_ms, uint64_t size_bytes,
			 uint64_t forget_ms);

/* What is in the store by now: of the last look, and what has come since. False: there was none. Accepts NULL. */
struct hr_retention_stats {
	uint64_t store_bytes;
	uint64_t removed_jobs, removed_bytes; /* since the start */
};
bool hr_retention_stats(struct hr_retention *r, struct hr_retention_stats *ret);
void hr_retention_stop(struct hr_retention *r); /* waits for the job at hand; accepts NULL */

#endif
