/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - a store of this node that keeps frames until a collector has them
 *
 * Purpose   Keeps all streams of a folder, of any number of daemons, within one size limit, and
 *           reports the loss of each frame that it drops. The uplink sends them (spool_stream.h).
 *           The summary of `headrace run` and queries read the spool like any store.
 *
 *      SPOOL/                              a store: store/store.h
 *          spool.lock                      F_OFD_SETLK: needed to change or remove segments
 *          jobs/<job>/<node>.<stream>/
 *              secret                      16 random bytes, made with the stream: proves ownership
 *              sender                      F_OFD_SETLK: held by the uplink that sends it
 *              collectors                  as typed; uplinks to other collectors skip the stream
 *              acked                       last seq that a collector has, if its segments are kept
 *
 * A full spool drops the oldest event batches, then file records, then roll-ups; never other frames
 * (names, processes, the job). A Loss frame takes the number of each. A changed segment is a new
 * file that is renamed, so that a kill leaves the old or the new one.
 *
 * Owner     The process that records, or the command `headraced uplink`.
 * Threads   daemon/spool/README.md lists the threads and the functions that each of them calls.
 */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define HR_SPOOL_SEGMENT_LEAST (UINT64_C(256) << 10)
#define HR_SPOOL_SEGMENT_MOST  (UINT64_C(8) << 20)
#define HR_SPOOL_SECRET_BYTES  16u

struct hr_spool;

/*
 * Makes the folder if it is absent. `limit_bytes` 0: no limit. Errors are those of hr_store_create.
 */
int hr_spool_new(const char *path, uint64_t limit_bytes, struct hr_spool **ret);
void hr_spool_free(struct hr_spool *s); /* accepts NULL; all writers must be closed */
const char *hr_spool_path(const struct hr_spool *s);

/* Waits for the spool's lock. To release the lock, close *ret_fd. */
int hr_spool_lock(struct hr_spool *s, int *ret_fd);

/* ---- the stream that this process writes, one at most ---------------------------------------- */

/* Sets the collectors ("tcp://A,tcp://B") for streams that are made later. Returns 0 or -ENOMEM. */
int hr_spool_aim(struct hr_spool *s, const char *collectors);

/*
 * Opens a stream like hr_writer_open, and makes its secret. If another writer has the stream, waits
 * some seconds for it to end.
 */
int hr_spool_open_stream(struct hr_spool *s, const struct hr_stream_id *id, struct hr_writer **ret);

/*
 * Call it before `bytes` are appended. Drops frames to make room, and sometimes waits for the disk.
 * -ENOSPC: only names, and segments that other daemons have open, are left.
 */
int hr_spool_make_room(struct hr_spool *s, struct hr_writer *w, uint64_t bytes);

/* Call it when all frames up to number `mark` are in the files of the spool. */
void hr_spool_appended(struct hr_spool *s, uint64_t mark);

/* Call it when the writer is closed and nothing more is added to the stream. */
void hr_spool_closed(struct hr_spool *s);

/* ---- for the uplink -------------------------------------------------------------------------- */

/*
 * Sets a function that hr_spool_appended and hr_spool_closed call in their own thread (the
 * appender, or the loop at the end of the stream). NULL: they call none.
 */
void hr_spool_watch(struct hr_spool *s, void (*changed)(void *arg), void *arg);

/*
 * Reads the folder ("jobs/7/n1.17-0") and the last frame number of the stream that this process
 * writes. Returns false if there is no such stream.
 */
struct hr_spool_live {
	char folder[600];
	uint64_t mark;
	bool open;
};
bool hr_spool_live(struct hr_spool *s, struct hr_spool_live *ret);

/*
 * Calls `see` for the folder of each stream until a call fails. Returns 0, the error of this call,
 * or -errno.
 */
typedef int hr_spool_see(void *arg, const char *folder, int dir_fd);
int hr_spool_each(struct hr_spool *s, hr_spool_see *see, void *arg);

struct hr_spool_stats {
	uint64_t bytes; /* size of all segments when they were last counted */
	/* the operations of the events that this process dropped, and their bytes */
	uint64_t given_up, given_up_bytes;
};
void hr_spool_stats(struct hr_spool *s, struct hr_spool_stats *ret);

#endif
