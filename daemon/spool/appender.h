/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appender.h - the thread that encodes, compresses and stores frames, in order
 *
 * Owner     The node. The appender owns the frames that it is given.
 * Threads   Its own; the functions here are for the drain and loop threads.
 * If the store fails (full disk, I/O error), the appender tries again each second. Frames wait in
 * memory meanwhile, encoded, up to HR_KEPT_BYTES. Above that event batches are dropped first, then
 * file records, then rollups, the oldest first. A Loss frame of the same number replaces each, so
 * the stream keeps its order and has no gaps.
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
 * Starts the thread. `journal` may be NULL; its halves are retired when all their frames are
 * stored. `spool`: of the stream, makes room for frames; NULL: the store is no spool.
 */
int hr_appender_new(struct hr_writer *w, struct hr_batch_pool *pool, struct hr_journal *journal,
		    struct hr_spool *spool, struct hr_appender **ret);

/* Takes all frames of the list. */
void hr_appender_give(struct hr_appender *a, struct hr_out_list *list);

/* Retires the journal half `gen` after all frames given before are stored. */
int hr_appender_retire(struct hr_appender *a, uint64_t gen);

/* Waits until all frames given before are stored: 0; or the store's error. */
int hr_appender_wait(struct hr_appender *a);

/*
 * Call it when both journal halves are full: waits until the thread has done something since the
 * last call, 20 ms at most. While the store has an error, a half whose frames are all kept in
 * memory is retired: from then on a kill loses them.
 */
void hr_appender_make_room(struct hr_appender *a);

/* 0 or -errno of the last append. Any thread. */
int hr_appender_error(const struct hr_appender *a);
uint64_t hr_appender_stored_bytes(const struct hr_appender *a);

/* Stores what it can and ends the thread. 0, or the store's error when frames are left. */
int hr_appender_stop(struct hr_appender *a);

/*
 * For an appender that was stopped with frames left, on a disk that stays full: stores what fits,
 * the most useful frames first, and reports the rest in one Loss frame from the writer's reserve.
 * Frames get new numbers, so no journal may ever be replayed into this stream again.
 */
struct hr_given_up {
	uint64_t count, bytes; /* operations that this call did not store */
	bool reported;	       /* the Loss frame is stored */
};
void hr_appender_settle(struct hr_appender *a, struct hr_given_up *ret);

/* Stores what it can, ends the thread, frees. The store's error if frames are left. */
int hr_appender_free(struct hr_appender *a);

#endif
