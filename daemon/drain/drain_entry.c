/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves, commits and applies entries of the drain thread. Writes the small entries. */
#include "daemon/drain/drain_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/ranks.h"
#include "daemon/base/exit.h"
#include "daemon/engine/mounts.h"

#define MOUNTS_NS   UINT64_C(1000000000) /* shortest time between two reads of mountinfo */
#define ENTRY_SLACK (HR_JOURNAL_SLACK + HR_KNOWN_SLACK)
#define MOUNT_BYTES (256u << 10)

/* ---- journal and engine ---------------------------------------------------------------------- */

static void pass_frames(struct hr_drain *d)
{
	struct hr_out_list out;

	hr_out_list_init(&out);
	hr_engine_take(d->c.engine, &out);
	hr_appender_give(d->c.appender, &out);
}

/*
 * Journals the ids of files from before the checkpoint that are used again. The caller holds the
 * journal's lock.
 */
static void journal_known(struct hr_drain *d, uint32_t n)
{
	struct hr_entry_known *in =
	    hr_journal_reserve(d->c.journal, sizeof(*in) + n * sizeof(in->rows[0]), 0);

	if (!in) /* cannot happen: all other entries leave HR_KNOWN_SLACK bytes free */
		return;
	in->n = n;
	hr_engine_known_rows(d->c.engine, in->rows);
	hr_journal_commit(d->c.journal, HR_ENTRY_KNOWN, sizeof(*in) + n * sizeof(in->rows[0]));
}

/* Applies all committed entries in order. `locked`: the caller holds the journal's lock. */
static void apply_committed(struct hr_drain *d, bool locked)
{
	const struct hr_entry *entry;

	while ((entry = hr_journal_next(d->c.journal, hr_journal_gen(d->c.journal), &d->applied))) {
		uint32_t known;

		hr_engine_apply(d->c.engine, entry);
		known = hr_engine_known(d->c.engine);
		if (!known)
			continue;
		if (!locked)
			hr_journal_lock(d->c.journal);
		journal_known(d, known);
		if (!locked)
			hr_journal_unlock(d->c.journal);
	}
}

/*
 * Makes a journal checkpoint, and continues in the other half. The caller holds the journal's lock,
 * which is released during a wait.
 */
static void checkpoint(struct hr_drain *d)
{
	uint64_t full = hr_journal_gen(d->c.journal);

	while (!hr_journal_spare_free(d->c.journal)) {
		hr_journal_unlock(d->c.journal);
		hr_appender_make_room(d->c.appender);
		hr_journal_lock(d->c.journal);
	}
	apply_committed(d, true);
	hr_engine_checkpoint(d->c.engine);
	hr_journal_begin(d->c.journal);
	/* A restart loses the processes that do not fit. The snapshot has their number. */
	(void)hr_engine_snapshot(d->c.engine, d->c.journal);
	hr_journal_begun(d->c.journal);
	d->applied = hr_journal_head(d->c.journal);
	pass_frames(d);
	hr_appender_retire(d->c.appender, full);
}

void *hr__drain_begin(struct hr_drain *d, uint64_t bytes)
{
	void *entry;

	hr_journal_lock(d->c.journal);
	entry = hr_journal_reserve(d->c.journal, bytes, ENTRY_SLACK);
	if (!entry) {
		checkpoint(d);
		entry = hr_journal_reserve(d->c.journal, bytes, ENTRY_SLACK);
	}
	if (!entry)
		hr_journal_unlock(d->c.journal);
	return entry;
}

void hr__drain_commit(struct hr_drain *d, uint32_t kind, uint64_t bytes)
{
	/* what a replay demands of an entry */
	assert(kind > HR_ENTRY_NONE && kind < HR_ENTRY_KINDS && bytes >= hr_entry_least(kind));
	hr_journal_commit(d->c.journal, kind, bytes);
	hr_journal_unlock(d->c.journal);
	apply_committed(d, false);
	pass_frames(d);
}

void hr__drain_catch_up(struct hr_drain *d)
{
	apply_committed(d, false);
	pass_frames(d);
}

/* ---- small entries --------------------------------------------------------------------------- */

void hr__drain_tick(struct hr_drain *d, uint64_t now_ns)
{
	struct hr_entry_tick *in;

	hr_clock_update(d->c.clock);
	d->last_tick_ns = now_ns;
	in = hr__drain_begin(d, sizeof(*in));
	if (!in)
		return;
	in->line = d->c.clock->line;
	hr_clock_sample(&in->now);
	hr__drain_commit(d, HR_ENTRY_TICK, sizeof(*in));
}

void hr__drain_seal(struct hr_drain *d)
{
	struct hr_entry_seal *in = hr__drain_begin(d, sizeof(*in));

	if (in)
		hr__drain_commit(d, HR_ENTRY_SEAL, sizeof(*in));
}

void hr__drain_set_level(struct hr_drain *d, uint32_t level, bool full)
{
	struct hr_entry_level *in = hr__drain_begin(d, sizeof(*in));

	if (!in)
		return;
	in->now_ns = hr_boot_ns();
	in->level = level;
	in->full = full;
	hr__drain_commit(d, HR_ENTRY_LEVEL, sizeof(*in));
	__atomic_store_n(&d->level, level, __ATOMIC_RELAXED);
	for (struct hr_session *s = d->sessions; s; s = s->next)
		hr_session_set_level(s, level);
}

void hr__drain_read_mounts(struct hr_drain *d, int32_t pid, uint64_t now_ns)
{
	struct hr_entry_mounts *in;
	uint64_t used;
	char *text;

	if (!pid || now_ns - d->last_mounts_ns < MOUNTS_NS)
		return;
	d->last_mounts_ns = now_ns;
	if (hr_mountinfo_read(pid, &text))
		return;
	in = hr__drain_begin(d, sizeof(*in) + MOUNT_BYTES);
	if (in) {
		used = hr_mountinfo_rows(hr_engine_mounts(d->c.engine), text, in->rows, MOUNT_BYTES,
					 &in->n);
		hr__drain_commit(d, HR_ENTRY_MOUNTS, sizeof(*in) + used);
	}
	free(text);
}

void hr__drain_note(struct hr_drain *d, enum hr_loss_reason reason, uint64_t count)
{
	struct hr_entry_note *in = hr__drain_begin(d, sizeof(*in));

	if (!in)
		return;
	*in = (struct hr_entry_note){.reason = reason, .count = count};
	hr__drain_commit(d, HR_ENTRY_NOTE, sizeof(*in));
}

static void put_to_sleep(struct hr_drain *d, uint64_t proc)
{
	for (struct hr_session *s = d->sessions; s; s = s->next) {
		if (s->proc != proc)
			continue;
		s->asleep = true;
		hr_session_set_level(s, HR_LEVEL_OFF);
	}
}

void hr__drain_deselect(struct hr_drain *d)
{
	struct hr_engine_proc p;
	const void *at = NULL;

	if (!hr_engine_ranks_changed(d->c.engine) || (!d->c.node->ranks && !d->c.node->local_ranks))
		return;
	while ((at = hr_engine_next_proc(d->c.engine, at, &p))) {
		struct hr_entry_deselect *in;
		struct hr_rank rank = {.rank_plus1 = (uint32_t)(p.rank + 1),
				       .local_plus1 = (uint32_t)(p.local_rank + 1)};

		if (p.deselected ||
		    !hr_rank_left_out(&rank, d->c.node->ranks, d->c.node->local_ranks))
			continue;
		in = hr__drain_begin(d, sizeof(*in));
		if (!in)
			continue;
		in->proc = p.proc;
		hr__drain_commit(d, HR_ENTRY_DESELECT, sizeof(*in));
		put_to_sleep(d, p.proc);
	}
}

void hr__drain_end(struct hr_drain *d, uint64_t proc, const char *exit)
{
	struct hr_entry_end *in = hr__drain_begin(d, sizeof(*in));

	if (!in)
		return;
	if (strcmp(exit, "SIGKILL") == 0 && hr_oom_kills() > d->oom_kills[1])
		exit = HR_EXIT_OOM;
	in->proc = proc;
	in->now_ns = hr_boot_ns();
	memset(in->exit, 0, sizeof(in->exit));
	memcpy(in->exit, exit, strnlen(exit, sizeof(in->exit) - 1));
	hr__drain_commit(d, HR_ENTRY_END, sizeof(*in));
}
