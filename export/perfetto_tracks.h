/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_tracks.h - the tracks of a Perfetto trace, and the slices in them
 *
 * A thread has one track for its regions and operations, which nest. What does not nest gets a
 * further track (a lane) below the process: spans, asynchronous operations, and anything that
 * begins within a slice and ends after it. One thread.
 *
 * Slices of a track are written in the order of time, and so that an end comes before a begin of
 * the same moment, because Perfetto sorts by time and keeps the order of equal times.
 */
#ifndef HEADRACE_EXPORT_PERFETTO_TRACKS_H
#define HEADRACE_EXPORT_PERFETTO_TRACKS_H

#include "export/perfetto_packet.h"
#include "export/walk.h"

struct hr_tracks;

/* Writes a region as a slice, or as an instant. It sets everything but the times and the track. */
typedef void hr_tracks_region(void *self, const struct hr_walk_stream *ws,
			      const struct hr_walk_region *r, struct hr_slice *ret);

/*
 * `clock_ns` is subtracted from wall-clock times. `region` describes a region; it is called before
 * the slice is written. Returns 0 or -ENOMEM.
 */
int hr_tracks_new(struct hr_packets *packets, const struct hr_walk *w, int64_t clock_ns,
		  hr_tracks_region *region, void *self, struct hr_tracks **ret);
void hr_tracks_free(struct hr_tracks *t);

/* Returns the next unused id of a track. */
uint64_t hr_tracks_uuid(struct hr_tracks *t);

/* Returns the track of a process, which is written when it is first used. */
uint64_t hr_tracks_process(struct hr_tracks *t, const struct hr_walk_stream *ws,
			   const struct hr_walk_process *p);

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
