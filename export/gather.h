/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.h - sums of all operations over time, and which operations are long enough to be drawn
 *
 * An export with a limit of size draws the longest operations and regions. The counters include
 * all of them. One thread.
 */
#ifndef HEADRACE_EXPORT_GATHER_H
#define HEADRACE_EXPORT_GATHER_H

#include "export/export.h"

/* The counters of a rank in a bin of time. */
struct hr_gather_bin {
	uint64_t read_bytes, written_bytes;
	uint64_t busy_ns; /* sum of the durations of operations */
	uint64_t wait_ns; /* of input waits */
};

struct hr_gather_rank {
	int32_t rank; /* -1: processes without a rank */
	const struct hr_walk_stream *stream;
	const struct hr_walk_process *first; /* the first process of the rank, in `stream` */
	bool waits;			     /* has input waits */
	struct hr_gather_bin *bins;
};

struct hr_gather {
	uint64_t from_ns, to_ns; /* wall clock: the first and last selected moment */
	uint64_t bin_ns;
	unsigned n_bins;
	struct hr_gather_rank *ranks;
	size_t n_ranks;
	bool counters;	   /* there are operations of level `counters` */
	uint32_t *rank_of; /* index in `ranks`, by the number of the process */
};

/* Finds the ranks and the times. Returns 0 or -ENOMEM. */
int hr_gather_init(struct hr_gather *g, const struct hr_walk *w);

/* Prepares the counters, with so many bins of time, at least 1. Returns 0 or -ENOMEM. */
int hr_gather_bins(struct hr_gather *g, unsigned n_bins);
void hr_gather_done(struct hr_gather *g);

enum hr_gather_kind { HR_GATHER_OTHER, HR_GATHER_READ, HR_GATHER_WRITE, HR_GATHER_WAIT };

/* Adds an operation or an input wait. Times are wall clock. */
void hr_gather_add(struct hr_gather *g, const struct hr_walk_process *p, enum hr_gather_kind kind,
		   uint64_t start_ns, uint64_t end_ns, uint64_t bytes);

/*
 * Adds the operations of level `counters` to the counters: the sums of each window of roll-ups are
 * spread evenly over it. A window that also has operations of level `trace` is left out, because
 * its sums include them. *damaged: counts unreadable frames, if not NULL. Returns 0 or -ENOMEM.
 */
int hr_gather_rollups(struct hr_gather *g, const struct hr_walk_stream *ws, uint64_t *damaged);

/* Which operations and regions an export with a limit of size has. All zero: all of them. */
struct hr_gather_limits {
	uint64_t events_ns, regions_ns; /* shorter ones are left out */
	uint64_t events_left_out, regions_left_out;
};

/* What the limit of size leaves for operations and regions, and what they need, in bytes. */
struct hr_gather_room {
	uint64_t events, regions;
	unsigned event_bytes, region_bytes; /* of a typical one */
	bool paths; /* each operation has the text of its path, in addition to event_bytes */
};

/*
 * Finds the shortest durations, so that the longer operations and regions have room. This pass over
 * all operations doubles the work of the export. Returns 0, -ENOMEM or -EINTR.
 */
int hr_gather_limits(struct hr_export *x, const struct hr_gather_room *room,
		     struct hr_gather_limits *ret);

/*
 * Returns a sentence about what is left out, which ends with `more` (malloc'ed), and reports it to
 * the user. NULL: nothing is left out, or no memory.
 */
char *hr_gather_left_out(const struct hr_export *x, const struct hr_gather_limits *l,
			 const char *more);

#endif
