/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - reading one segment, from a file or from memory
 *
 * Purpose   The only parser of segments: writer (recovery), catalogue and fuzzer all come here.
 * Owner     The caller owns source and index. A source may be read by many threads at once.
 * Trust     Nothing in a segment is believed: every length is checked against the size of the
 *           source when it was opened, and a file that shrinks meanwhile gives read errors, not
 *           faults (no mmap).
 */
#ifndef HEADRACE_STORE_SEGMENT_H
#define HEADRACE_STORE_SEGMENT_H

#include "store/index.h"

struct hr__source {
	int fd; /* used when `memory` is NULL */
	const uint8_t *memory;
	uint64_t bytes;
};

/* -ESTALE when the source ends early, or -errno. Retries short reads and EINTR. */
int hr__source_read(const struct hr__source *s, uint64_t offset, void *buf, size_t bytes);

/*
 * Reads, checks and unpacks one frame whose place is known; its memory is the allocator's (NULL:
 * malloc). -EBADMSG, -ENOMEM, or as hr__source_read.
 */
int hr__source_frame(const struct hr__source *s, uint64_t offset, uint32_t bytes,
		     ProtobufCAllocator *allocator, Headrace__Frame **ret);

/* 0; -EPROTONOSUPPORT; -EBADMSG no segment (or shorter than a header). */
int hr__segment_header(const struct hr__source *s, struct hr_segment_hdr *ret);

/*
 * Fills a zero `ix` from the footer. -ENODATA: the segment is not sealed. -EBADMSG: its footer is
 * damaged (scan instead). *ret_paths as hr__index_take.
 */
int hr__segment_footer(const struct hr__source *s, const struct hr_segment_hdr *h,
		       struct hr__index *ix, struct hr__frame_entry *ret_paths);

struct hr__scan_hole {
	uint64_t offset;
	uint64_t bytes;
};

/*
 * What a scan calls for each whole frame; the message is freed afterwards. Negative ends the scan.
 */
typedef int hr__scan_frame(void *context, uint64_t offset, uint32_t bytes,
			   const Headrace__Frame *msg);

struct hr__scan {
	struct hr__scan_hole *holes; /* damaged stretches with whole frames behind them; free() */
	size_t n_holes, holes_room;
	uint64_t end; /* behind the last whole frame */
};

/*
 * Walks all frames behind the header. At a damaged one it goes on with the next magic whose header
 * and CRC check out. What lies behind `end` is the tail: torn, or being written. 0, or what `frame`
 * returned, or a read error.
 */
int hr__segment_scan(const struct hr__source *s, hr__scan_frame *frame, void *context,
		     struct hr__scan *ret);

#endif
