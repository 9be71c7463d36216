/* SPDX-License-Identifier: Apache-2.0 */
/*
 * during.h - what a rank did of I/O during each region of some kinds: a step, an epoch, a wait for input
 *
 * Purpose   Regions of a rank cut its time at their starts and ends. What lies between two such points is
 *           added up for the rank: operations that began there, bytes, and for how long at least one was
 *           under way, of all of its processes and of its training threads alone. A region is the sum of
 *           what lies between its points, however regions nest or overlap. One pass over the events (busy.h),
 *           and no sort of them.
 * Threads   hr__during_new, hr__during_place, hr__during_sum: one. hr__during_ops: any number, side by side.
 *           hr__during_busy: one after the other.
 * Lifetime  Belongs to the struct hr_busy that it was given to.
 */
#ifndef HEADRACE_QUERY_INTERVALS_DURING_H
#define HEADRACE_QUERY_INTERVALS_DURING_H

#include "query/intervals/busy_internal.h"
#include "common/region.h"

/* What lies between two points; behind hr__during_sum: all that lies before the second. */
struct hr_during_sums {
	_Atomic uint64_t ops, bytes_read, bytes_written, io_ns;
	uint64_t busy_ns[2];   /* of the rank; of its training threads */
	uint64_t made_ns;      /* in which some worker of the rank was making a batch */
	uint64_t made_busy_ns; /* and the rank had an operation under way */
	int64_t makers; /* fetches that begin at the first point, less those that end there */
};

struct hr_during_row {
	uint32_t stream;
	uint32_t key; /* of its rank: hr_busy_keys */
	struct hr_region region;
	int64_t start_ns, end_ns; /* wall clock */
	size_t from, to;	  /* hr_during_sums of the key: the region is `to` less `from` */
};

struct hr_during;

struct hr_during_asked {
	uint32_t kinds; /* of regions: bits by number */
	int32_t rank;	/* of that rank alone, or HR_BUSY_ANY_RANK */
	bool made;	/* and what workers fetch meanwhile, for made_ns */
};

/* Reads the regions that are asked for. -ENOMEM. */
int hr__during_new(struct hr_query *q, const struct hr_during_asked *asked, struct hr_during **ret);
void hr__during_free(struct hr_during *d);

/* Lays the regions' points out, by the ranks of `keys`. -ENOMEM. */
int hr__during_place(struct hr_during *d, const struct hr_query *q,
		     const struct hr_busy_keys *keys);

/* Whether steps, epochs or waits for input are of this thread of a process that is no worker. */
bool hr__during_trains(const struct hr_during *d, uint32_t stream, const struct hr_task *task);

/* Rows [first, end) of a batch, of one task; classes: NULL, or HR_BUSY_NO_LANE of those that do not count. */
void hr__during_ops(struct hr_during *d, uint32_t key, const struct hr_columns *c,
		    uint64_t offset_ns, uint32_t first, uint32_t end, const uint8_t *classes);

/* Spans of a united list above `cut`; trains: of the training threads. */
void hr__during_busy(struct hr_during *d, uint32_t key, bool trains, const struct hr_span *spans,
		     size_t n, int64_t cut);

/* When all events were there. Afterwards rows say what they should. */
void hr__during_sum(struct hr_during *d);

size_t hr__during_rows(const struct hr_during *d, const struct hr_during_row **ret);
const struct hr_during_sums *hr__during_sums(const struct hr_during *d, uint32_t key);

#endif
