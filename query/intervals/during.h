/* SPDX-License-Identifier: Apache-2.0 */
/*
 * during.h - the I/O of a rank during each region of some kinds: a step, an epoch, an input wait
 *
 * The starts and ends of a rank's regions are points that divide its time into pieces:
 *
 *      step           |-------------------|
 *      input wait         |-----|
 *      sums         0 | 1 |  2  |    3    | 4       of the step: 1 + 2 + 3; of the wait: 2
 *
 * One pass over the events (busy.h) adds up, for each piece, the operations of the rank's processes
 * that begin in it, their bytes, and the time with an operation under way. So regions may nest or
 * overlap.
 *
 * Threads   hr__during_ops: any number at once. hr__during_busy: one at a time. Others: one thread.
 * Owner     The struct hr_busy that receives a struct hr_during owns it.
 */
#ifndef HEADRACE_QUERY_INTERVALS_DURING_H
#define HEADRACE_QUERY_INTERVALS_DURING_H

#include "query/intervals/busy_internal.h"
#include "common/region.h"

/* The sums between two points. hr__during_sum adds all earlier ones to each. */
struct hr_during_sums {
	_Atomic uint64_t ops, bytes_read, bytes_written, io_ns;
	uint64_t busy_ns; /* time with an operation under way */
};

struct hr_during_row {
	uint32_t stream;
	uint32_t key; /* index in hr_busy_keys of the region's rank */
	struct hr_region region;
	int64_t start_ns, end_ns; /* wall clock */
	/* Indexes in hr__during_sums(): the region's I/O is sums[to] - sums[from]. */
	size_t from, to;
};

struct hr_during;

/*
 * Reads the regions of some kinds (bits 1 << kind) of a rank, or of HR_BUSY_ANY_RANK. Returns 0 or
 * -ENOMEM.
 */
int hr__during_new(struct hr_query *q, uint32_t kinds, int32_t rank, struct hr_during **ret);
void hr__during_free(struct hr_during *d);

/* Makes the points. Call it before any event is added. Returns 0 or -ENOMEM. */
int hr__during_place(struct hr_during *d, const struct hr_query *q,
		     const struct hr_busy_keys *keys);

/* Adds the operations [first, end) of one task, except those with HR_BUSY_NO_LANE in `classes`. */
void hr__during_ops(struct hr_during *d, uint32_t key, const struct hr_columns *c,
		    uint64_t offset_ns, uint32_t first, uint32_t end, const uint8_t *classes);

/* Adds the time of united spans after `cut`. */
void hr__during_busy(struct hr_during *d, uint32_t key, const struct hr_span *spans, size_t n,
		     int64_t cut);

/* Makes the final sums. Call it once, when all events were added. */
void hr__during_sum(struct hr_during *d);

size_t hr__during_rows(const struct hr_during *d, const struct hr_during_row **ret);
const struct hr_during_sums *hr__during_sums(const struct hr_during *d, uint32_t key);

#endif
