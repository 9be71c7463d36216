/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - sealed segments as files, for a spool (daemon/spool/spool.h)
 *
 * A spool sends, shrinks and removes segments while no writer has them open. The caller owns the
 * results, and holds the spool's lock while it changes segments. Any thread.
 */
#ifndef HEADRACE_STORE_SEGMENTS_H
#define HEADRACE_STORE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/frame.h"

struct hr_segment_file {
	uint32_t number;
	uint64_t bytes;
	int64_t time_ns; /* time of the last write, wall clock */
};

/* Lists the segments of a stream by number. *ret is malloc'ed; NULL: there are none. -errno. */
int hr_segments_list(int stream_dir_fd, struct hr_segment_file **ret, size_t *ret_n);

/* Writes the file name of a segment: "000012.seg". */
void hr_segment_name(uint32_t number, char ret[16]);

/* Reads the first seq from a segment's header. -EBADMSG: no segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_first_seq(int stream_dir_fd, uint32_t number, uint64_t *ret);

struct hr_segment_info {
	uint64_t first_seq; /* from the header; other segments have the earlier frames */
	uint64_t last_seq;  /* first_seq - 1: the segment has no frame */
	uint64_t kinds;	    /* bit i: the segment has a frame whose body is field i of Frame */
	bool sealed;
	bool damaged; /* the seq of a frame does not match its position */
};

/* Reads the footer; without one, all frames. -EBADMSG: not a segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_info(int stream_dir_fd, uint32_t number, struct hr_segment_info *ret);

/* Reads the first frame. Free it with headrace__frame__free_unpacked. -EBADMSG, -errno. */
int hr_segment_start(int stream_dir_fd, uint32_t number, Headrace__Frame **ret);

/* Returns a replacement (same seq and clock), which is valid until the next call, or NULL. */
typedef const Headrace__Frame *hr_segment_replace(void *context, const Headrace__Frame *msg);

/*
 * Rewrites a sealed segment with some frames replaced: writes a new file, and then renames it.
 * Programs that have the old file open continue to read it. After a crash, either the old file or
 * the new one is there. Keeps the file's time. *ret_bytes: the new size. Errors change nothing:
 * -EBADMSG: damaged; -ENOSPC... Do not use this for a segment that a writer has open.
 */
int hr_segment_rewrite(int stream_dir_fd, uint32_t number, hr_segment_replace *replace,
		       void *context, uint64_t *ret_bytes);

/* Removes the files of an interrupted hr_segment_rewrite. */
void hr_segments_sweep(int stream_dir_fd);

#endif
