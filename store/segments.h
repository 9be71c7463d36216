/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - sealed segments as files, for a spool (daemon/spool/spool.h)
 *
 * Purpose   A spool sends, shrinks and removes segments while no writer has them open.
 * Owner     The caller owns results, and holds the spool's lock while it changes segments.
 * Threads   Any, on the caller's memory.
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
	int64_t time_ns; /* last write, wall clock */
};

/* Lists the segments of a stream by number. *ret is malloc'ed; NULL: there are none. -errno. */
int hr_segments_list(int stream_dir_fd, struct hr_segment_file **ret, size_t *ret_n);

/* Writes the segment's name: "000012.seg". */
void hr_segment_name(uint32_t number, char ret[16]);

/* Reads the first seq from a segment's header. -EBADMSG: no segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_first_seq(int stream_dir_fd, uint32_t number, uint64_t *ret);

struct hr_segment_info {
	uint64_t first_seq; /* from the header; earlier frames are in other segments */
	uint64_t last_seq;  /* first_seq - 1: the segment has no frame yet */
	uint64_t kinds;	    /* bit i: the segment has a frame whose body is field i of Frame */
	bool sealed;
	bool damaged; /* the numbers of the frames do not match their positions */
};

/* Reads the footer; without one, all frames. -EBADMSG: no segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_info(int stream_dir_fd, uint32_t number, struct hr_segment_info *ret);

/* Reads the first frame. Free it with headrace__frame__free_unpacked. -EBADMSG, -errno. */
int hr_segment_start(int stream_dir_fd, uint32_t number, Headrace__Frame **ret);

/* Returns a replacement (same seq and clock, valid until the next call), or NULL: keep `msg`. */
typedef const Headrace__Frame *hr_segment_replace(void *context, const Headrace__Frame *msg);

/*
 * Writes a sealed segment to another file, with some frames replaced, and then gives that file its
 * name. Programs that have it open continue to read the old file. After a crash, one of both files
 * is there, whole. Keeps the file's time. *ret_bytes: the new size. Errors change nothing:
 * -EBADMSG: damaged; -ENOSPC... Do not use this for a segment that a writer has open.
 */
int hr_segment_rewrite(int stream_dir_fd, uint32_t number, hr_segment_replace *replace,
		       void *context, uint64_t *ret_bytes);

/* Removes the remains of an interrupted rewrite. */
void hr_segments_sweep(int stream_dir_fd);

#endif
