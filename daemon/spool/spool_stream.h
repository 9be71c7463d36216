/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_stream.h - one stream of a spool as its sender sees it
 *
 * Purpose   Reads frames in order, by number, byte for byte; removes what a collector has; says when the stream is done with.
 * Owner     The uplink. Holds the stream's file `sender` locked: one uplink of a node sends it.
 * Threads   The uplink's.
 */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_STREAM_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_STREAM_H

#include "daemon/spool/spool.h"

struct hr_spool_stream {
	char *folder;		   /* "jobs/7/n1.17-0" */
	Headrace__StreamStart *id; /* of its StreamStart */
	char *aim;		   /* collectors that it is meant for, as typed; "" any */
	bool has_secret;
	uint8_t secret[HR_SPOOL_SECRET_BYTES];
	uint64_t first_seq,
	    last_seq; /* that there are: hr_spool_stream_refresh; of one that is written, the caller's */
	uint64_t acked;		      /* of the file `acked`, as of the opening; 0: none */
	uint64_t bytes;		      /* of all segments, then */
	int64_t time_ns;	      /* when the newest was written, wall clock, then */
	struct hr__spool_reader *own; /* the library's part */
};

/*
 * -EBUSY: another uplink has it; -ENOENT: it has no segment (being made, or removed); -EBADMSG: none says whose it is.
 */
int hr_spool_stream_open(struct hr_spool *s, const char *folder, struct hr_spool_stream **ret);
void hr_spool_stream_free(struct hr_spool_stream *st); /* accepts NULL */

/* Looks at its segments again. `newest`: also for last_seq, which takes reading. */
int hr_spool_stream_refresh(struct hr_spool_stream *st, bool newest);

/*
 * The frame `seq`, whole, its CRC checked; malloc'ed. One after the other is cheap. Never asked for a frame that is not wholly
 * in the file. -ENOENT: there is no such frame (any more); -EBADMSG: damaged; -ENOMEM, -errno.
 */
int hr_spool_stream_read(struct hr_spool_stream *st, uint64_t seq, uint8_t **ret,
			 size_t *ret_bytes);

/* A place to read from costs a descriptor: gives it back. */
void hr_spool_stream_rest(struct hr_spool_stream *st);

/*
 * A collector has all up to `seq`: removes segments, but the newest. `keep`: notes in the folder that they may go when there
 * is no room. *ret_removed: bytes.
 */
int hr_spool_stream_acknowledge(struct hr_spool_stream *st, uint64_t seq, bool keep,
				uint64_t *ret_removed);

/* The same word in the folder about all of it: of a stream that has ended, and whose folder is kept. */
int hr_spool_stream_note(struct hr_spool_stream *st, uint64_t seq);

enum hr_spool_end {
	HR_SPOOL_WRITTEN, /* a daemon writes it */
	HR_SPOOL_JOURNAL, /* nobody does, but there is a journal to replay: daemon/node/recover.h */
	HR_SPOOL_ENDED,	  /* nothing will be added */
};
enum hr_spool_end hr_spool_stream_end(struct hr_spool_stream *st);

/* Removes the folder of a stream that has ended. -EBUSY: it has not. */
int hr_spool_stream_remove(struct hr_spool_stream *st);

#endif
