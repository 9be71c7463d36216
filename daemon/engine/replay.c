/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays the journal of a killed daemon, and ends a stream whose journal is damaged.
 *
 * Each record counts once, whatever the damage. The entries before the damage make frames with
 * their original numbers, and the store ignores frames that it has. If it has further frames, these
 * may contain the sums that the engine has not sent yet, so the sums are dropped.
 */
#include <errno.h>

#include "daemon/engine/state.h"

#define GAP_MOST (UINT64_C(1) << 20) /* maximum number of missing frames; a larger gap is damage */

static int restore_known(struct hr_engine *e, const struct hr_entry *entry)
{
	const struct hr_entry_known *in = (const struct hr_entry_known *)entry;
	int r = 0;

	if (in->h.bytes < sizeof(*in) || in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->rows[0]))
		return -EBADMSG;
	for (uint64_t i = 0; i < in->n && !r; i++)
		r = hr_paths_restore(&e->paths, &in->rows[i]);
	return r;
}

static int restore_paths(struct hr_engine *e, const struct hr_journal *j, uint64_t gen)
{
	const struct hr_entry *entry;
	uint64_t at = 0, next_seq;
	int r = 0;

	hr_paths_clear(&e->paths);
	while (!r && (entry = hr_journal_next(j, gen, &at))) {
		(void)hr__snap_read(entry, &next_seq, &e->paths.epoch);
		if (entry->kind == HR_ENTRY_KNOWN)
			r = restore_known(e, entry);
	}
	return r;
}

/*
 * If the store lacks frames that precede a snapshot, a full disk or a power cut has lost them.
 * Replaces each of them by a Loss frame with its number, so that later frames have the same numbers
 * in every replay.
 */
static int fill_gap(struct hr_engine *e, uint64_t mark)
{
	uint64_t next = e->next_seq;

	if (mark == HR_MARK_ANY || next <= mark + 1)
		return 0;
	if (next - mark > GAP_MOST) {
		e->next_seq = 0;
		return -EBADMSG;
	}
	for (e->next_seq = mark + 1; e->next_seq < next && !e->failed;) {
		hr__loss(e, 0, HR_LOSS_FRAMES_LOST, 0, 1);
		hr__emit_losses(e);
	}
	return e->failed ? -ENOMEM : 0;
}

static void hand_on(struct hr_engine *e, const struct hr_replay *replay)
{
	struct hr_out_list out;

	hr_out_list_init(&out);
	hr_engine_take(e, &out);
	if (out.first)
		replay->taken(replay->arg, &out);
}

/* Applies one entry. Ignores errors that clients cause, such as an entry of an ended process. */
static int apply(struct hr_engine *e, const struct hr_entry *entry)
{
	return hr_engine_apply(e, entry) == -ENOMEM ? -ENOMEM : 0;
}

/* Replays one half of the journal. `salvage`: also applies the intact entries after the damage. */
static int replay_half(struct hr_engine *e, struct hr_journal *j, uint64_t gen,
		       const struct hr_replay *replay, bool salvage)
{
	const struct hr_entry *entry;
	uint64_t at = 0;
	int r = restore_paths(e, j, gen);

	while (!r && ((entry = hr_journal_next(j, gen, &at)) ||
		      (salvage && (entry = hr_journal_salvage(j, gen, &at))))) {
		r = apply(e, entry);
		if (!r && entry->kind == HR_ENTRY_SNAP)
			r = fill_gap(e, replay->store_mark);
		hand_on(e, replay);
	}
	e->paths.n_known = 0; /* the KNOWN entries for these files are already in the journal */
	return r || e->job ? r : -EBADMSG;
}

/*
 * Returns whether the store has all frames that precede this half of the journal, so that the older
 * half is not needed.
 */
static bool begins_stored(const struct hr_journal *j, uint64_t gen, uint64_t store_mark)
{
	uint64_t at = 0, next_seq;
	uint32_t epoch;
	const struct hr_entry *entry = hr_journal_next(j, gen, &at);

	return entry && hr__snap_read(entry, &next_seq, &epoch) && next_seq <= store_mark + 1;
}

static int replay_older(struct hr_engine *e, struct hr_journal *j, uint64_t gen,
			const struct hr_replay *replay)
{
	int r = replay_half(e, j, gen, replay, false);

	if (!r && hr_journal_damaged(j, gen))
		r = -EBADMSG;
	if (!r)
		r = hr_engine_checkpoint(e);
	hand_on(e, replay);
	return r;
}

/* Returns whether the store may have frames that neither this replay nor a killed recovery made. */
static bool may_be_stored(const struct hr_engine *e, uint64_t store_mark, uint64_t end_seq)
{
	return e->next_seq <= store_mark && (e->next_seq == 0 || e->next_seq != end_seq);
}

int hr_engine_replay(struct hr_engine *e, struct hr_journal *j, const struct hr_replay *replay)
{
	struct hr_replay newest = *replay;
	uint64_t gens[2];
	unsigned n = hr_journal_replay(j, gens);
	int r = n ? 0 : -EBADMSG;

	if (n == 2) {
		if (!hr_journal_damaged(j, gens[0]) ||
		    !begins_stored(j, gens[1], replay->store_mark)) {
			r = replay_older(e, j, gens[0], replay);
			newest.store_mark = HR_MARK_ANY;
		}
		if (!r && replay->half_taken)
			replay->half_taken(replay->arg, gens[0]);
	}
	if (!r)
		r = replay_half(e, j, gens[n - 1], &newest, false);
	if (r)
		return r;
	if (hr_journal_damaged(j, gens[n - 1]) || hr_journal_headless(j) ||
	    (replay->store_mark != HR_MARK_ANY &&
	     may_be_stored(e, replay->store_mark, hr_journal_end_seq(j))))
		return -EBADMSG;
	return 0;
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void throw_away(void *arg, struct hr_out_list *out)
{
	struct hr_out *o;

	while ((o = hr_out_list_pop(out)))
		hr_out_free(o, arg);
}

int hr_engine_count_lost(const struct hr_engine *prefix, struct hr_journal *j, struct hr_loss *ret)
{
	const struct hr_replay all = {
	    .store_mark = HR_MARK_ANY, .taken = throw_away, .arg = prefix->pool};
	const struct hr_engine_stats *had = &prefix->stats;
	uint64_t gens[2];
	unsigned n = hr_journal_replay(j, gens);
	struct hr_engine *e;
	int r = hr_engine_new(prefix->pool, &e);

	*ret = (struct hr_loss){.reason = HR_LOSS_JOURNAL_DAMAGED};
	if (r)
		return r;
	for (unsigned i = 0; i < n && r != -ENOMEM; i++)
		r = replay_half(e, j, gens[i], &all, true);
	if (e->stats.records > had->records) {
		ret->count = e->stats.records - had->records;
		ret->bytes = e->stats.bytes_moved - had->bytes_moved;
	}
	hr_engine_free(e);
	return r == -ENOMEM ? r : 0;
}

/* Drops everything that is not in a frame yet. */
static void replay_forget(struct hr_engine *e)
{
	hr_batch_put(e->pool, e->batch);
	e->batch = NULL;
	hr__procs_clear(e);
	hr_paths_clear(&e->paths);
	hr_names_done(&e->names);
	hr_mounts_done(&e->mounts);
	hr_rollups_done(&e->rollups);
	hr_filerecs_done(&e->filerecs);
	hr_kernel_sums_done(&e->kernel);
	hr_region_state_done(&e->regions);
	hr_losses_clear(&e->losses);
	e->excluded_unsent = false;
	e->left_out = 0;
}

void hr_engine_give_up(struct hr_engine *e, uint64_t store_mark, uint64_t end_seq,
		       const struct hr_loss *lost)
{
	struct hr_loss loss = *lost;

	if (may_be_stored(e, store_mark, end_seq)) {
		replay_forget(e);
		e->next_seq = store_mark + 1;
		loss.count = loss.bytes = 0;
	}
	hr_losses_add(&e->losses, &loss);
	if (e->job)
		return;
	/* The journal has lost the START entry, so the job is unknown. */
	hr__emit_losses(e);
	hr__emit_end(e, "killed", true);
	e->stopped = true;
}
