/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a Look: adds up the streams of each job, and the mounts of all jobs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/fleet_internal.h"
#include "common/array.h"
#include "common/fnv.h"
#include "common/map64.h"
#include "common/order.h"
#include "common/rows.h"

struct fleet_mount {
	const struct hr__fleet_mount *names; /* of a stream; its rate is not used */
	Headrace__FleetRate rate;
	/* in sums over all jobs: the job with the most operations, and how many */
	const char *job;
	double most;
};

struct fleet_mounts {
	struct fleet_mount *list;
	size_t n, room;
	struct hr_map64 by_name;
};

struct fleet_folder {
	const struct hr__fleet_folder *of;
	const char *node;
	double ops, most; /* most: operations of the node */
};

struct fleet_job {
	const struct hr_fleet_stream *stream; /* one of them, for names */
	Headrace__FleetJob sums;	      /* its numbers; put_job adds the rest */
	struct hr_map64 nodes;		      /* hashes of their names */
	Headrace__FleetRate rate;
	const struct hr_fleet_stream *saver;   /* has the slowest checkpoint */
	uint64_t saver_usual_ns;	       /* of its earlier ones; 0: unknown */
	const struct hr_fleet_stream *busiest; /* has the rank with the most operations */
	struct fleet_mounts mounts;
	struct fleet_folder *folders;
	size_t n_folders, folders_room;
	Headrace__FleetStuck *stuck;
	size_t n_stuck, stuck_room;
};

struct fleet_sums {
	struct fleet_job *jobs;
	size_t n, room;
	struct hr_map64 by_name;
	struct fleet_mounts mounts;
	Headrace__FleetRate rate;
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hr_fnv(hash, text, strlen(text) + 1);
}

static bool same_path(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* ---- adding up ------------------------------------------------------------------------------- */

static struct fleet_mount *mount_sum_of(struct fleet_mounts *m, const struct hr__fleet_mount *of)
{
	uint64_t hash = hr_fnv(hash_text(HR_FNV_BASIS, of->fs_type), of->path.data, of->path.len);
	uint32_t i = hr_map64_get(&m->by_name, hash);

	if (i != HR_MAP64_NONE)
		return &m->list[i];
	if (!hr_array_reserve(m->list, m->n, m->room) ||
	    hr_map64_set(&m->by_name, hash, (uint32_t)m->n))
		return NULL;
	m->list[m->n] = (struct fleet_mount){.names = of};
	return &m->list[m->n++];
}

static void mount_sums_done(struct fleet_mounts *m)
{
	free(m->list);
	hr_map64_done(&m->by_name);
}

static struct fleet_job *job_of(struct fleet_sums *l, const struct hr_fleet_stream *s)
{
	uint64_t hash = hr_fnv(hash_text(hash_text(HR_FNV_BASIS, s->cluster), s->job), &s->attempt,
			       sizeof(s->attempt));
	uint32_t i;

	hash = hr_fnv(hash, &s->now.uid, sizeof(s->now.uid));
	i = hr_map64_get(&l->by_name, hash);
	if (i != HR_MAP64_NONE)
		return &l->jobs[i];
	if (!hr_array_reserve(l->jobs, l->n, l->room) ||
	    hr_map64_set(&l->by_name, hash, (uint32_t)l->n))
		return NULL;
	l->jobs[l->n] = (struct fleet_job){.stream = s};
	headrace__fleet_job__init(&l->jobs[l->n].sums);
	return &l->jobs[l->n++];
}

static int add_folder(struct fleet_job *j, const char *node, const struct hr__fleet_folder *f)
{
	struct fleet_folder *to = NULL;

	for (size_t i = 0; i < j->n_folders && !to; i++)
		if (same_path(&j->folders[i].of->path, &f->path))
			to = &j->folders[i];
	if (!to) {
		if (!hr_array_reserve(j->folders, j->n_folders, j->folders_room))
			return -ENOMEM;
		to = &j->folders[j->n_folders++];
		*to = (struct fleet_folder){.of = f, .most = -1};
	}
	to->ops += f->ops;
	if (f->ops > to->most) {
		to->most = f->ops;
		to->node = node;
	}
	return 0;
}

static int add_lists(struct fleet_job *j, const struct hr_fleet_stream *s)
{
	for (size_t i = 0; i < s->now.n_mounts; i++) {
		struct fleet_mount *m = mount_sum_of(&j->mounts, &s->now.mounts[i]);

		if (!m)
			return -ENOMEM;
		hr__rate_add(&m->rate, &s->now.mounts[i].rate);
	}
	for (size_t i = 0; i < s->now.n_folders; i++)
		if (add_folder(j, s->node, &s->now.folders[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < s->now.n_stuck; i++) {
		Headrace__FleetStuck *stuck;

		if (!hr_array_reserve(j->stuck, j->n_stuck, j->stuck_room))
			return -ENOMEM;
		stuck = &j->stuck[j->n_stuck++];
		headrace__fleet_stuck__init(stuck);
		stuck->node = s->node;
		stuck->op = &s->now.stuck[i];
	}
	return 0;
}

static void add_silence(Headrace__FleetJob *m, const struct hr_fleet_stream *s, uint64_t now_ms)
{
	uint64_t heard_ms = s->frame_ms > s->now.heard_ms ? s->frame_ms : s->now.heard_ms;

	if (m->silent_nodes++ > 0 && now_ms - heard_ms <= m->silent_ms)
		return;
	m->silent_ms = now_ms - heard_ms;
	m->silent_node = s->node;
}

/* The median of the earlier checkpoints; 0: too few. */
static uint64_t usual_save_ns(const struct hr__fleet_saves *s)
{
	uint64_t sorted[HR__FLEET_SAVES];
	size_t n = s->n < HR__FLEET_SAVES ? s->n : HR__FLEET_SAVES;

	if (n < HR__FLEET_SAVES_LEAST)
		return 0;
	memcpy(sorted, s->earlier_ns, n * sizeof(*sorted));
	hr_uint64s_sort(sorted, n);
	return sorted[n / 2];
}

static uint64_t last_save_ns(const struct hr_fleet_stream *s)
{
	return s->saves.last.end_ns - s->saves.last.start_ns;
}

static double slowness(const struct hr_fleet_stream *s, uint64_t usual_ns)
{
	return usual_ns > 0 ? (double)last_save_ns(s) / (double)usual_ns : 0;
}

static void add_save(struct fleet_job *j, const struct hr_fleet_stream *s)
{
	uint64_t usual_ns = usual_save_ns(&s->saves);

	if (s->saves.last.end_ns == 0 ||
	    (j->saver && slowness(s, usual_ns) <= slowness(j->saver, j->saver_usual_ns)))
		return;
	j->saver = s;
	j->saver_usual_ns = usual_ns;
}

static int add_stream(struct fleet_sums *l, const struct hr_fleet_stream *s, uint64_t now_ms)
{
	struct fleet_job *j = job_of(l, s);

	if (!j)
		return -ENOMEM;
	if (now_ms - s->now.heard_ms > HR_NOW_FRESH_MS) {
		add_silence(&j->sums, s, now_ms);
		return 0;
	}
	if (hr_map64_set(&j->nodes, hash_text(HR_FNV_BASIS, s->node), 0))
		return -ENOMEM;
	j->sums.processes += s->now.processes;
	j->sums.ranks += s->now.ranks;
	j->sums.loops += s->now.loops;
	j->sums.waiting += s->now.waiting;
	j->sums.steps += s->now.steps;
	j->sums.lost += s->now.lost;
	hr__rate_add(&j->rate, &s->now.rate);
	add_save(j, s);
	if (!j->busiest ||
	    hr__rate_ops(&s->now.rank_rate) > hr__rate_ops(&j->busiest->now.rank_rate))
		j->busiest = s;
	return add_lists(j, s);
}

/* Adds a job to the sums of all jobs. */
static int add_job(struct fleet_sums *l, const struct fleet_job *j, Headrace__Fleet *m)
{
	m->loops += j->sums.loops;
	m->stuck_total += (uint32_t)j->n_stuck;
	m->waiting += j->sums.waiting;
	hr__rate_add(&l->rate, &j->rate);
	for (size_t i = 0; i < j->mounts.n; i++) {
		const struct fleet_mount *of = &j->mounts.list[i];
		struct fleet_mount *sum = mount_sum_of(&l->mounts, of->names);

		if (!sum)
			return -ENOMEM;
		hr__rate_add(&sum->rate, &of->rate);
		if (!sum->job || hr__rate_ops(&of->rate) > sum->most) {
			sum->job = j->stream->job;
			sum->most = hr__rate_ops(&of->rate);
		}
	}
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int most_first(double a, double b)
{
	return (a < b) - (a > b);
}

static int mounts_most_first(const void *a, const void *b)
{
	return most_first(hr__rate_ops(&((const struct fleet_mount *)a)->rate),
			  hr__rate_ops(&((const struct fleet_mount *)b)->rate));
}

static int oldest_first(const void *a, const void *b)
{
	return most_first((double)((const Headrace__FleetStuck *)a)->op->age_ns,
			  (double)((const Headrace__FleetStuck *)b)->op->age_ns);
}

static double by_ops(const struct fleet_job *j)
{
	return hr__rate_ops(&j->rate);
}

static double by_metadata(const struct fleet_job *j)
{
	return j->rate.metadata;
}

static double by_bytes(const struct fleet_job *j)
{
	return j->rate.bytes_read + j->rate.bytes_written;
}

static double by_waiting(const struct fleet_job *j)
{
	return j->sums.waiting;
}

/* The age of the oldest operation that has not returned, in nanoseconds. */
static double by_stuck(const struct fleet_job *j)
{
	double age = 0;

	for (size_t i = 0; i < j->n_stuck; i++)
		age = fmax(age, (double)j->stuck[i].op->age_ns);
	return age;
}

static const struct {
	const char *name;
	double (*value)(const struct fleet_job *j);
} orders[] = {
#define ORDER(name) {#name, by_##name},
    HR_FLEET_ORDERS(ORDER)
#undef ORDER
};

static int jobs_most_first(const void *a, const void *b, void *value)
{
	const struct fleet_job *x = a, *y = b;
	double (*const *of)(const struct fleet_job *) = value;
	int r = most_first((*of)(x), (*of)(y));

	return r != 0 ? r : strcmp(x->stream->job, y->stream->job);
}

/* ---- the message ----------------------------------------------------------------------------- */

static Headrace__FleetRate *rate_in(struct hr_arena *a, const Headrace__FleetRate *r)
{
	Headrace__FleetRate *m = hr_arena_copy(a, r, sizeof(*m));

	if (m)
		m->base.descriptor = &headrace__fleet_rate__descriptor;
	return m;
}

static void put_mounts(struct hr_arena *a, struct fleet_mounts *of, size_t most, size_t *ret_n,
		       Headrace__FleetMount ***ret)
{
	Headrace__FleetMount *rows;

	if (of->n > 0)
		qsort(of->list, of->n, sizeof(*of->list), mounts_most_first);
	rows = hr_rows_in(a, of->n, sizeof(*rows), ret);
	for (size_t i = 0; i < of->n && rows && i < most; i++) {
		const struct fleet_mount *m = &of->list[i];
		double ops = hr__rate_ops(&m->rate);

		headrace__fleet_mount__init(&rows[i]);
		rows[i].path = m->names->path;
		rows[i].fs_type = m->names->fs_type;
		rows[i].rate = rate_in(a, &m->rate);
		rows[i].job = m->job ? hr_arena_text(a, m->job) : rows[i].job;
		rows[i].share = m->job && ops > 0 ? m->most / ops : 0;
		(*ret_n)++;
	}
}

static void put_stuck(struct hr_arena *a, struct fleet_job *j, size_t most, Headrace__FleetJob *m)
{
	size_t n = j->n_stuck < most ? j->n_stuck : most;
	Headrace__FleetStuck *rows = hr_rows_in(a, n, sizeof(*rows), &m->stuck);

	m->stuck_total = (uint32_t)j->n_stuck;
	if (j->n_stuck > 0)
		qsort(j->stuck, j->n_stuck, sizeof(*j->stuck), oldest_first);
	for (size_t i = 0; i < n && rows; i++) {
		rows[i] = j->stuck[i];
		m->n_stuck++;
	}
}

static void put_folder(struct hr_arena *a, const struct fleet_job *j, Headrace__FleetJob *m)
{
	const struct fleet_folder *most = j->folders;

	for (size_t i = 1; i < j->n_folders; i++)
		if (j->folders[i].ops > most->ops)
			most = &j->folders[i];
	m->folder = j->n_folders > 0 ? hr_arena_alloc(a, sizeof(*m->folder)) : NULL;
	if (!m->folder)
		return;
	headrace__fleet_folder__init(m->folder);
	m->folder->node = (char *)(uintptr_t)most->node;
	m->folder->path = most->of->path;
	m->folder->share = hr__rate_ops(&j->rate) > 0 ? most->ops / hr__rate_ops(&j->rate) : 0;
}

static void put_rank(struct hr_arena *a, const struct fleet_job *j, Headrace__FleetJob *m)
{
	m->rank = j->busiest ? hr_arena_alloc(a, sizeof(*m->rank)) : NULL;
	if (!m->rank)
		return;
	headrace__fleet_rank__init(m->rank);
	m->rank->node = j->busiest->node;
	m->rank->rank_plus1 = j->busiest->now.rank_plus1;
	m->rank->rate = rate_in(a, &j->busiest->now.rank_rate);
}

static void put_save(struct hr_arena *a, const struct fleet_job *j, Headrace__FleetJob *m)
{
	m->save = j->saver ? hr_arena_alloc(a, sizeof(*m->save)) : NULL;
	if (!m->save)
		return;
	headrace__fleet_save__init(m->save);
	m->save->node = j->saver->node;
	m->save->rank_plus1 = j->saver->saves.rank_plus1;
	m->save->dur_ns = last_save_ns(j->saver);
	m->save->usual_ns = j->saver_usual_ns;
}

static void put_job(struct hr_arena *a, struct fleet_job *j, size_t max_stuck,
		    Headrace__FleetJob *m)
{
	*m = j->sums;
	m->cluster = j->stream->cluster;
	m->job = j->stream->job;
	m->attempt = j->stream->attempt;
	m->name = j->stream->now.name;
	m->uid = j->stream->now.uid;
	m->user = j->stream->now.user;
	m->nodes = j->nodes.used;
	m->rate = rate_in(a, &j->rate);
	put_rank(a, j, m);
	put_folder(a, j, m);
	put_save(a, j, m);
	put_mounts(a, &j->mounts, HR_FLEET_JOB_MOUNTS, &m->n_mounts, &m->mounts);
	put_stuck(a, j, max_stuck, m);
}

static int put_all(struct fleet_sums *l, const struct hr_fleet_view *view, struct hr_arena *a,
		   Headrace__Fleet *m)
{
	Headrace__FleetJob *rows;
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		r = add_job(l, &l->jobs[i], m);
	rows = hr_rows_in(a, l->n, sizeof(*rows), &m->jobs);
	for (size_t i = 0; i < l->n && rows && i < view->max_jobs; i++) {
		put_job(a, &l->jobs[i], view->max_stuck, &rows[i]);
		m->n_jobs++;
	}
	put_mounts(a, &l->mounts, HR_FLEET_MOUNTS, &m->n_mounts, &m->mounts);
	m->jobs_total = (uint32_t)l->n;
	m->rate = rate_in(a, &l->rate);
	return a->failed ? -ENOMEM : r;
}

static void look_done(struct fleet_sums *l)
{
	for (size_t i = 0; i < l->n; i++) {
		mount_sums_done(&l->jobs[i].mounts);
		hr_map64_done(&l->jobs[i].nodes);
		free(l->jobs[i].folders);
		free(l->jobs[i].stuck);
	}
	free(l->jobs);
	hr_map64_done(&l->by_name);
	mount_sums_done(&l->mounts);
}

static bool is_wanted(const struct hr_fleet_stream *s, const Headrace__Look *look,
		      const struct hr_fleet_view *view)
{
	if (s->now.heard_ms == 0 || !(view->all || s->now.uid == view->uid))
		return false;
	return look->job[0] == '\0' || strcmp(look->job, s->job) == 0 ||
	       strcmp(look->job, s->now.name) == 0;
}

int hr_fleet_look(const struct hr_fleet *f, const Headrace__Look *look,
		  const struct hr_fleet_view *view, uint64_t now_ms, struct hr_arena *memory,
		  Headrace__Fleet *ret)
{
	double (*value)(const struct fleet_job *) = look->by[0] == '\0' ? by_ops : NULL;
	struct fleet_sums l = {0};
	int r = 0;

	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
		if (strcmp(look->by, orders[i].name) == 0)
			value = orders[i].value;
	if (!value)
		return -EINVAL;
	for (const struct hr_fleet_stream *s = f->first; s && r == 0; s = s->next)
		if (is_wanted(s, look, view))
			r = add_stream(&l, s, now_ms);
	if (l.n > 0)
		qsort_r(l.jobs, l.n, sizeof(*l.jobs), jobs_most_first, &value);
	headrace__fleet__init(ret);
	if (r == 0)
		r = put_all(&l, view, memory, ret);
	look_done(&l);
	return r;
}
