/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appender.h - the thread that encodes, compresses and stores frames, in order
 *
 * Owner     The node. The appender owns the frames that it gets.
 * Threads   Its own; the functions here are for the drain and loop threads.
 *
 * If the store fails (full disk, I/O error), it tries again each second, and frames wait in memory,
 * encoded, up to HR_KEPT_BYTES. Beyond that it drops the oldest event batches, then file records,
 * then rollups. A Loss frame of the same number replaces each: the stream has no gaps.
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
 * Starts the thread. `journal`: retires its halves when all their frames are stored; may be NULL.
 * `spool`: of the stream, makes room for frames; NULL: the store is no spool.
 */
int hr_appender_new(struct hr_writer *w, struct hr_batch_pool *pool, struct hr_journal *journal,
		    struct hr_spool *spool, struct hr_appender **ret);

void hr_appender_give(struct hr_appender *a, struct hr_out_list *list);

/* Retires the half `gen` when all frames given before are stored. */
int hr_appender_retire(struct hr_appender *a, uint64_t gen);

/* Waits until all frames given before are stored: 0; or the store's error. */
int hr_appender_wait(struct hr_appender *a);

/*
 * Both journal halves are full: waits until the thread has done something since the last call, at
 * most 20 ms. If the store has an error, a half whose frames are all in memory is retired: a kill
 * then loses them.
 */
void hr_appender_make_room(struct hr_appender *a);

/* 0 or -errno of the last append. Any thread. */
int hr_appender_error(const struct hr_appender *a);
uint64_t hr_appender_stored_bytes(const struct hr_appender *a);

/* Stores what it can, ends the thread. 0, or the store's error if frames are left. */
int hr_appender_stop(struct hr_appender *a);

/*
 * For a stopped appender with frames left, on a disk that stays full: stores the most useful frames
 * that fit, and reports the rest in one Loss frame from the writer's reserve. Frames get new
 * numbers: no journal may ever be replayed into this stream again.
 */
struct hr_given_up {
	uint64_t count, bytes; /* operations that this call did not store */
	bool reported;	       /* the Loss frame is stored */
};
void hr_appender_settle(struct hr_appender *a, struct hr_given_up *ret);

/* Like hr_appender_stop, and frees. */
int hr_appender_free(struct hr_appender *a);

#endif
