/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_room.c - makes room in a full spool
 *
 *      survey all segments (spool.lock held)
 *        -> remove segments that a collector has (kept so far for `headrace run`)
 *        -> events (oldest segment first) -> file records -> rollups: each becomes a Loss frame
 *        -> -ENOSPC: the appender keeps frames in memory (appender.h)
 */
#include "daemon/spool/spool_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "store/segments.h"
#include "daemon/engine/losses.h"
#include "common/now.h"

#define SLACK	      256u /* a new survey follows when 1/SLACK of the limit has been written */
#define LOOK_AGAIN_MS 1000u

struct room_part { /* a segment of the spool */
	uint32_t stream, number;
	uint64_t bytes;
	int64_t time_ns;
	bool newest;	/* the newest segment of its stream: a writer may append to it */
	bool inspected; /* `kinds` is known */
	uint64_t kinds;
};

struct survey {
	struct hr_spool *spool;
	struct hr_writer *own;
	char (*folders)[sizeof(((struct hr_spool_live *)0)->folder)];
	size_t n_folders, folders_room;
	struct room_part *parts;
	size_t n_parts, parts_room;
	uint64_t total;
};

/* ---- the survey ------------------------------------------------------------------------------ */

static int spool_room_add_part(struct survey *v, const struct hr_segment_file *file, bool newest)
{
	if (!hr_array_reserve(v->parts, v->n_parts, v->parts_room))
		return -ENOMEM;
	v->parts[v->n_parts++] = (struct room_part){.stream = (uint32_t)v->n_folders - 1,
						    .number = file->number,
						    .bytes = file->bytes,
						    .time_ns = file->time_ns,
						    .newest = newest};
	v->total += file->bytes;
	return 0;
}

static int see_stream(void *arg, const char *folder, int dir_fd)
{
	struct survey *v = arg;
	struct hr_segment_file *files;
	size_t n;
	int r = hr_segments_list(dir_fd, &files, &n);

	if (r == -ENOMEM)
		return r;
	if (r)
		return 0; /* another process is removing the folder */
	hr_segments_sweep(dir_fd);
	if (!hr_array_reserve(v->folders, v->n_folders, v->folders_room))
		r = -ENOMEM;
	else
		snprintf(v->folders[v->n_folders++], sizeof(*v->folders), "%s", folder);
	for (size_t i = 0; i < n && !r; i++)
		r = spool_room_add_part(v, &files[i], i + 1 == n);
	free(files);
	return r;
}

static int oldest_first(const void *a, const void *b)
{
	const struct room_part *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int spool_room_survey(struct survey *v)
{
	int r = hr_spool_each(v->spool, see_stream, v);

	if (!r && v->n_parts)
		qsort(v->parts, v->n_parts, sizeof(*v->parts), oldest_first);
	return r;
}

static int open_folder(const struct survey *v, const struct room_part *p)
{
	int fd =
	    openat(v->spool->dir_fd, v->folders[p->stream], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* ---- acknowledged segments ------------------------------------------------------------------- */

static bool acknowledged(const struct room_part *p, int dir_fd)
{
	uint64_t acked = hr__spool_acked(dir_fd), next;

	return acked && hr_segment_first_seq(dir_fd, p->number + 1, &next) == 0 &&
	       next <= acked + 1;
}

static void drop_acknowledged(struct survey *v, uint64_t room)
{
	char name[16];

	for (size_t i = 0; i < v->n_parts && v->total > room; i++) {
		struct room_part *p = &v->parts[i];
		int dir_fd = p->newest ? -1 : open_folder(v, p);

		if (dir_fd < 0)
			continue;
		hr_segment_name(p->number, name);
		if (acknowledged(p, dir_fd) && unlinkat(dir_fd, name, 0) == 0) {
			v->total -= p->bytes;
			p->bytes = 0;
		}
		close(dir_fd);
	}
}

/* ---- dropping frames ------------------------------------------------------------------------- */

struct giving {
	Headrace__Frame__BodyCase kind;
	Headrace__Frame frame;
	Headrace__Loss loss;
	Headrace__LossRow row, *rows[1];
	uint64_t operations, bytes;
};

/* Sets the loss of a dropped frame in the same way as emit.c sets `absence`. */
static void count_absence(const Headrace__Frame *msg, Headrace__LossRow *row)
{
	enum hr_loss_reason reason = HR_LOSS_SPOOL_FULL;

	switch (msg->body_case) {
	case HEADRACE__FRAME__BODY_EVENTS:
		row->count = msg->events->count;
		row->bytes = msg->events->bytes_moved;
		break;
	case HEADRACE__FRAME__BODY_FILE_RECORDS:
		reason = HR_LOSS_FILES_FULL;
		row->count = msg->file_records->n_rows;
		break;
	default:
		if (!msg->rollups->alone)
			reason = HR_LOSS_ROLLUPS_FULL;
		for (size_t i = 0; i < msg->rollups->n_rows; i++) {
			row->count += msg->rollups->rows[i]->count;
			row->bytes += msg->rollups->rows[i]->bytes;
		}
	}
	row->reason = (char *)(uintptr_t)hr_loss_name(reason);
}

static const Headrace__Frame *spool_room_give_up(void *context, const Headrace__Frame *msg)
{
	struct giving *g = context;

	if (msg->body_case != g->kind)
		return NULL;
	headrace__frame__init(&g->frame);
	headrace__loss__init(&g->loss);
	headrace__loss_row__init(&g->row);
	count_absence(msg, &g->row);
	g->rows[0] = &g->row;
	g->loss.n_rows = 1;
	g->loss.rows = g->rows;
	g->frame.seq = msg->seq;
	g->frame.clock = msg->clock;
	g->frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	g->frame.loss = &g->loss;
	if (strcmp(g->row.reason, hr_loss_name(HR_LOSS_SPOOL_FULL)) == 0) {
		g->operations += g->row.count;
		g->bytes += g->row.bytes;
	}
	return &g->frame;
}

static void note_given_up(struct hr_spool *s, const struct giving *g)
{
	pthread_mutex_lock(&s->lock);
	s->stats.given_up += g->operations;
	s->stats.given_up_bytes += g->bytes;
	pthread_mutex_unlock(&s->lock);
}

static void rewrite(struct survey *v, struct room_part *p, int dir_fd,
		    Headrace__Frame__BodyCase kind)
{
	struct giving g = {.kind = kind};
	uint64_t bytes;

	if (hr_segment_rewrite(dir_fd, p->number, spool_room_give_up, &g, &bytes) < 0) {
		p->kinds = 0; /* no second try with this segment */
		return;
	}
	p->kinds &= ~(UINT64_C(1) << kind);
	v->total = v->total - p->bytes + bytes;
	p->bytes = bytes;
	note_given_up(v->spool, &g);
}

/*
 * Prepares the newest segment of a stream for a change, because a writer may have it open. If this
 * process writes the stream, its writer seals the segment and continues in another one. For another
 * stream, locks it if its daemon has ended and left no journal. Returns 1 if the caller may rewrite
 * the segment.
 */
static int take_newest(struct survey *v, struct room_part *p, int dir_fd, int *ret_lock)
{
	uint64_t before = hr_writer_bytes(v->own);

	if (strcmp(v->folders[p->stream], v->spool->live.folder) == 0) {
		if (hr_writer_roll(v->own) < 0)
			return 0;
		v->total += hr_writer_bytes(v->own) - before;
		p->newest = false;
		return 1;
	}
	return faccessat(dir_fd, HR__SPOOL_JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       hr_stream_lock(dir_fd, ret_lock) == 0;
}

static void give_up_part(struct survey *v, struct room_part *p, Headrace__Frame__BodyCase kind)
{
	struct hr_segment_info info;
	int dir_fd = open_folder(v, p), lock = -1;

	if (dir_fd < 0)
		return;
	if (!p->inspected) {
		p->inspected = true;
		p->kinds = hr_segment_info(dir_fd, p->number, &info) == 0 ? info.kinds : 0;
	}
	if (p->kinds & UINT64_C(1) << kind && (!p->newest || take_newest(v, p, dir_fd, &lock)))
		rewrite(v, p, dir_fd, kind);
	if (lock >= 0)
		close(lock);
	close(dir_fd);
}

static void give_up_until(struct survey *v, uint64_t room)
{
	static const Headrace__Frame__BodyCase order[] = {
	    HEADRACE__FRAME__BODY_EVENTS,
	    HEADRACE__FRAME__BODY_FILE_RECORDS,
	    HEADRACE__FRAME__BODY_ROLLUPS,
	};

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (size_t i = 0; i < v->n_parts && v->total > room; i++)
			if (v->parts[i].bytes)
				give_up_part(v, &v->parts[i], order[k]);
}

/* ---- room ------------------------------------------------------------------------------------ */

/*
 * Returns whether there is room, according to the last survey and the bytes that this process has
 * written since. Returns false also if the survey is too old.
 */
static bool fits(const struct hr_spool *s, const struct hr_writer *w, uint64_t bytes)
{
	uint64_t added = hr_writer_bytes(w) - s->seen_own_bytes;

	return s->seen_ms && s->seen_bytes + added + bytes <= s->limit_bytes &&
	       added <= s->limit_bytes / SLACK &&
	       hr_now_ms(CLOCK_MONOTONIC) - s->seen_ms < LOOK_AGAIN_MS;
}

static int spool_room_make_room(struct survey *v, uint64_t bytes)
{
	struct hr_spool *s = v->spool;
	uint64_t room = bytes < s->limit_bytes ? s->limit_bytes - bytes : 0;
	int r = spool_room_survey(v);

	if (r)
		return r;
	if (v->total > room)
		drop_acknowledged(v, room);
	if (v->total > room)
		give_up_until(v, room);
	s->seen_bytes = v->total;
	s->seen_own_bytes = hr_writer_bytes(v->own);
	s->seen_ms = hr_now_ms(CLOCK_MONOTONIC);
	pthread_mutex_lock(&s->lock);
	s->stats.bytes = v->total;
	pthread_mutex_unlock(&s->lock);
	return v->total > room ? -ENOSPC : 0;
}

int hr_spool_make_room(struct hr_spool *s, struct hr_writer *w, uint64_t bytes)
{
	struct survey v = {.spool = s, .own = w};
	int lock, r;

	if (!s->limit_bytes || fits(s, w, bytes))
		return 0;
	r = hr_spool_lock(s, &lock);
	if (r)
		return r;
	r = spool_room_make_room(&v, bytes);
	close(lock);
	free(v.folders);
	free(v.parts);
	return r;
}
