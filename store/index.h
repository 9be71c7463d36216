/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - the index of a segment, so that its frames need not be read
 *
 * The writer builds the index frame by frame, and stores it as the footer. A reader loads the
 * footer, or scans a segment without footer. One thread builds an index; afterwards any number of
 * threads may use it.
 */
#ifndef HEADRACE_STORE_INDEX_H
#define HEADRACE_STORE_INDEX_H

#include "common/arena.h"
#include "store/store.h"

struct hr__path_row {
	uint64_t hash;
	uint32_t id;
	uint32_t frame; /* index in the frames of the segment */
	uint32_t row;
	uint32_t mount;
	uint8_t scope;
	bool has_text;
};

/* clang-format off */
#define HR__SEGMENT_MAGIC {'H', 'R', 'S', 'E', 'G', '\r', '\n', '\x1a'}
#define HR__TRAILER_MAGIC {'H', 'R', 'S', 'E', 'G', 'E', 'N', 'D'}
/* clang-format on */

struct hr_frame_entry {
	uint64_t offset;
	uint64_t seq; /* 0: an index frame. A copy of StreamStart has the seq of the frame before */
	uint32_t bytes;
	uint32_t kind;
};

struct hr_index {
	struct hr_frame_entry *frames;
	/* `frame` is an index in `frames`. Its ops and procs are in `memory`. */
	struct hr_batch_ref *batches;
	struct hr__path_row *paths;
	Headrace__Mount **mounts;
	size_t n_frames, n_batches, n_paths, n_mounts;
	size_t frames_room, batches_room, paths_room, mounts_room;
	uint64_t first_seq, last_seq; /* of frames of the stream; 0: the segment has none */
	uint64_t first_ns, last_ns;   /* start and end of the segment's events */
	uint64_t events;
	uint32_t max_file;
	size_t copied_bytes; /* size of batches and mounts, for hr__index_bytes */
	bool has_clock;
	Headrace__Clock clock; /* the last Clock sample */
	struct hr_arena memory;
};

/* Whether f is the copy of the stream's first frame with which every later segment begins. */
static inline bool hr__is_start_copy(const struct hr_frame_entry *f)
{
	return f->kind == HEADRACE__FRAME__BODY_STREAM_START && f->seq != 1;
}

void hr_index_done(struct hr_index *ix);

size_t hr__index_bytes(const struct hr_index *ix);

/* Adds the frame `msg`, which is stored at `offset`. Returns 0 or -ENOMEM. */
int hr__index_add(struct hr_index *ix, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg);

/* Parts of hr__index_add, for index_footer.c and files.c. Return 0 or -ENOMEM. */
int hr__index_frame(struct hr_index *ix, const struct hr_frame_entry *f);
int hr__index_path(struct hr_index *ix, const struct hr__path_row *row);
int hr__index_paths(struct hr_index *ix, const Headrace__Paths *paths); /* for the next frame */
int hr__index_mount(struct hr_index *ix, const Headrace__Mount *mount);
void hr__index_clock(struct hr_index *ix, const Headrace__Frame *msg);

/* Makes a footer for `offset`, malloc'ed: paths (if any), main frame, trailer. -ENOMEM, -E2BIG. */
int hr__index_pack(const struct hr_index *ix, uint64_t offset, uint8_t **ret_buf,
		   size_t *ret_bytes);

/*
 * Fills an empty `ix` from the main frame of a footer. *ret_paths: the frame that contains the
 * paths (offset 0: there is none). Does not trust the input: offsets must be in [header, limit),
 * and arrays must match. -EBADMSG, -ENOMEM.
 */
int hr__index_unpack(struct hr_index *ix, const Headrace__Frame *msg, uint64_t first_seq,
		     uint64_t limit, struct hr_frame_entry *ret_paths);

/* Adds the paths of the frame that hr__index_unpack returned in *ret_paths. -EBADMSG, -ENOMEM. */
int hr__index_unpack_paths(struct hr_index *ix, const Headrace__Frame *msg);

#endif
