/* SPDX-License-Identifier: Apache-2.0 */
/*
 * during.h - the I/O of a rank during each region of some kinds: a step, an epoch, an input wait
 *
 * Purpose   The starts and ends of a rank's regions divide its time. For the time between two such
 *           points, the rank's operations that began there, their bytes and the time in which at
 *           least one was under way are added up: for all of its processes, and for its training
 *           threads alone. A region is the sum between its two points, however regions nest or
 *           overlap. One pass over the events (busy.h), and no sort of them.
 * Threads   hr__during_new, hr__during_place, hr__during_sum: one. hr__during_ops: any number in
 *           parallel. hr__during_busy: one at a time.
 * Lifetime  Belongs to the struct hr_busy that it was given to.
 */
#ifndef HEADRACE_QUERY_INTERVALS_DURING_H
#define HEADRACE_QUERY_INTERVALS_DURING_H

#include "query/intervals/busy_internal.h"
#include "common/region.h"

/* Sums between two points; after hr__during_sum: of all time before the second point. */
struct hr_during_sums {
	_Atomic uint64_t ops, bytes_read, bytes_written, io_ns;
	uint64_t busy_ns[2];   /* of the rank; of its training threads */
	uint64_t made_ns;      /* time in which some worker of the rank made a batch */
	uint64_t made_busy_ns; /* the part of it in which the rank had an operation under way */
	int64_t makers; /* fetches that begin at the first point, minus those that end there */
};

struct hr_during_row {
	uint32_t stream;
	uint32_t key; /* of its rank: hr_busy_keys */
	struct hr_region region;
	int64_t start_ns, end_ns; /* wall clock */
	size_t from, to;	  /* hr_during_sums of the key: the region is `to` minus `from` */
};

struct hr_during;

struct hr_during_args {
	uint32_t kinds; /* of regions: bits by number */
	int32_t rank;	/* only of that rank, or HR_BUSY_ANY_RANK */
	bool made;	/* read what workers fetch meanwhile, for made_ns */
};

/* Reads the requested regions. -ENOMEM. */
int hr__during_new(struct hr_query *q, const struct hr_during_args *args, struct hr_during **ret);
void hr__during_free(struct hr_during *d);

/* Computes the points of the regions, by the ranks of `keys`. -ENOMEM. */
int hr__during_place(struct hr_during *d, const struct hr_query *q,
		     const struct hr_busy_keys *keys);

/* Whether the thread has steps, epochs or input waits, and its process is no worker. */
bool hr__during_trains(const struct hr_during *d, uint32_t stream, const struct hr_task *task);

/* Adds rows [first, end), all of one task. classes: NULL, or HR_BUSY_NO_LANE where excluded. */
void hr__during_ops(struct hr_during *d, uint32_t key, const struct hr_columns *c,
		    uint64_t offset_ns, uint32_t first, uint32_t end, const uint8_t *classes);

/* Adds up spans of a united list above `cut`. trains: they are of the training threads. */
void hr__during_busy(struct hr_during *d, uint32_t key, bool trains, const struct hr_span *spans,
		     size_t n, int64_t cut);

/* Call it after all events were added. Rows are complete then. */
void hr__during_sum(struct hr_during *d);

size_t hr__during_rows(const struct hr_during *d, const struct hr_during_row **ret);
const struct hr_during_sums *hr__during_sums(const struct hr_during *d, uint32_t key);

#endif
