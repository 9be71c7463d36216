/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_folder.c - keeps frames in the folder of a store
 *
 * A frame is acknowledged only after a successful fsync. A failed fsync is never repeated: the
 * kernel has dropped the unwritten pages, so the next fsync would succeed without them. Instead,
 * the frames after the last successful fsync are cut off, and the daemon sends them again.
 */
#include "collector/ingest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/layout.h"
#include "common/now.h"

/* ---- opening ---- */

struct owners {
	uint32_t uid;
	bool node_same, node_other; /* a node has named this user as the owner, or another user */
	bool user_other;	    /* another user streams the job */
};

/* Adds the owner of one stream. Returns 1 if the other streams cannot change the result. */
static int add_owner(void *context, const char *name, int stream_fd)
{
	struct owners *o = context;
	struct hr_stream_state state;

	(void)name;
	if (hr_stream_state_read(stream_fd, &state) < 0 || !state.uid_known)
		return 0;
	o->node_same |= state.by_node && state.uid == o->uid;
	o->node_other |= state.by_node && state.uid != o->uid;
	o->user_other |= !state.by_node && state.uid != o->uid;
	return o->node_same;
}

/*
 * Returns whether a user other than `uid` owns the job. If a node has named an owner, this user
 * owns the job, because the scheduler assigned its id. Otherwise, the users that stream the job own
 * it.
 */
static bool job_of_another(int job_fd, uint32_t uid)
{
	struct owners o = {.uid = uid};

	return hr_store_each_folder(job_fd, add_owner, &o) >= 0 && !o.node_same &&
	       (o.node_other || o.user_other);
}

/* Opens the folders of the job and of the stream. -ENOENT: the stream is new. */
static int open_folders(const struct hr__worker *w, const struct hr_stream_id *id, int *ret_job,
			int *ret_stream)
{
	char job[HR__NAME_BYTES], stream[HR__NAME_BYTES], path[2 * HR__NAME_BYTES];
	int r = hr_name_encode(id->job, job);

	if (r == 0)
		r = hr_stream_name(id, stream);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "jobs/%s", job);
	*ret_job = openat(w->ingest->store_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_job < 0)
		return -errno;
	*ret_stream = openat(*ret_job, stream, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_stream < 0 ? -errno : 0;
}

/* Returns 0 if the peer may begin or continue the stream, or -ECANCELED after a Nack. */
static int check_stream(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s)
{
	int job = -1, stream = -1, r = open_folders(w, &s->id, &job, &stream);

	if (r == 0)
		r = hr_stream_state_read(stream, &s->state);
	if (r == 0 && hr__stream_denied(w, ch, &s->state))
		r = -ECANCELED;
	if (r == -ENOENT) {
		s->begins = true;
		r = 0;
	}
	if (r == 0 && s->begins && !hr__stream_may_begin(w, ch))
		r = -ECANCELED;
	if (r == 0 && ch->right.own_jobs && job >= 0 && job_of_another(job, ch->right.uid)) {
		hr__job_denied(w, ch);
		r = -ECANCELED;
	}
	if (stream >= 0)
		close(stream);
	if (job >= 0)
		close(job);
	return r;
}

static int open_writer(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s)
{
	int r = hr_writer_open_held(w->ingest->store, &s->id, &s->writer, NULL);

	if (r < 0)
		return r;
	hr_writer_limit_index(s->writer, w->ingest->config.index_bytes);
	if (!s->state.has_secret && hr_writer_mark(s->writer) > 1) {
		/* `headrace run` wrote the stream, so there is no `state` with a secret. */
		hr__channel_end(w, ch, "denied", true,
				"the stream of job %s on %s was not written by a collector", s->job,
				s->node);
		return -ECANCELED;
	}
	s->state.has_secret = true;
	memcpy(s->state.secret, ch->open->secret.data, HR_STREAM_SECRET_BYTES);
	s->state.retired = false; /* the new segment contains the number of the last frame */
	s->state.closed_ns = 0;	  /* an operator closed the stream too early */
	if (s->begins)
		s->state.by_node = ch->right.node;
	if (ch->right.own_jobs) {
		s->state.uid_known = true;
		s->state.uid = ch->right.uid;
	}
	return 0;
}

static int folder_load(struct hr__worker *w, struct hr_channel *ch, struct hr__ingest_stream *s)
{
	int r = check_stream(w, ch, s);

	if (r == 0)
		r = open_writer(w, ch, s);
	if (r == 0)
		s->mark = hr_writer_mark(s->writer);
	return r;
}

static void folder_unload(struct hr__ingest_stream *s, bool seal)
{
	if (seal)
		/* Ignores failures: readers scan a segment without a footer. */
		(void)hr_writer_close(s->writer);
	else
		hr_writer_abandon(s->writer);
}

static int folder_skip(struct hr__ingest_stream *s, uint64_t mark)
{
	int r = hr_writer_skip(s->writer, mark);

	s->mark = hr_writer_mark(s->writer);
	return r;
}

static const char *folder_where(const struct hr__ingest_stream *s)
{
	return hr_writer_dir(s->writer);
}

/* ---- frames ---- */

static int folder_append(struct hr__worker *w, struct hr__ingest_stream *s, Headrace__Frame *msg,
			 const uint8_t *frame, size_t bytes)
{
	int r = hr_writer_append_packed(s->writer, msg, frame, bytes);

	(void)w;
	s->mark = hr_writer_mark(s->writer);
	return r;
}

static int folder_write_state(struct hr__ingest_stream *s, bool sync)
{
	int fd = open(hr_writer_dir(s->writer), O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	s->state.mark = s->durable;
	r = hr_stream_state_write(fd, &s->state, sync);
	close(fd);
	s->state_late = r < 0;
	s->state_ms = hr__now_ms();
	return r;
}

static int folder_sync_one(struct hr__ingest_stream *s)
{
	int r = s->opening ? folder_write_state(s, true) : 0;

	return r < 0 ? r : hr_writer_sync(s->writer);
}

static void folder_sync_all(struct hr__worker *w)
{
	int r;

	for (struct hr__ingest_stream *s = w->changed; s; s = s->next_changed)
		s->error = s->opening ? folder_write_state(s, false) : 0;
	r = syncfs(w->ingest->store_fd) < 0 ? -errno : 0;
	for (struct hr__ingest_stream *s = w->changed; s; s = s->next_changed) {
		if (r < 0)
			s->error = r;
		else
			hr_writer_synced(s->writer);
	}
}

/* Cuts the stream back to what is on disk. */
static void folder_fail(struct hr__worker *w, struct hr__ingest_stream *s, int error)
{
	struct hr_channel *ch = s->owner;
	int r = error == -ESTALE ? error : hr_writer_rewind(s->writer);

	if (s->opening && ch) {
		hr__stream_drop(w, s, false);
		hr__wait_for_room(w, ch, strerrordesc_np(-error));
		return;
	}
	if (r < 0) {
		if (ch)
			hr__channel_end(w, ch, "error", true, "%s %s: %s", hr_writer_dir(s->writer),
					r == -ESTALE ? "was removed while the collector used it"
						     : "cannot be written to disk",
					strerrordesc_np(-error));
		hr__stream_drop(w, s, false);
		return;
	}
	s->durable = hr_writer_mark(s->writer);
	hr__commit_failed(w, s, true, "cannot write %s to disk: %s", hr_writer_dir(s->writer),
			  strerrordesc_np(-error));
}

static void folder_commit(struct hr__worker *w)
{
	bool each = w->n_changed <= w->ingest->config.sync_each;
	struct hr__ingest_stream *s = w->changed, *next;
	uint64_t start_ns = hr_now_ns(CLOCK_MONOTONIC);

	if (!s)
		return;
	if (!each)
		folder_sync_all(w);
	w->changed = NULL;
	w->n_changed = 0;
	for (; s; s = next) {
		if (each)
			s->error = folder_sync_one(s);
		if (s->error == 0 && hr_writer_removed(s->writer))
			s->error = -ESTALE;
		next = s->next_changed;
		s->changed = false;
		if (s->error < 0)
			folder_fail(w, s, s->error);
		else
			hr__committed(w, s);
	}
	hr__stats_commit(w, hr_now_ns(CLOCK_MONOTONIC) - start_ns);
}

const struct hr__backend hr__backend_folder = {
    .load = folder_load,
    .unload = folder_unload,
    .skip = folder_skip,
    .append = folder_append,
    .commit = folder_commit,
    .write_state = folder_write_state,
    .where = folder_where,
};
