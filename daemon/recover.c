/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recover.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/store.h"
#include "daemon/appender.h"
#include "daemon/engine.h"
#include "daemon/jobfile.h"
#include "daemon/losses.h"

#define RECOVER_BATCHES 4u

static void give(void *arg, struct hr_out_list *out)
{
	hr_appender_give(arg, out);
}

/* Nobody of the job is left: its processes end where the journal does, and so does the job. */
static void end_job(struct hr_engine *e, struct hr_appender *a, uint64_t damaged)
{
	struct hr_entry_end end = {.h = {sizeof(end), HR_ENTRY_END}, .now_ns = hr_engine_now(e)};
	struct hr_entry_stop stop = {.h = {sizeof(stop), HR_ENTRY_STOP},
				     .now_ns = end.now_ns,
				     .state = "killed",
				     .cut_short = true};
	struct hr_entry_note note = {.h = {sizeof(note), HR_ENTRY_NOTE},
				     .reason = HR_LOSS_JOURNAL_DAMAGED};
	struct hr_engine_proc p;
	struct hr_out_list out;

	if (damaged)
		hr_engine_apply(e, &note.h);
	while (hr_engine_next_proc(e, NULL, &p)) {
		end.proc = p.proc;
		if (hr_engine_apply(e, &end.h))
			break;
	}
	hr_engine_apply(e, &stop.h);
	hr_out_list_init(&out);
	hr_engine_take(e, &out);
	hr_appender_give(a, &out);
}

/* *ret_damaged: bytes of entries that could not be read. */
static int replay(struct hr_journal *j, struct hr_writer *w, struct hr_batch_pool *pool,
		  uint64_t *ret_damaged)
{
	uint64_t gens[2], mark = hr_writer_mark(w);
	struct hr_engine_stats stats;
	struct hr_appender *a = NULL;
	struct hr_engine *e = NULL;
	unsigned n = hr_journal_replay(j, gens);
	int r = hr_engine_new(pool, &e), stored;

	if (!r) /* without the journal: its halves stay until all is stored */
		r = hr_appender_new(w, pool, NULL, NULL, &a);
	for (unsigned i = 0; i < n && !r; i++) {
		*ret_damaged += hr_journal_damaged(j, gens[i]);
		r = hr_engine_replay(e, j, gens[i], i ? HR_MARK_ANY : mark, give, a);
		if (!r && i + 1 < n)
			r = hr_engine_checkpoint(e);
	}
	if (!r) {
		hr_engine_stats_get(e, &stats);
		*ret_damaged += stats.damaged_bytes;
		hr_engine_go_on(e, mark);
		end_job(e, a, *ret_damaged);
	}
	stored = hr_appender_free(a);
	hr_engine_free(e);
	return r ? r : stored;
}

/* The stream's writer is ours. 1: recovered; 0: there is no journal. */
static int recover_stream(struct hr_writer *w, uint64_t *ret_damaged)
{
	struct hr_batch_pool *pool = NULL;
	struct hr_journal *j = NULL;
	bool found = false;
	char *path = hr_journal_path(w);
	int r;

	if (!path)
		return -ENOMEM;
	if (access(path, F_OK) < 0) {
		free(path);
		return 0;
	}
	r = hr_batch_pool_new(RECOVER_BATCHES, &pool);
	if (!r)
		r = hr_journal_open(path, HR_JOURNAL_HALF_BYTES, &j, &found);
	if (!r && found)
		r = replay(j, w, pool, ret_damaged);
	else if (!r && hr_writer_mark(w) > 1)
		r = -ENODATA; /* frames were made, so it held entries */
	hr_journal_close(j);
	hr_batch_pool_free(pool);
	if (!r)
		hr_journal_unlink(path);
	free(path);
	return r ? r : 1;
}

static void add_note(char **note, const struct hr_stream *s, int r, uint64_t frames,
		     uint64_t damaged)
{
	char *line = NULL, lost[96] = "";
	int n;

	if (damaged)
		snprintf(lost, sizeof(lost), "; %llu bytes of it are damaged and lost",
			 (unsigned long long)damaged);

	if (r < 0)
		n = asprintf(&line,
			     "%sjob %s on %s: its daemon was killed, and its journal cannot be "
			     "replayed: %s\n",
			     *note ? *note : "", s->job, s->node, strerrordesc_np(-r));
	else
		n = asprintf(&line,
			     "%sjob %s on %s: its daemon was killed; %llu frames were recovered "
			     "from its journal%s\n",
			     *note ? *note : "", s->job, s->node, (unsigned long long)frames, lost);
	if (n < 0)
		return;
	free(*note);
	*note = line;
}

static int recover_one(const char *store, const struct hr_stream *s, char **note)
{
	struct hr_stream_id id = {s->cluster, s->job, s->attempt, s->node, s->boot_id, s->instance};
	struct hr_writer *w = NULL;
	uint64_t before, damaged = 0;
	int r = hr_writer_open(store, &id, &w, NULL), closed;

	if (r == -EBUSY)
		return 0;
	if (r) {
		add_note(note, s, r, 0, 0);
		return r;
	}
	before = hr_writer_mark(w);
	r = recover_stream(w, &damaged);
	if (r)
		add_note(note, s, r, hr_writer_mark(w) - before, damaged);
	closed = hr_writer_close(w);
	return r < 0 ? r : closed;
}

static bool any_journal(const char *store)
{
	glob_t found = {0};
	char *pattern = NULL;
	bool any;

	if (asprintf(&pattern, "%s/jobs/*/*/journal", store) < 0)
		return false;
	/* Its one shared state is the environment (~ is not expanded). NOLINTNEXTLINE(concurrency-mt-unsafe) */
	any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0;
	globfree(&found);
	free(pattern);
	return any;
}

int hr_stream_recover(const char *store, const struct hr_stream_id *id)
{
	struct hr_writer *w = NULL;
	uint64_t damaged = 0;
	int r = hr_writer_open(store, id, &w, NULL), closed;

	if (r)
		return r;
	r = recover_stream(w, &damaged);
	closed = hr_writer_close(w);
	return r < 0 ? r : closed;
}

int hr_store_recover(const char *store, char **ret_note)
{
	const struct hr_stream *streams;
	struct hr_catalog *c = NULL;
	char *error = NULL, *note = NULL;
	int r, last = 0;

	*ret_note = NULL;
	if (!any_journal(store))
		return 0;
	r = hr_catalog_open(&store, 1, NULL, &c, &error);
	free(error);
	if (r)
		return r;
	for (size_t n = hr_catalog_streams(c, &streams), i = 0; i < n; i++) {
		if (streams[i].live)
			continue;
		r = recover_one(store, &streams[i], &note);
		if (r < 0)
			last = r;
	}
	hr_catalog_free(c);
	*ret_note = note;
	return last;
}
