/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - sealed segments as files, for a spool (daemon/spool/spool.h)
 *
 * Purpose   A spool sends, shrinks and removes segments while no writer has them; a store keeps them.
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
	int64_t time_ns; /* of the last write, wall clock */
};

/* Lists the segments of a stream by number. *ret is malloc'ed; NULL: there are none. -errno, -ENOMEM. */
int hr_segments_list(int stream_dir_fd, struct hr_segment_file **ret, size_t *ret_n);

/* The segment's name: "000012.seg". */
void hr_segments_name(uint32_t number, char ret[16]);

/* Reads the first seq from the segment's header. -EBADMSG: not a segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_first_seq(int stream_dir_fd, uint32_t number, uint64_t *ret);

struct hr_segment_info {
	uint64_t first_seq; /* of its header: earlier frames are in other segments */
	uint64_t last_seq;  /* first_seq - 1: no frame yet */
	uint64_t kinds;	    /* bit i: it has a frame whose body is field i of Frame */
	bool sealed;
	bool damaged; /* the frames' numbers do not match their places */
};

/* Reads the footer, or without one all frames. -EBADMSG: not a segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_info(int stream_dir_fd, uint32_t number, struct hr_segment_info *ret);

/* Reads the first frame; the caller frees it with headrace__frame__free_unpacked. -EBADMSG, -errno. */
int hr_segment_start(int stream_dir_fd, uint32_t number, Headrace__Frame **ret);

/* Returns a replacement (same seq and clock, valid until the next call), or NULL to keep `msg`. */
typedef const Headrace__Frame *hr_segment_replace(void *context, const Headrace__Frame *msg);

/*
 * Writes a sealed segment again, with some frames replaced, to another file that then takes its
 * name: programs that have it open continue to read the old one, and a crash leaves one of them,
 * whole. Keeps the file's time. *ret_bytes: the new size. Errors change nothing: -EBADMSG: damaged;
 * -ENOSPC... Not for the segment that a writer has open.
 */
int hr_segment_rewrite(int stream_dir_fd, uint32_t number, hr_segment_replace *replace,
		       void *context, uint64_t *ret_bytes);

/* Removes the remains of an interrupted rewrite. */
void hr_segments_sweep(int stream_dir_fd);

/* Whether there is a writer; takes the writer's lock until *ret_fd is closed: 0, -EBUSY, -errno. */
bool hr_segments_taken(int stream_dir_fd);
int hr_segments_take(int stream_dir_fd, int *ret_fd);

#endif
