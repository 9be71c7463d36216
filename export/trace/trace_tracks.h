/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_tracks.h - the tracks of a trace, and the slices in them
 *
 * A thread has one track for its regions and operations, which nest. What does not nest gets a
 * further track (a lane) below the process: spans, asynchronous operations, and anything that
 * begins within a slice and ends after it. One thread.
 *
 * Slices of a track are written in the order of time, and so that an end comes before a begin of
 * the same moment, because viewers sort by time and keep the order of equal times.
 */
#ifndef HEADRACE_EXPORT_TRACE_TRACKS_H
#define HEADRACE_EXPORT_TRACE_TRACKS_H

#include "export/trace/trace_out.h"
#include "export/walk.h"

struct hr_tracks;

/* Describes a region: sets everything but times and track. Without a name, it is left out. */
typedef void hr_tracks_region(void *self, const struct hr_walk_region *r, struct hr_slice *ret);

/*
 * `clock_ns` is subtracted from wall-clock times. Returns 0 or -ENOMEM.
 */
int hr_tracks_new(struct hr_trace_out *out, const struct hr_walk *w, int64_t clock_ns,
		  hr_tracks_region *region, void *self, struct hr_tracks **ret);
void hr_tracks_free(struct hr_tracks *t);

/*
 * Writes a track with the name and values of `track`, below the process `p` (NULL: none), and sets
 * its other members.
 */
void hr_tracks_add_track(struct hr_tracks *t, const struct hr_walk_stream *ws,
			 const struct hr_walk_process *p, struct hr_track *track);

/* Converts a time of the stream's node to a time of the trace. */
uint64_t hr_tracks_ns(const struct hr_tracks *t, const struct hr_stream *s, uint64_t boot_ns);

/*
 * Writes an operation of a thread, after the regions that begin before it. `slice` has everything
 * but times and track. Operations of a thread come in the order of their ends. Returns 0 or
 * -ENOMEM.
 */
struct hr_tracks_event {
	const struct hr_walk_stream *ws;
	const struct hr_walk_process *p;
	uint32_t tid;
	uint64_t start_ns, end_ns; /* boot clock of the node */
	bool async;		   /* it does not belong to a call of its thread */
};
int hr_tracks_add(struct hr_tracks *t, const struct hr_tracks_event *e, struct hr_slice *slice);

/* Writes the rest: regions that no operation follows. Call it after the events of a stream. */
int hr_tracks_end_stream(struct hr_tracks *t, const struct hr_walk_stream *ws);

#endif
