/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - from journal entries to numbered frames
 *
 * Purpose   The state machine of the data path: processes, files, positions, rollups, file records,
 *           the open batch.
 * Owner     The node; used by one thread at a time (drain thread, or recovery).
 *
 * Determinism. State changes only in hr_engine_apply and hr_engine_checkpoint, which read no clock,
 * environment or /proc, and do not depend on the order of a hash map. So a replay of a journal
 * gives the same frames with the same numbers; the store ignores frames that it has (-EALREADY).
 * Across checkpoints, two rules ensure this:
 *   - after hr_engine_checkpoint the state is what hr_engine_snapshot writes, plus the file table;
 *   - if a file of that table is used again, a KNOWN entry (hr_engine_known) names the file. The
 *     drain thread commits the entry before it takes frames (hr_engine_take).
 */
#ifndef HEADRACE_DAEMON_ENGINE_ENGINE_H
#define HEADRACE_DAEMON_ENGINE_ENGINE_H

#include "daemon/base/node_stats.h"
#include "daemon/journal/entry.h"
#include "daemon/journal/journal.h"
#include "daemon/engine/out.h"

#define HR_BATCH_NS    UINT64_C(1000000000) /* a batch is sealed this long after its first event */
#define HR_ENTRY_SLOTS 16384u		    /* maximum number of slots in one RECORDS entry */
_Static_assert(sizeof(struct hr_known_row) * 2 * HR_ENTRY_SLOTS + 64 <= HR_KNOWN_SLACK,
	       "room to name all files");

struct hr_engine;
struct hr_loss;

int hr_engine_new(struct hr_batch_pool *pool, struct hr_engine **ret);
void hr_engine_free(struct hr_engine *e); /* accepts NULL */

/* Applies one entry. -ENOMEM: the engine is unusable; -EBADMSG: the entry is ignored. */
int hr_engine_apply(struct hr_engine *e, const struct hr_entry *entry);

/* Returns in *ret the frames that were made since the last call. The caller owns them. */
void hr_engine_take(struct hr_engine *e, struct hr_out_list *ret);

/* Returns the number of files that the next KNOWN entry must name. */
uint32_t hr_engine_known(const struct hr_engine *e);
/* Fills the rows of the next KNOWN entry. These files then no longer need a KNOWN entry. */
void hr_engine_known_rows(struct hr_engine *e, struct hr_known_row *rows);

/*
 * Replays a journal, with a checkpoint between its halves. `taken` receives the frames with their
 * original numbers, and the store ignores frames that it has. Returns -EBADMSG if entries are
 * missing or damaged: the entries before the damage are applied, and hr_engine_give_up decides
 * about their sums.
 */
#define HR_MARK_ANY UINT64_MAX
struct hr_replay {
	/* Number of the store's last frame before the replay; HR_MARK_ANY: no store. */
	uint64_t store_mark;
	void (*taken)(void *arg, struct hr_out_list *out);
	/* Called when `taken` has got all frames of the journal's older half; may be NULL. */
	void (*half_taken)(void *arg, uint64_t gen);
	void *arg;
};
int hr_engine_replay(struct hr_engine *e, struct hr_journal *j, const struct hr_replay *replay);

/* Counts operations in intact entries after the damage. `prefix`: the engine after the replay. */
int hr_engine_count_lost(const struct hr_engine *prefix, struct hr_journal *j, struct hr_loss *ret);

/*
 * Call it after a replay that found damage, or without a replay if the journal is lost. If the
 * store has frames that the replay did not make, these may contain the engine's open sums. Then
 * this function drops these sums, and reports `lost` with a count of 0. If the journal has lost the
 * beginning of the job, this function ends the stream; otherwise, the caller must do so. `end_seq`:
 * hr_journal_end_seq, or 0.
 */
void hr_engine_give_up(struct hr_engine *e, uint64_t store_mark, uint64_t end_seq,
		       const struct hr_loss *lost);

/* Returns how many processes did not fit into a snapshot and are not yet counted as lost. */
uint64_t hr_engine_left_out(const struct hr_engine *e);

uint64_t hr_engine_next_seq(const struct hr_engine *e);

int hr_engine_checkpoint(struct hr_engine *e);

/*
 * Writes the state after a checkpoint to the active half, under the journal's lock. -ENOSPC: some
 * processes did not fit; hr_engine_left_out returns their number after a replay.
 */
int hr_engine_snapshot(struct hr_engine *e, struct hr_journal *j);

uint64_t hr_engine_last_proc(const struct hr_engine *e);
/* The process that attached last; all zero: none has attached since the replayed snapshot. */
struct hr_last_hello {
	uint64_t ticks;
	int32_t pid;
};
struct hr_last_hello hr_engine_last_hello(const struct hr_engine *e);
uint32_t hr_engine_level(const struct hr_engine *e);
bool hr_engine_stopped(const struct hr_engine *e);
uint64_t hr_engine_now(const struct hr_engine *e); /* CLOCK_BOOTTIME of the last tick, ns */

/* Returns whether a TICK entry would make a frame. */
bool hr_engine_waiting(const struct hr_engine *e);

/*
 * Returns whose mountinfo the caller should read now (a pid; 0: none). The call clears the request.
 */
int32_t hr_engine_mounts_wanted(struct hr_engine *e);
struct hr_mounts;
const struct hr_mounts *hr_engine_mounts(const struct hr_engine *e);

/*
 * Iterates over live processes, in the order in which they attached, for a takeover. NULL: no
 * further process.
 */
struct hr_engine_proc {
	uint64_t proc;
	uint64_t token;
	uint64_t start_time;
	int32_t pid;
	int32_t rank; /* -1: none */
	int32_t local_rank;
	bool deselected;
	bool came; /* headraced has read a record from one of its rings */
	bool covered;
	int64_t cover; /* the thread in struct hr_item_cover */
};
const void *hr_engine_next_proc(const struct hr_engine *e, const void *after,
				struct hr_engine_proc *ret);
/* Returns whether ranks have changed since the last call. */
bool hr_engine_ranks_changed(struct hr_engine *e);

/* Returns the number of the first slot of a ring that is not in the journal; 0: unknown. */
uint64_t hr_engine_ring_next(const struct hr_engine *e, uint64_t proc, uint32_t map, uint32_t ring);

/*
 * Makes a picture (live.h) of the job, with the operations in flight in `cells`. Returns 0 or
 * -ENOMEM.
 */
struct hr_live_cell;
struct hr_live_picture;
int hr_engine_live(struct hr_engine *e, const struct hr_clock_sample *now,
		   const struct hr_live_cell *cells, size_t n, struct hr_live_picture **ret);

void hr_engine_stats_get(const struct hr_engine *e, struct hr_engine_stats *ret);
void hr_engine_hang(const struct hr_engine *e, struct hr_job_hang *ret);

#endif
