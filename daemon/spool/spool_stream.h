/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_stream.h - one stream of a spool, for its sender
 *
 * Purpose   Reads frames by number, byte for byte. Removes segments that a collector has, and at
 *           the end the folder.
 * Owner     The uplink; its thread. It locks the file `sender` of the stream, so that only one
 *           uplink of a node sends it.
 */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_STREAM_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_STREAM_H

#include "daemon/spool/spool.h"

struct hr_spool_stream {
	char *folder; /* for example "jobs/7/n1.17-0" */
	Headrace__StreamStart *id;
	char *aim; /* its collectors, as the user typed them; "": any */
	bool has_secret;
	uint8_t secret[HR_SPOOL_SECRET_BYTES];
	/*
	 * The first and the last frame in the spool. hr_spool_stream_refresh sets them, but not
	 * last_seq of the stream that this process writes: the caller sets that.
	 */
	uint64_t first_seq, last_seq;
	uint64_t acked;	 /* the number in the file `acked` when the stream was opened; 0: none */
	uint64_t bytes;	 /* size of all segments at the last refresh */
	int64_t time_ns; /* wall-clock time of the last change of the newest segment */
	struct hr__spool_reader *own;
};

/*
 * Opens a stream. -EBUSY: another uplink sends it; -ENOENT: it has no segment; -EBADMSG: its first
 * frame is invalid.
 */
int hr_spool_stream_open(struct hr_spool *s, const char *folder, struct hr_spool_stream **ret);
void hr_spool_stream_free(struct hr_spool_stream *st); /* accepts NULL */

/* Reads the list of segments again. If `newest`, also reads the newest segment to set last_seq. */
int hr_spool_stream_refresh(struct hr_spool_stream *st, bool newest);

/*
 * Reads frame `seq` (malloc'ed), and checks its CRC. The file must contain the whole frame. Reads
 * in ascending order are cheap. -ENOENT: there is no such frame (yet); -EBADMSG: it is damaged;
 * -ENOMEM, -errno.
 */
int hr_spool_stream_read(struct hr_spool_stream *st, uint64_t seq, uint8_t **ret,
			 size_t *ret_bytes);

/* Closes the descriptor of the last read. */
void hr_spool_stream_rest(struct hr_spool_stream *st);

/*
 * Call it when a collector has all frames up to `seq`. Removes their segments except the newest. If
 * `keep`, only writes `seq` to `acked`, so that a full spool may remove them.
 */
int hr_spool_stream_acknowledge(struct hr_spool_stream *st, uint64_t seq, bool keep);

/* Writes to `acked` that a collector has all frames of an ended stream, whose folder stays. */
int hr_spool_stream_note(struct hr_spool_stream *st, uint64_t seq);

enum hr_spool_end {
	HR_SPOOL_WRITTEN, /* a daemon writes the stream */
	/* No daemon writes the stream, but it has a journal to replay (daemon/node/recover.h). */
	HR_SPOOL_JOURNAL,
	HR_SPOOL_ENDED, /* the stream has ended */
};
enum hr_spool_end hr_spool_stream_end(struct hr_spool_stream *st);

/* Removes the folder of a stream that has ended. -EBUSY: the stream has not ended. */
int hr_spool_stream_remove(struct hr_spool_stream *st);

/* ---- discarding a job ------------------------------------------------------------------------ */

struct hr_spool_discarded {
	unsigned streams, kept; /* number of discarded and other streams of the job */
	/* Discarded frames and events that no collector has acknowledged. */
	uint64_t frames, events;
};

/*
 * Discards a job that no collector accepts, for example because its id belongs to another user. A
 * stream stays if a daemon writes it, an uplink sends it, or it has a journal to replay. Uplinks of
 * other processes may run. Returns 0 (also if the job does not exist) or -errno. May set
 * *ret_error (malloc'ed).
 */
int hr_spool_discard(struct hr_spool *s, const char *job, struct hr_spool_discarded *ret,
		     char **ret_error);

#endif
