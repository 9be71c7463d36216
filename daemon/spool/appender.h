/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appender.h - the thread that encodes, compresses and stores frames, in order
 *
 * Owner     The node. The appender owns the frames that it gets.
 * Threads   The appender thread; the drain and loop threads call the functions here.
 *
 * If the store fails (full disk, I/O error), the thread tries again each second. Encoded frames
 * wait in memory, up to HR_KEPT_BYTES. Beyond that, it drops the oldest event batches, then file
 * records, then roll-ups. A Loss frame takes the number of each, so that the stream has no gaps.
 */
#ifndef HEADRACE_DAEMON_SPOOL_APPENDER_H
#define HEADRACE_DAEMON_SPOOL_APPENDER_H

#include "store/store.h"
#include "daemon/journal/journal.h"
#include "daemon/engine/out.h"
#include "daemon/spool/spool.h"

#define HR_KEPT_BYTES (64u << 20)

struct hr_appender;

/*
 * Starts the thread. If `journal` is not NULL, the thread retires a half of the journal when all
 * frames of the half are stored. If `spool` is not NULL, the stream is in this spool, and the
 * thread makes room for each frame.
 */
int hr_appender_new(struct hr_writer *w, struct hr_batch_pool *pool, struct hr_journal *journal,
		    struct hr_spool *spool, struct hr_appender **ret);

void hr_appender_give(struct hr_appender *a, struct hr_out_list *list);

/* Retires the journal's half `gen` when all earlier frames are stored. */
int hr_appender_retire(struct hr_appender *a, uint64_t gen);

/* Waits until all earlier frames are stored. Returns 0 or the store's error. */
int hr_appender_wait(struct hr_appender *a);

/*
 * Call it if both halves of the journal are full. If no frame was stored since the last call, waits
 * at most 20 ms for one. If the store fails, the appender retires a half whose frames are all in
 * memory, so that a kill would lose these frames.
 */
void hr_appender_make_room(struct hr_appender *a);

/* Returns the result of the last append: 0 or -errno. Any thread. */
int hr_appender_error(const struct hr_appender *a);
uint64_t hr_appender_stored_bytes(const struct hr_appender *a);

/*
 * Stores the frames that the store accepts, and ends the thread. Returns 0, or the store's error if
 * frames are left.
 */
int hr_appender_stop(struct hr_appender *a);

/*
 * After hr_appender_stop, if a full disk has left frames: stores the most useful frames that fit,
 * and reports the others in a Loss frame, for which the writer has reserved space. The frames get
 * new numbers, so afterwards no journal may be replayed into this stream.
 */
struct hr_given_up {
	uint64_t count, bytes; /* the operations of the frames that were not stored */
	bool reported;	       /* the Loss frame was stored, or was not needed */
};
void hr_appender_settle(struct hr_appender *a, struct hr_given_up *ret);

/* Stops the appender like hr_appender_stop, and frees it. */
int hr_appender_free(struct hr_appender *a);

#endif
