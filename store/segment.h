/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - reading one segment, from a file or from memory
 *
 * This is the only parser of segments, for recovery by the writer, for the catalogue and for fuzz
 * targets. The caller owns source and index. Many threads may read a source at once. The content is
 * not trusted: lengths are checked against the size that the source had when it was opened. If a
 * file shrinks later, reads return errors and cause no faults, because the file is not mapped.
 */
#ifndef HEADRACE_STORE_SEGMENT_H
#define HEADRACE_STORE_SEGMENT_H

#include "store/index.h"

struct hr_source {
	int fd; /* only used if `memory` is NULL */
	const uint8_t *memory;
	uint64_t bytes;
};

/* Opens a segment of a stream. `flags`: O_RDONLY or O_RDWR. The caller closes ret->fd. */
int hr_segment_open(int dir_fd, uint32_t number, int flags, struct hr_source *ret);

/* Reads bytes. Repeats interrupted and short reads. -ESTALE: the source ends; other -errno. */
int hr__source_read(const struct hr_source *s, uint64_t offset, void *buf, size_t bytes);

/* Reads a checked frame into memory of `allocator` (NULL: malloc). -EBADMSG, -ENOMEM, -errno. */
int hr__source_frame(const struct hr_source *s, uint64_t offset, uint32_t bytes,
		     ProtobufCAllocator *allocator, Headrace__Frame **ret);

/* Reads the header. -EPROTONOSUPPORT. -EBADMSG: not a segment, or shorter than a header. */
int hr_segment_header(const struct hr_source *s, struct hr_segment_hdr *ret);

/*
 * Fills `ix`, which must be empty. -ENODATA: the segment is not sealed. -EBADMSG: the footer is
 * damaged, so scan the segment. *ret_paths: see hr__index_unpack.
 */
int hr_segment_footer(const struct hr_source *s, const struct hr_segment_hdr *h,
		      struct hr_index *ix, struct hr_frame_entry *ret_paths);

struct hr__scan_hole {
	uint64_t offset;
	uint64_t bytes;
};

/* A function for each whole frame, which is freed afterwards. A negative result ends the scan. */
typedef int hr__scan_frame(void *context, uint64_t offset, uint32_t bytes,
			   const Headrace__Frame *msg);

struct hr_segment_places {
	struct hr__scan_hole *holes; /* damaged parts that whole frames follow; free() */
	size_t n_holes, holes_room;
	uint64_t end; /* end of the last whole frame */
};

/*
 * Visits all frames. After a damaged frame, continues at the next magic with a good header and CRC.
 * The bytes after `end` are the tail: the segment is torn, or a writer is writing. Returns 0, the
 * result of `frame`, or a read error.
 */
int hr_segment_scan(const struct hr_source *s, hr__scan_frame *frame, void *context,
		    struct hr_segment_places *ret);

/* A hr__scan_frame that adds each frame to a struct hr_index, except the frames of a footer. */
hr__scan_frame hr_index_visit;

#endif
