/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appender.h - the thread that encodes, compresses and stores frames, in order
 *
 * Owner     The node. Frames given belong to the appender.
 * Threads   Its own; the functions here are for the drain and loop threads.
 * A store that takes nothing (full disk, I/O error) is tried again each second. Frames wait in memory meanwhile, encoded, up to
 * HR_KEPT_BYTES; past that event batches are given up first, then file records, then rollups, the oldest first. What is
 * given up is replaced by a Loss frame of the same number, so the stream keeps its order and has no gaps.
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
 * Starts the thread. `journal` may be NULL; its halves are retired when all their frames are stored. `spool`: where the stream
 * lies when it is one, and is asked for room; else NULL.
 */
int hr_appender_new(struct hr_writer *w, struct hr_batch_pool *pool, struct hr_journal *journal,
		    struct hr_spool *spool, struct hr_appender **ret);

/* Takes all of the list. */
void hr_appender_give(struct hr_appender *a, struct hr_out_list *list);

/* The journal half `gen` is retired once all given before is stored. */
int hr_appender_retire(struct hr_appender *a, uint64_t gen);

/* Waits until all given before is stored: 0; or the store's error. */
int hr_appender_wait(struct hr_appender *a);

/*
 * For who finds both journal halves full: waits until the thread has done something since the last call, 20 ms at most.
 * While the store has an error, a half whose frames are all kept in memory is retired: from then on a kill loses them.
 */
void hr_appender_make_room(struct hr_appender *a);

/* 0 or -errno of the last append. Any thread. */
int hr_appender_error(const struct hr_appender *a);
uint64_t hr_appender_stored_bytes(const struct hr_appender *a);

/* Stores what it can and ends the thread. 0, or the store's error when frames are left. */
int hr_appender_stop(struct hr_appender *a);

/*
 * For an appender that was stopped with frames left, on a disk that stays full: stores what fits, the most telling first,
 * and says in one Loss frame from the writer's reserve what does not. Frames get new numbers, so no journal may ever be
 * replayed into this stream again.
 */
struct hr_given_up {
	uint64_t count, bytes; /* operations that are not in the store, by this call */
	bool told;	       /* the store says so */
};
void hr_appender_settle(struct hr_appender *a, struct hr_given_up *ret);

/* Stores what it can, ends the thread, frees. Returns the store's error if frames were left. Accepts NULL. */
int hr_appender_free(struct hr_appender *a);

#endif
