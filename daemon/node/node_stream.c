/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the stream of a node, then begins or continues it. Ends a stream that cannot continue. */
#include "daemon/node/node_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/spool/appender.h"
#include "daemon/engine/engine.h"
#include "daemon/node/jobfile.h"
#include "daemon/node/kept_maps.h"
#include "daemon/engine/losses.h"
#include "daemon/engine/mounts.h"
#include "daemon/node/recover.h"
#include "daemon/spool/spool.h"

#define BATCHES	     4u
#define STREAMS_MOST 16 /* maximum number of streams that cannot continue */
#define MOUNT_BYTES  (256u << 10)

bool hr__node_disk_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint64_t half_bytes(const struct hr_node *n)
{
	return n->c.journal_half_bytes ? n->c.journal_half_bytes : HR_JOURNAL_HALF_BYTES;
}

void hr__node_leave_folder(struct hr_node *n, bool unlink)
{
	if (n->journal_folder < 0)
		return;
	if (unlink)
		hr_journal_unlink(n->journal_folder, n->c.id.instance);
	close(n->journal_folder);
	n->journal_folder = -1;
}

static int open_journal(struct hr_node *n, bool *ret_found)
{
	int r, fd;

	n->journal_folder = fcntl(hr_writer_dir_fd(n->writer), F_DUPFD_CLOEXEC, 0);
	if (n->journal_folder < 0)
		return -errno;
	r = fd = hr_journal_make(n->journal_folder, n->c.id.instance, n->c.journal_dir);
	if (fd >= 0)
		r = hr_journal_open(fd, half_bytes(n), &n->journal, ret_found);
	if (!hr__node_disk_full(r))
		return r;
	/* If the disk is full, keeps the journal in memory, where a kill of headraced loses it. */
	hr__node_leave_folder(n, true);
	return hr_journal_open(-1, half_bytes(n), &n->journal, ret_found);
}

static int open_writer(struct hr_node *n)
{
	return n->c.spool ? hr_spool_open_stream(n->c.spool, &n->c.id, &n->writer)
			  : hr_writer_open(n->c.store, &n->c.id, &n->writer, NULL);
}

void hr__node_drop_journal(struct hr_node *n)
{
	hr__node_leave_folder(n, n->journal != NULL);
	hr_journal_close(n->journal);
	n->journal = NULL;
}

static void leave_stream(struct hr_node *n)
{
	hr__node_drop_journal(n);
	hr_writer_close(n->writer);
	n->writer = NULL;
}

/* Whether the last of the streams has ended whose numbers are the stream's and the `more` next. */
static bool last_stream_ended(const char *store, const struct hr_stream_id *id, uint64_t more)
{
	const struct hr_catalog_filter filter = {.job = id->job};
	const struct hr_stream *streams;
	struct hr_catalog *c = NULL;
	uint64_t last = 0;
	char *error = NULL;
	bool ended = false;

	if (hr_catalog_open(&store, 1, &filter, &c, &error) == 0) {
		for (size_t i = 0, n = hr_catalog_streams(c, &streams); i < n; i++) {
			const struct hr_stream *s = &streams[i];

			if (s->instance < id->instance || s->instance - id->instance > more ||
			    s->instance < last || s->attempt != id->attempt ||
			    strcmp(s->node, id->node) != 0)
				continue;
			last = s->instance;
			ended = s->ended;
		}
	}
	hr_catalog_free(c);
	free(error);
	return ended;
}

bool hr_node_has_ended(const char *store, const struct hr_stream_id *id)
{
	/* A new job need not read the streams of earlier runs. */
	return hr_store_has_stream(store, id) && last_stream_ended(store, id, STREAMS_MOST - 1);
}

/* Ends a stream that cannot continue. If the store fails now, the journal stays. */
static void give_up_stream(struct hr_node *n)
{
	if (!last_stream_ended(n->c.store, &n->c.id, 0)) {
		n->given_up = true;
		if (hr_writer_recover(n->writer, n->c.id.instance)) {
			hr_journal_close(n->journal);
			n->journal = NULL;
		}
	}
	leave_stream(n);
}

/*
 * A stream cannot continue in three cases:
 *   - its journal has another version: the journal stays, for a headraced of that version;
 *   - it has frames, but its journal was in memory: the numbers of processes and files are lost;
 *   - its journal is damaged (here its header; start_engine finds other damage).
 * Then this function tries the next instance number. A later daemon does the same, and so finds the
 * same stream.
 */
int hr__node_open_stream(struct hr_node *n, bool *ret_found)
{
	for (int i = 0; i < STREAMS_MOST; i++, n->c.id.instance++) {
		int r = open_writer(n);

		if (!r)
			r = open_journal(n, ret_found);
		if (!r && (*ret_found || hr_writer_mark(n->writer) <= 1))
			return 0;
		if (r && r != -EPROTONOSUPPORT && r != -EBADMSG)
			return r;
		if (r == -EPROTONOSUPPORT) {
			n->other_version = true;
			leave_stream(n);
		} else {
			give_up_stream(n);
		}
	}
	return -EEXIST;
}

static void node_stream_give(void *arg, struct hr_out_list *out)
{
	hr_appender_give(arg, out);
}

static void half_taken(void *arg, uint64_t gen)
{
	hr_appender_retire(arg, gen);
}

/* Replays the journal. The store ignores frames that it has. */
static int replay(struct hr_node *n)
{
	const struct hr_replay to = {.store_mark = hr_writer_mark(n->writer),
				     .taken = node_stream_give,
				     .half_taken = half_taken,
				     .arg = n->appender};

	return hr_engine_replay(n->engine, n->journal, &to);
}

static void node_stream_note(struct hr_node *n, enum hr_loss_reason reason, uint64_t count)
{
	struct hr_entry_note *in = hr_journal_reserve(n->journal, sizeof(*in), HR_JOURNAL_SLACK);

	if (!in)
		return;
	*in = (struct hr_entry_note){.reason = reason, .count = count};
	hr_journal_commit(n->journal, HR_ENTRY_NOTE, sizeof(*in));
}

/*
 * Returns a process with the mounts that most clients have. The node service may run in a sandbox
 * with other mounts, so process 1 is used there.
 */
static pid_t mounts_pid(const struct hr_node *n)
{
	return n->c.handoff_fd > 0 ? 1 : getpid();
}

static int begin_privacy(struct hr_node *n)
{
	struct hr_entry_privacy *in;

	if (!hr_privacy_hides(&n->c.privacy))
		return 0;
	in = hr_journal_reserve(n->journal, sizeof(*in), HR_JOURNAL_SLACK);
	if (!in)
		return -E2BIG;
	in->rules = n->c.privacy;
	hr_journal_commit(n->journal, HR_ENTRY_PRIVACY, sizeof(*in));
	return 0;
}

/* Begins a stream. Journals the mounts now, because the first processes may end soon. */
static int begin_stream(struct hr_node *n)
{
	struct hr_entry_start *start;
	struct hr_entry_mounts *mounts;
	uint8_t *job = NULL;
	size_t job_bytes = 0;
	char *text = NULL;
	uint64_t used = 0;
	int r = hr_job_pack(&n->c, hr_boot_ns(), &job, &job_bytes);

	if (r)
		return r;
	r = hr_journal_begin(n->journal);
	start =
	    r ? NULL : hr_journal_reserve(n->journal, sizeof(*start) + job_bytes, HR_JOURNAL_SLACK);
	if (!start) {
		free(job);
		return r ? r : -E2BIG;
	}
	start->next_seq = hr_writer_mark(n->writer) + 1;
	start->line = n->clock.line;
	hr_clock_sample(&start->now);
	start->level = (uint32_t)n->c.level;
	start->job_bytes = (uint32_t)job_bytes;
	memcpy(start->job, job, job_bytes);
	free(job);
	hr_journal_commit(n->journal, HR_ENTRY_START, sizeof(*start) + job_bytes);
	if (begin_privacy(n) < 0)
		return -E2BIG;
	mounts = hr_journal_reserve(n->journal, sizeof(*mounts) + MOUNT_BYTES, HR_JOURNAL_SLACK);
	if (mounts && hr_mountinfo_read(mounts_pid(n), &text) == 0) {
		used = hr_mountinfo_rows(hr_engine_mounts(n->engine), text, mounts->rows,
					 MOUNT_BYTES, &mounts->n);
		hr_journal_commit(n->journal, HR_ENTRY_MOUNTS, sizeof(*mounts) + used);
		free(text);
	}
	if (n->journal_folder < 0)
		node_stream_note(n, HR_LOSS_JOURNAL_MEMORY, 0);
	if (n->other_version || n->nothing_stored)
		node_stream_note(n, HR_LOSS_JOURNAL_DAMAGED, 0);
	if (n->orphans)
		node_stream_note(n, HR_LOSS_RESTART, n->orphans);
	hr_journal_begun(n->journal);
	return replay(n);
}

static int start_engine(struct hr_node *n, bool found)
{
	int r = hr_batch_pool_new(BATCHES, &n->pool);

	if (!r)
		r = hr_engine_new(n->pool, &n->engine);
	if (!r)
		r = hr_appender_new(n->writer, n->pool, n->journal, n->c.spool, &n->appender);
	if (!r)
		r = found ? replay(n) : begin_stream(n);
	if (!r && hr_engine_stopped(n->engine))
		r = -ESTALE; /* the job has already ended in the journal */
	return r;
}

void hr__node_free_engine(struct hr_node *n)
{
	hr_appender_free(n->appender);
	hr_engine_free(n->engine);
	hr_batch_pool_free(n->pool);
	n->appender = NULL;
	n->engine = NULL;
	n->pool = NULL;
}

int hr__node_start_stream(struct hr_node *n, bool *found, const struct hr_inherited *inherited,
			  size_t n_inherited)
{
	/* A headraced makes its node page after its journal. So there was a journal, in memory. */
	n->nothing_stored =
	    !*found && !n->other_version && !n->given_up && hr_page_is_kept(inherited, n_inherited);
	for (;;) {
		int r;

		if (!*found)
			n->orphans = hr_kept_maps_orphan(inherited, n_inherited);
		r = start_engine(n, *found);
		if (r != -EBADMSG || !*found)
			return r;
		hr__node_free_engine(n);
		give_up_stream(n);
		n->c.id.instance++;
		r = hr__node_open_stream(n, found);
		if (r)
			return r;
	}
}
