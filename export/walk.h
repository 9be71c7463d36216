/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - the processes, regions and operations of a job, for exporters
 *
 * A walk selects a part of a catalogue (store/store.h), which must outlive it. hr_walk_new sets
 * everything up; after that, the walk never changes, and threads may read different streams at the
 * same time.
 *
 *      hr_walk_streams --> one stream per node --> processes, and their windows of time
 *                              |
 *                              +--> hr_walk_regions: all regions of a thread, sorted
 *                              +--> hr_walk_events: operations, frame by frame
 *
 * All times are CLOCK_BOOTTIME of the stream's node, in ns; hr_stream_real_ns converts them.
 */
#ifndef HEADRACE_EXPORT_WALK_H
#define HEADRACE_EXPORT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/region.h"
#include "store/store.h"

/* What to select. */
struct hr_walk_options {
	const char *node;	       /* NULL: all nodes */
	int64_t rank;		       /* -1: all processes, also those without a rank */
	int scope;		       /* of operations: 0 data, 1 runtime; -1: both */
	int64_t from_ns, to_ns;	       /* wall clock; what overlaps this time */
	int64_t first_step, last_step; /* what overlaps these steps of a rank; -1: all steps */
};

/* A process of a stream. */
struct hr_walk_process {
	const struct hr_process *p;
	/*
	 * Numbers the selected processes of the walk from 1; 0: not selected. A process of an added
	 * stream has the number that it has in the recorded stream.
	 */
	uint32_t number;
	uint64_t from_ns, to_ns; /* only what overlaps this time is selected */
};

/* A region, sorted by process, thread, start, and then by end, the last one first. */
struct hr_walk_region {
	uint64_t proc; /* number of the process in the stream */
	uint32_t tid;
	uint32_t row;	/* in `frame` */
	uint32_t order; /* in which the regions of the stream were stored */
	uint64_t start_ns, end_ns;
	const Headrace__Regions *frame;
};

struct hr_walk_stream {
	const struct hr_stream *s;
	struct hr_walk_process *processes; /* one for each of s->processes, in the same order */
	struct hr_walk_region *regions;	   /* the selected regions */
	size_t n_regions;
	int scope;		/* as in the options */
	struct hr_arena memory; /* frames of the regions */
};

/* Whether operations of this scope (0 data, 1 runtime) are selected. */
static inline bool hr_walk_has_scope(const struct hr_walk_stream *s, uint32_t scope)
{
	return s->scope < 0 || (uint32_t)s->scope == scope;
}

struct hr_walk {
	struct hr_walk_stream *streams; /* in the order of the catalogue; added ones are last */
	size_t n_streams;
	uint32_t n_processes; /* the highest hr_walk_process.number */
	uint64_t damaged;     /* unreadable frames with regions */
};

/*
 * Selects a part of the catalogue, which has the streams of one job. Returns 0 or -ENOMEM;
 * -ENOENT: no process matches the options.
 */
int hr_walk_new(const struct hr_catalog *c, const struct hr_walk_options *options,
		struct hr_walk **ret);
void hr_walk_free(struct hr_walk *w); /* accepts NULL */

/* Converts a time to the wall clock. Times before 1970 become 0. */
static inline uint64_t hr_walk_real_ns(const struct hr_stream *s, uint64_t boot_ns)
{
	int64_t ns = hr_stream_real_ns(s, boot_ns);

	return ns > 0 ? (uint64_t)ns : 0;
}

/*
 * Writes "rank 3 worker 1". Without a rank, it begins with the name of the program, or `unknown`.
 * Returns the length.
 */
int hr_walk_process_name(const struct hr_process *p, const char *unknown, char *ret, size_t bytes);

/* Returns a process by its number in the stream. NULL: unknown. */
struct hr_walk_process *hr_walk_process(const struct hr_walk_stream *s, uint64_t proc);

/* Returns the regions of a thread. *ret_n: how many. */
const struct hr_walk_region *hr_walk_regions(const struct hr_walk_stream *s, uint64_t proc,
					     uint32_t tid, size_t *ret_n);

/* Returns text `number` of a region's frame, as bytes. NULL: no text. */
const ProtobufCBinaryData *hr_walk_text(const Headrace__Regions *frame, uint32_t number);

/* The selected operations of one frame. */
struct hr_walk_batch {
	struct hr_columns c;
	/* The selected rows: sorted by task, and in the order of completion within a task. */
	const uint32_t *rows;
	uint32_t n_rows;
	struct hr_walk_process *const *process; /* of each task */
};

/* Gets a batch, which is valid during the call. */
typedef int hr_walk_visit(void *self, const struct hr_walk_stream *ws,
			  const struct hr_walk_batch *b);

/*
 * Calls `visit` for each frame that has selected operations, until it does not return 0. `want`:
 * bits HR_COL_BIT(column) (common/batch.h). Unreadable frames are counted in *damaged, if it is not
 * NULL. Returns the last result of `visit`, 0 or -ENOMEM.
 */
int hr_walk_events(const struct hr_walk_stream *ws, uint32_t want, hr_walk_visit *visit, void *self,
		   uint64_t *damaged);

/* Whether a frame may have selected operations, by its index alone. */
bool hr_walk_has_events(const struct hr_walk_stream *s);

#endif
