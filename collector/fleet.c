/* SPDX-License-Identifier: Apache-2.0 */
/* The last Now of each stream. fleet_look.c adds them up. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/fleet_internal.h"

#define SECOND_NS   1e9
#define INTERVAL_NS UINT64_C(60000000000) /* a longer interval is a mistake of the sender */

struct hr_fleet_stream *hr_fleet_add(struct hr_fleet *f, const Headrace__Open *open)
{
	struct hr_fleet_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cluster = hr_arena_text(&s->identity, open->cluster);
	s->job = hr_arena_text(&s->identity, open->job);
	s->node = hr_arena_text(&s->identity, open->node);
	s->attempt = open->attempt;
	if (s->identity.failed) {
		hr_arena_free(&s->identity);
		free(s);
		return NULL;
	}
	s->next = f->first;
	s->at = &f->first;
	if (s->next)
		s->next->at = &s->next;
	f->first = s;
	return s;
}

void hr_fleet_remove(struct hr_fleet_stream *s)
{
	if (!s)
		return;
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	hr_arena_free(&s->identity);
	hr_arena_free(&s->now.memory);
	free(s);
}

/* ---- one Now --------------------------------------------------------------------------------- */

static Headrace__FleetRate rate_of(const Headrace__NowSum *s, double seconds)
{
	Headrace__FleetRate r = {0};

	if (!s)
		return r;
	r.metadata = (double)s->metadata / seconds;
	r.reads = (double)s->reads / seconds;
	r.writes = (double)s->writes / seconds;
	r.bytes_read = (double)s->bytes_read / seconds;
	r.bytes_written = (double)s->bytes_written / seconds;
	r.in_io = (double)s->dur_ns / SECOND_NS / seconds;
	return r;
}

static ProtobufCBinaryData path_of(struct hr_arena *a, const ProtobufCBinaryData *path)
{
	size_t n = path->len < HR_FLEET_PATH ? path->len : HR_FLEET_PATH;

	return (ProtobufCBinaryData){.len = n, .data = hr_arena_copy(a, path->data, n)};
}

static char *short_text(struct hr_arena *a, const char *text)
{
	char short_[HR__FLEET_TEXT];
	size_t n = strnlen(text, sizeof(short_) - 1);

	memcpy(short_, text, n);
	short_[n] = '\0';
	return hr_arena_text(a, short_);
}

static void take_mounts(struct hr__fleet_now *to, const Headrace__Now *from, double seconds)
{
	for (size_t i = 0; i < from->n_mounts && i < HR_NOW_MOUNTS; i++) {
		struct hr__fleet_mount *m = &to->mounts[to->n_mounts++];

		m->path = path_of(&to->memory, &from->mounts[i]->path);
		m->fs_type = short_text(&to->memory, from->mounts[i]->fs_type);
		m->rate = rate_of(from->mounts[i]->sum, seconds);
	}
}

static void take_ranks(struct hr__fleet_now *to, const Headrace__Now *from, double seconds)
{
	double most = -1;

	for (size_t i = 0; i < from->n_ranks && i < HR_NOW_RANKS; i++) {
		const Headrace__NowRank *rank = from->ranks[i];
		Headrace__FleetRate rate = rate_of(rank->sum, seconds);
		double wait = (double)rank->wait_ns / SECOND_NS / seconds;

		hr__rate_add(&to->rate, &rate);
		to->ranks += rank->rank_plus1 > 0;
		to->loops += rank->loops;
		to->waiting += fmin(wait, rank->loops);
		to->steps += (double)rank->steps / seconds;
		if (hr__rate_ops(&rate) <= most)
			continue;
		most = hr__rate_ops(&rate);
		to->rank_plus1 = rank->rank_plus1;
		to->rank_rate = rate;
	}
}

/* After take_ranks, which sums up the operations of the node. */
static void take_folders(struct hr__fleet_now *to, const Headrace__Now *from)
{
	double all = hr__rate_ops(&to->rate), named = (double)from->named_ops;

	for (size_t i = 0; i < from->n_folders && i < HR_NOW_FOLDERS; i++) {
		struct hr__fleet_folder *f = &to->folders[to->n_folders++];

		f->path = path_of(&to->memory, &from->folders[i]->path);
		f->ops = named > 0 ? all * fmin((double)from->folders[i]->ops / named, 1) : 0;
	}
}

static void take_stuck(struct hr__fleet_now *to, const Headrace__Now *from)
{
	size_t n = from->n_stuck < HR_NOW_STUCK ? from->n_stuck : HR_NOW_STUCK;

	to->stuck = hr_arena_get(&to->memory, n * sizeof(*to->stuck));
	for (size_t i = 0; i < n && to->stuck; i++) {
		Headrace__NowStuck *op = &to->stuck[to->n_stuck++];

		headrace__now_stuck__init(op);
		op->rank_plus1 = from->stuck[i]->rank_plus1;
		op->worker_plus1 = from->stuck[i]->worker_plus1;
		op->pid = from->stuck[i]->pid;
		op->tid = from->stuck[i]->tid;
		op->hang = from->stuck[i]->hang;
		op->op = short_text(&to->memory, from->stuck[i]->op);
		op->path = path_of(&to->memory, &from->stuck[i]->path);
		op->age_ns = from->stuck[i]->age_ns;
	}
}

void hr_fleet_note_frame(struct hr_fleet_stream *s, uint64_t now_ms)
{
	if (s)
		s->frame_ms = now_ms;
}

/*
 * A checkpoint of several ranks is one: it begins with the first of them, and ends with the last.
 */
static void take_saves(struct hr__fleet_saves *s, const Headrace__Now *from)
{
	for (size_t i = 0; i < from->n_ranks && i < HR_NOW_RANKS; i++) {
		const Headrace__NowRank *rank = from->ranks[i];
		struct hr_save before = s->last;
		uint64_t dur_ns = rank->save_end_ns - rank->save_start_ns;

		if (hr_save_add(&s->last, rank->save_start_ns, rank->save_end_ns)) {
			if (before.end_ns > 0)
				s->earlier_ns[s->n++ % HR__FLEET_SAVES] =
				    before.end_ns - before.start_ns;
			s->longest_ns = 0;
		}
		if (rank->save_start_ns >= s->last.start_ns && rank->save_end_ns > 0 &&
		    dur_ns >= s->longest_ns) {
			s->longest_ns = dur_ns;
			s->rank_plus1 = rank->rank_plus1;
		}
	}
}

int hr_fleet_take(struct hr_fleet_stream *s, const Headrace__Now *now, uint64_t now_ms)
{
	double seconds = (double)now->interval_ns / SECOND_NS;
	struct hr__fleet_now *to = &s->now;

	if (now->interval_ns == 0 || now->interval_ns > INTERVAL_NS)
		return -EINVAL;
	hr_arena_free(&to->memory);
	*to = (struct hr__fleet_now){
	    .heard_ms = now_ms, .uid = now->uid, .processes = now->processes, .lost = now->lost};
	to->user = short_text(&to->memory, now->user);
	to->name = short_text(&to->memory, now->name);
	take_mounts(to, now, seconds);
	take_ranks(to, now, seconds);
	take_folders(to, now);
	take_stuck(to, now);
	take_saves(&s->saves, now);
	if (!to->memory.failed)
		return 0;
	to->heard_ms = 0;
	return -ENOMEM;
}
