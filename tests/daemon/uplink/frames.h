/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - frames whose number says what is in them, and a spool that is filled with such
 *
 * Frame `seq` holds `seq` operations (events, rollups) or 1 + seq % 7 file records, so that what is missing can be counted.
 */
#ifndef HEADRACE_TESTS_UPLINK_FRAMES_H
#define HEADRACE_TESTS_UPLINK_FRAMES_H

#include <stdbool.h>

#include "daemon/spool/spool.h"
#include "tests/unit.h"

enum frame_kind { FRAME_EVENTS, FRAME_FILES, FRAME_ROLLUPS, FRAME_NAMES, FRAME_ALONE, FRAME_END };

struct hr_stream_id frame_stream(const char *job, uint64_t instance);

/*
 * Makes room, appends the writer's next frame (about `bytes` long, incompressible), and reports it
 * to the spool. Returns 0 or -ENOSPC.
 */
int frame_append(struct hr_spool *s, struct hr_writer *w, enum frame_kind kind, size_t bytes);

/* A fresh folder "<tmp>/spool" in *state; teardown removes it. */
int frame_setup(void **state);
int frame_teardown(void **state);

/* Bytes of all segments below `folder`. */
uint64_t frame_disk_bytes(const char *folder);

struct frame_sums {
	uint64_t frames, events, files, rollups;       /* that are there: operations, rows */
	uint64_t spool_full, files_full, rollups_full; /* counts of the losses */
	uint64_t spool_full_bytes, rollups_full_bytes;
	uint64_t n_events, n_files, n_rollups, n_names, n_losses; /* frames */
	uint64_t first_seq, last_seq, first_event;		  /* seqs; 0: none */
	bool ended;
};

/*
 * Of the stores together, one job. Each frame must be what its number says, or the Loss of that. Insists that there are no
 * problems and no gap, from the first frame that there is.
 */
void frame_sum(const char *const *stores, size_t n, const char *job, struct frame_sums *ret);

#endif
