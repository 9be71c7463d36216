/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - the segments of one stream as files: for a spool, which sends them, makes them smaller, removes them
 *
 * Purpose   What a spool (daemon/spool/spool.h) does to sealed segments behind the writer's back. A store never does.
 * Owner     Results are the caller's. Nothing here locks: the spool's lock decides who may change segments.
 * Threads   Functions over the caller's memory; any thread.
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
	int64_t time_ns; /* when it was written last, wall clock */
};

/* By number; *ret is malloc'ed, NULL when there is none. -errno, -ENOMEM. */
int hr_segments_list(int stream_dir_fd, struct hr_segment_file **ret, size_t *ret_n);

/* Its name: "000012.seg". */
void hr_segments_name(uint32_t number, char ret[16]);

/* Its header's. -EBADMSG: no segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_first_seq(int stream_dir_fd, uint32_t number, uint64_t *ret);

struct hr_segment_info {
	uint64_t first_seq; /* of its header: what comes before it lies in other segments */
	uint64_t last_seq;  /* first_seq - 1: it has no frame yet */
	uint64_t kinds;	    /* bit i: it has a frame whose body is field i of Frame */
	bool sealed;
	bool damaged; /* the numbers of its frames are not what their places say */
};

/* From the footer, or by reading it all. -EBADMSG: no segment; -EPROTONOSUPPORT, -errno. */
int hr_segment_info(int stream_dir_fd, uint32_t number, struct hr_segment_info *ret);

/* Whose stream it is: its first frame, to be freed with headrace__frame__free_unpacked. -EBADMSG, -errno. */
int hr_segment_start(int stream_dir_fd, uint32_t number, Headrace__Frame **ret);

/* A frame to put in `msg`'s place, with its seq and clock, or NULL: it stays as it is. Valid until the next call. */
typedef const Headrace__Frame *hr_segment_replace(void *context, const Headrace__Frame *msg);

/*
 * Writes the segment anew, sealed, with some frames replaced, as another file that then takes its name: whoever has it open
 * goes on reading the old one, and a crash leaves the old one or the new one, whole. Its time stays. *ret_bytes: its size now.
 * -EBADMSG: it is damaged and stays as it is; -ENOSPC and other errors likewise. Not for the segment that a writer has open.
 */
int hr_segment_rewrite(int stream_dir_fd, uint32_t number, hr_segment_replace *replace,
		       void *context, uint64_t *ret_bytes);

/* Removes what a killed rewrite left. */
void hr_segments_sweep(int stream_dir_fd);

/* Has the stream a writer? Takes the writer's place while *ret_fd is open: 0, -EBUSY, -errno. */
bool hr_segments_taken(int stream_dir_fd);
int hr_segments_take(int stream_dir_fd, int *ret_fd);

#endif
