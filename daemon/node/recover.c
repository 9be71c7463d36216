/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/segments.h"
#include "store/store.h"
#include "common/text.h"
#include "common/users.h"
#include "daemon/spool/appender.h"
#include "daemon/engine/engine.h"
#include "daemon/node/jobfile.h"
#include "daemon/engine/losses.h"

#define RECOVER_BATCHES 4u

static void recover_give(void *arg, struct hr_out_list *out)
{
	hr_appender_give(arg, out);
}

struct recovered {
	struct hr_journal *j; /* NULL: the journal is absent or unreadable */
	int fd;		      /* descriptor of the journal; valid if j is not NULL */
	bool damaged;
	struct hr_loss lost;
};

/* Ends the processes and the job at the last time that the journal contains. */
static void recover_end_job(struct hr_engine *e, struct hr_appender *a)
{
	struct hr_entry_end end = {.h = {sizeof(end), HR_ENTRY_END}, .now_ns = hr_engine_now(e)};
	struct hr_entry_stop stop = {.h = {sizeof(stop), HR_ENTRY_STOP},
				     .now_ns = end.now_ns,
				     .state = "killed",
				     .cut_short = true};
	struct hr_engine_proc p;
	struct hr_out_list out;

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

static int replay(struct recovered *ret, struct hr_engine *e, struct hr_appender *a, uint64_t mark)
{
	const struct hr_replay to = {.store_mark = mark, .taken = recover_give, .arg = a};
	int r = ret->j ? hr_engine_replay(e, ret->j, &to) : -EBADMSG;

	ret->damaged = r == -EBADMSG;
	if (r && !ret->damaged)
		return r;
	r = ret->j && hr_engine_next_seq(e) > mark
		? hr_journal_note_end(ret->fd, hr_engine_next_seq(e))
		: 0;
	if (!ret->damaged || r)
		return r;
	r = ret->j ? hr_engine_count_lost(e, ret->j, &ret->lost) : 0;
	if (!r)
		hr_engine_give_up(e, mark, ret->j ? hr_journal_end_seq(ret->j) : 0, &ret->lost);
	return r;
}

static int recover_finish(struct recovered *ret, struct hr_writer *w)
{
	struct hr_batch_pool *pool = NULL;
	struct hr_appender *a = NULL;
	struct hr_engine *e = NULL;
	int r = hr_batch_pool_new(RECOVER_BATCHES, &pool), stored;

	if (!r)
		r = hr_engine_new(pool, &e);
	/* The appender gets no journal: no half may be retired before all frames are stored. */
	if (!r)
		r = hr_appender_new(w, pool, NULL, NULL, &a);
	if (!r)
		r = replay(ret, e, a, hr_writer_mark(w));
	if (!r) {
		struct hr_entry_note left_out = {
		    .h = {.bytes = sizeof(left_out), .kind = HR_ENTRY_NOTE},
		    .reason = HR_LOSS_RESTART,
		    .count = hr_engine_left_out(e)};

		if (left_out.count)
			hr_engine_apply(e, &left_out.h);
		recover_end_job(e, a);
	}
	stored = hr_appender_free(a);
	hr_engine_free(e);
	hr_batch_pool_free(pool);
	return r ? r : stored;
}

/*
 * Recovers a stream. `own`: fails if another user may write to the journal. Returns 1 (recovered),
 * 0 (there is no journal) or -errno.
 */
static int recover_stream(struct hr_writer *w, uint64_t instance, bool own, struct recovered *ret)
{
	int fd = hr_journal_file(hr_writer_dir_fd(w), instance), r;

	*ret = (struct recovered){.fd = fd, .lost = {.reason = HR_LOSS_JOURNAL_DAMAGED}};
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = own && !hr_store_is_own(fd) ? -EPERM : hr_journal_read(fd, &ret->j);
	if (r == -ENODATA && hr_writer_mark(w) <= 1)
		r = 0; /* headraced was killed before the stream began */
	else if (!r || r == -ENODATA || r == -EBADMSG)
		r = recover_finish(ret, w);
	hr_journal_close(ret->j);
	ret->j = NULL;
	close(fd);
	if (!r)
		hr_journal_unlink(hr_writer_dir_fd(w), instance);
	return r ? r : 1;
}

int hr_writer_recover(struct hr_writer *w, uint64_t instance)
{
	struct recovered recovered;
	int r = recover_stream(w, instance, false, &recovered);

	if (r == 0)
		r = recover_finish(&recovered, w);
	return r < 0 ? r : 0;
}

static const char *why(int r)
{
	return r == -EPERM   ? "it belongs to another user, or other users may write to it"
	       : r == -ELOOP ? "it is not a regular file, but a symbolic link, a FIFO or a device"
			     : strerrordesc_np(-r);
}

static void add_line(char **note, const struct hr_stream *s, const char *what)
{
	char *line = NULL, *text;

	if (asprintf(&line, "job %s on %s: headraced was killed; %s", s->job, s->node, what) < 0)
		return;
	text = hr_text_line(line); /* the caller splits `note` at newlines */
	free(line);
	if (text && asprintf(&line, "%s%s\n", *note ? *note : "", text) >= 0) {
		free(*note);
		*note = line;
	}
	free(text);
}

static void add_note(char **note, const struct hr_stream *s, int r, uint64_t frames,
		     const struct recovered *recovered)
{
	const unsigned long long n = frames, lost = recovered->lost.count;
	char what[256];

	if (r < 0)
		snprintf(what, sizeof(what), "cannot replay its journal: %s", why(r));
	else if (!recovered->damaged)
		snprintf(what, sizeof(what), "recovered %llu frames from its journal", n);
	else if (lost)
		snprintf(what, sizeof(what),
			 "recovered %llu frames from its journal, which is damaged: at least %llu "
			 "operations are lost",
			 n, lost);
	else
		snprintf(what, sizeof(what),
			 "recovered %llu frames from its journal, which is damaged: an unknown "
			 "number of operations is lost",
			 n);
	add_line(note, s, what);
}

static int recover_one(int store_fd, const char *store, const struct hr_stream *s, char **note)
{
	struct hr_stream_id id = {s->cluster, s->job,	   s->attempt, s->node,
				  s->boot_id, s->instance, 0};
	struct hr_writer *w = NULL;
	struct recovered recovered = {0};
	int r = hr_writer_open_own(store_fd, store, &id, &w), closed;
	uint64_t before;

	/* The journal stays if another writer or another user has it. */
	if (r == -EBUSY || r == -EPERM)
		return 0;
	if (r) {
		add_note(note, s, r, 0, &recovered);
		return r;
	}
	before = hr_writer_mark(w);
	r = recover_stream(w, id.instance, true, &recovered);
	if (r)
		add_note(note, s, r, hr_writer_mark(w) - before, &recovered);
	closed = hr_writer_close(w);
	return r < 0 ? r : closed;
}

/* What a search for journals in streams without a writer has found. */
struct journals {
	bool own;     /* a journal that belongs to this user */
	bool foreign; /* a journal in a folder that hr_store_is_own refuses */
	uid_t owner;  /* owner of this folder */
};

static int find_in_stream(void *context, const char *name, int fd)
{
	struct journals *ret = context;
	struct stat st;

	(void)name;
	if (fstatat(fd, "journal", &st, AT_SYMLINK_NOFOLLOW) < 0 || hr_stream_locked(fd))
		return 0;
	if (hr_store_is_own(fd)) {
		ret->own = true;
	} else if (fstat(fd, &st) == 0) {
		ret->foreign = true;
		ret->owner = st.st_uid;
	}
	return 0;
}

static int find_in_job(void *context, const char *name, int fd)
{
	(void)name;
	(void)hr_store_each_folder(fd, find_in_stream, context);
	return 0;
}

int hr_stream_recover(const char *store, const struct hr_stream_id *id)
{
	struct hr_writer *w = NULL;
	struct recovered recovered;
	int r = hr_writer_open(store, id, &w, NULL), closed;

	if (r)
		return r;
	r = recover_stream(w, id->instance, false, &recovered);
	closed = hr_writer_close(w);
	return r < 0 ? r : closed;
}

static int recover_all(int store_fd, const char *store, char **note)
{
	const struct hr_stream *streams;
	struct hr_catalog *c = NULL;
	char *error = NULL;
	int r = hr_catalog_open(&store, 1, NULL, &c, &error), last = 0;

	free(error);
	if (r)
		return r;
	for (size_t n = hr_catalog_streams(c, &streams), i = 0; i < n; i++) {
		if (streams[i].live)
			continue;
		r = recover_one(store_fd, store, &streams[i], note);
		if (r < 0)
			last = r;
	}
	hr_catalog_free(c);
	return last;
}

static void add_foreign(char **note, const char *store, uid_t owner)
{
	struct hr_user user;
	char *text = NULL;
	int n;

	if (!hr_user_by_id(owner, &user))
		snprintf(user.name, sizeof(user.name), "%u", (unsigned)owner);
	if (owner == geteuid())
		n = asprintf(
		    &text,
		    "%s%s: headraced was killed; its last events are in a journal and are missing "
		    "here: other users may write to its folder\n"
		    "check the folder, then run `chmod -R go-w %s/jobs/*/*` and the query again\n",
		    *note ? *note : "", store, store);
	else
		n = asprintf(&text,
			     "%s%s: headraced was killed; its last events are in a journal of user "
			     "%s and are missing here\n"
			     "%s can add them: run `headrace query %s summary` once\n",
			     *note ? *note : "", store, user.name, user.name, store);
	if (n < 0)
		return;
	free(*note);
	*note = text;
}

int hr_store_recover(const char *store, char **ret_note)
{
	int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0, jobs;
	struct journals found = {0};

	*ret_note = NULL;
	jobs = fd < 0 ? -1 : hr_store_open_folder(fd, "jobs");
	if (jobs >= 0) {
		(void)hr_store_each_folder(jobs, find_in_job, &found);
		close(jobs);
	}
	if (found.own)
		r = recover_all(fd, store, ret_note);
	if (found.foreign) {
		add_foreign(ret_note, store, found.owner);
		r = r ? r : -EPERM;
	}
	if (fd >= 0)
		close(fd);
	return r;
}
