/* SPDX-License-Identifier: Apache-2.0 */
/*
 * during.h - the I/O of a rank during each region of some kinds: a step, an epoch, an input wait
 *
 * Starts and ends of a rank's regions are points that divide its time. For the time between two
 * points, these are added up: operations that began then, their bytes, and the time with an
 * operation under way; for all processes of the rank, and for its training threads alone. A region
 * is the sum between its two points, even if regions nest or overlap. One pass over the events
 * (busy.h).
 *
 * Any number of threads call hr__during_ops; one at a time hr__during_busy; one thread the others.
 * The struct hr_busy that receives a struct hr_during owns it.
 */
#ifndef HEADRACE_QUERY_INTERVALS_DURING_H
#define HEADRACE_QUERY_INTERVALS_DURING_H

#include "query/intervals/busy_internal.h"
#include "common/region.h"

/* Sums between two points; after hr__during_sum, of all time before the second point. */
struct hr_during_sums {
	_Atomic uint64_t ops, bytes_read, bytes_written, io_ns;
	uint64_t busy_ns[2];   /* of the rank; of its training threads */
	uint64_t made_ns;      /* time in which a worker of the rank made a batch */
	uint64_t made_busy_ns; /* the part of it in which the rank had an operation under way */
	int64_t makers; /* fetches that begin at the first point, minus fetches that end there */
};

struct hr_during_row {
	uint32_t stream;
	uint32_t key; /* of its rank, in hr_busy_keys */
	struct hr_region region;
	int64_t start_ns, end_ns; /* wall clock */
	size_t from, to; /* hr_during_sums of the key: a region's sum is `to` minus `from` */
};

struct hr_during;

struct hr_during_args {
	uint32_t kinds; /* of regions: bits by number */
	int32_t rank;	/* only of that rank, or HR_BUSY_ANY_RANK */
	bool made;	/* also read fetches of workers, for made_ns */
};

/* Reads the requested regions. -ENOMEM. */
int hr__during_new(struct hr_query *q, const struct hr_during_args *args, struct hr_during **ret);
void hr__during_free(struct hr_during *d);

/* Computes the points of the regions, for the ranks of `keys`. -ENOMEM. */
int hr__during_place(struct hr_during *d, const struct hr_query *q,
		     const struct hr_busy_keys *keys);

/* Whether the thread has steps, epochs or input waits, and its process is no worker. */
bool hr__during_trains(const struct hr_during *d, uint32_t stream, const struct hr_task *task);

/* Adds rows [first, end) of one task. classes: NULL, or HR_BUSY_NO_LANE for excluded rows. */
void hr__during_ops(struct hr_during *d, uint32_t key, const struct hr_columns *c,
		    uint64_t offset_ns, uint32_t first, uint32_t end, const uint8_t *classes);

/* Adds up spans of a united list above `cut`. trains: they belong to training threads. */
void hr__during_busy(struct hr_during *d, uint32_t key, bool trains, const struct hr_span *spans,
		     size_t n, int64_t cut);

/* Completes the rows, after all events were added. */
void hr__during_sum(struct hr_during *d);

size_t hr__during_rows(const struct hr_during *d, const struct hr_during_row **ret);
const struct hr_during_sums *hr__during_sums(const struct hr_during *d, uint32_t key);

#endif
