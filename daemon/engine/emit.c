/* SPDX-License-Identifier: Apache-2.0 */
/* Makes numbered frames from the engine's state. hr_engine_take returns them. */
#include "common/level.h"
#include "common/rows.h"
#include "daemon/engine/state.h"

/* Limits that keep each frame far below HR_FRAME_MAX_BYTES. */
#define PATHS_MOST_BYTES (4u << 20)
#define EMIT_AHEAD	 4u /* how many file records ahead one is prefetched */

/* ---- names ----------------------------------------------------------------------------------- */

static void fill_excluded(struct hr_out *o, Headrace__Process *m, const struct hr_proc *p)
{
	Headrace__Excluded *rows;
	size_t n = 0, bytes;

	for (uint32_t kind = 0; kind < HR_EXCLUDED_KINDS; kind++)
		n += p->id.excluded[kind] != 0;
	rows = hr_rows_in(&o->arena, n, sizeof(*rows), &m->excluded);
	for (uint32_t kind = 0; kind < HR_EXCLUDED_KINDS && rows; kind++) {
		Headrace__Excluded *row;
		const char *pattern;

		if (!p->id.excluded[kind])
			continue;
		row = &rows[m->n_excluded++];
		headrace__excluded__init(row);
		pattern = hr__excluded_pattern(p, kind, &bytes);
		row->pattern = hr_bytes_in(&o->arena, pattern, bytes);
		row->opens = p->id.excluded[kind];
	}
}

static void fill_process(const struct hr_engine *e, struct hr_out *o, Headrace__Process *m,
			 const struct hr_proc *p)
{
	const struct hr_identity *id = &p->id;

	headrace__process__init(m);
	m->proc = id->proc;
	m->pid = id->pid;
	m->ppid = id->ppid;
	m->parent_proc = id->parent;
	m->exe = hr__kept_path(e, &o->arena, p->exe, p->exe_bytes);
	m->cmdline = hr__kept_command(e, &o->arena, p->cmdline, p->cmdline_bytes);
	m->exec_of = id->exec_of;
	m->start_ns = id->start_ns;
	m->end_ns = p->end_ns;
	m->exit = hr_arena_text(&o->arena, p->exit);
	m->rank_plus1 = id->rank_plus1;
	m->local_rank_plus1 = id->local_plus1;
	m->restart_plus1 = id->restart_plus1;
	m->world_size = id->world;
	m->worker_plus1 = id->worker_plus1;
	if (id->worker_plus1 && hr__loader_worker(e, p)) {
		m->loader_plus1 = id->env.loader_plus1;
		m->loader_worker_plus1 = id->env.loader_worker_plus1;
	}
	m->rank_source = hr_arena_text(&o->arena, hr__rank_source(p));
	m->uid = id->uid;
	m->cpus = id->cpus;
	m->first_cpu = id->first_cpu;
	m->cpu_quota_milli = id->cpu_quota_milli;
	m->deselected = id->deselected;
	fill_excluded(o, m, p);
}

/* Also frees the ended processes: apply_end has put them into the list of dirty processes. */
static void procs_sent(struct hr_engine *e)
{
	struct hr_proc *p = e->dirty, *next;

	e->dirty = e->last_dirty = NULL;
	e->n_dirty = 0;
	for (; p; p = next) {
		next = p->next_dirty;
		p->dirty = p->excluded_unsent = false;
		if (!p->end_ns)
			continue;
		hr__attribute_remove(e, p);
		hr__proc_free(e, p);
	}
}

static void emit_processes(struct hr_engine *e)
{
	struct hr_out *o;
	Headrace__Processes *m = hr__out_message(e, HEADRACE__FRAME__BODY_PROCESSES,
						 &headrace__processes__descriptor, &o);
	Headrace__Process *rows;

	if (!m)
		return;
	rows = hr_rows_in(&o->arena, e->n_dirty, sizeof(*rows), &m->rows);
	for (const struct hr_proc *p = e->dirty; p && rows; p = p->next_dirty)
		fill_process(e, o, &rows[m->n_rows++], p);
	hr__out_end(e, o);
	procs_sent(e);
}

static void fill_mounts(struct hr_engine *e, struct hr_out *o, Headrace__Paths *m)
{
	Headrace__Mount *rows;
	size_t n = 0;

	for (uint32_t i = 0; i < e->mounts.n; i++)
		n += e->mounts.v[i].id && e->mounts.v[i].path && !e->mounts.v[i].sent;
	e->mounts.unsent = false;
	if (!n)
		return;
	rows = hr_rows_in(&o->arena, n, sizeof(*rows), &m->mounts);
	for (uint32_t i = 0; i < e->mounts.n && rows; i++) {
		struct hr_mount *c = &e->mounts.v[i];
		Headrace__Mount *row;

		if (!c->id || !c->path || c->sent)
			continue;
		row = &rows[m->n_mounts++];
		headrace__mount__init(row);
		row->id = c->id;
		row->path = hr__kept_path(e, &o->arena, c->path, strlen(c->path));
		row->fs_type = hr_arena_text(&o->arena, c->fs_type);
		c->sent = true;
	}
}

/* Makes one Paths frame from fresh[from] on. Returns the index where the next frame begins. */
static uint32_t emit_paths(struct hr_engine *e, uint32_t from)
{
	struct hr_paths *paths = &e->paths;
	struct hr_out *o;
	Headrace__Paths *m =
	    hr__out_message(e, HEADRACE__FRAME__BODY_PATHS, &headrace__paths__descriptor, &o);
	Headrace__Path *rows;
	uint32_t to = from;
	uint64_t bytes = 0;

	if (!m)
		return paths->n_fresh;
	for (; to < paths->n_fresh && bytes < PATHS_MOST_BYTES; to++)
		bytes += paths->fresh[to].bytes + 32;
	rows = hr_rows_in(&o->arena, to - from, sizeof(*rows), &m->rows);
	for (uint32_t i = from; i < to && rows; i++) {
		const struct hr_fresh_path *f = &paths->fresh[i];
		const struct hr_path *path = &paths->v[f->path];
		Headrace__Path *row = &rows[m->n_rows++];

		headrace__path__init(row);
		row->id = path->id;
		row->hash = e->privacy ? hr_privacy_hash(e->privacy, path->hash) : path->hash;
		row->path = hr__kept_path(e, &o->arena, f->text, f->bytes);
		row->mount = path->mount;
		row->scope = path->scope;
	}
	if (from == 0)
		fill_mounts(e, o, m);
	hr__out_end(e, o);
	return to;
}

void hr__emit_names(struct hr_engine *e)
{
	uint32_t done = 0;

	if (e->n_dirty)
		emit_processes(e);
	if (!e->paths.n_fresh && !e->mounts.unsent)
		return;
	do
		done = emit_paths(e, done);
	while (done < e->paths.n_fresh);
	hr_names_take(&e->names, &e->paths, &e->filerecs);
	hr_names_tidy(&e->names, &e->filerecs);
	hr_paths_fresh_sent(&e->paths);
}

/* ---- events ---------------------------------------------------------------------------------- */

void hr__emit_batch(struct hr_engine *e)
{
	struct hr_out *o;

	if (!e->batch || e->batch->n == 0)
		return;
	hr__emit_names(e);
	o = hr__out_begin(e, HEADRACE__FRAME__BODY_EVENTS);
	if (!o)
		return;
	o->batch = e->batch;
	o->absence = (struct hr_loss){
	    .reason = HR_LOSS_STORE_FULL, .count = e->batch->n, .bytes = e->batch->bytes_moved};
	e->batch = NULL;
	e->batch_number++;
	e->stats.batches++;
	hr__out_end(e, o);
}

/* ---- aggregates ------------------------------------------------------------------------------ */

/*
 * Returns what is lost if this frame is dropped. If the frame stands alone (without events of its
 * operations), the operations are lost, too.
 */
static struct hr_loss absence_of_rollups(const Headrace__RollupBatch *m)
{
	struct hr_loss l = {.reason = m->alone ? HR_LOSS_STORE_FULL : HR_LOSS_ROLLUPS_FULL};

	for (size_t i = 0; i < m->n_rows; i++) {
		l.count += m->rows[i]->count;
		l.bytes += m->rows[i]->bytes;
	}
	return l;
}

/* Makes one frame of a window from row `from` on. Returns the row where the next frame begins. */
static uint32_t emit_window(struct hr_engine *e, uint64_t window, uint32_t from)
{
	struct hr_rollups *t = &e->rollups;
	struct hr_out *o;
	Headrace__RollupBatch *m = hr__out_message(e, HEADRACE__FRAME__BODY_ROLLUPS,
						   &headrace__rollup_batch__descriptor, &o);
	uint32_t next;

	if (!m)
		return t->n;
	next = hr_rollups_message(&o->arena, t, window, from, m);
	m->alone = e->level != HR_LEVEL_TRACE;
	o->absence = absence_of_rollups(m);
	hr__out_end(e, o);
	return next;
}

void hr__emit_rollups(struct hr_engine *e, uint64_t up_to_window)
{
	struct hr_rollups *t = &e->rollups;

	if (!t->n || t->oldest > up_to_window)
		return;
	hr__emit_names(e);
	while (t->n && t->oldest <= up_to_window) {
		uint64_t window = t->oldest;
		uint32_t from = 0;

		while (from < t->n)
			from = emit_window(e, window, from);
		hr__live_window(e, window);
		hr_rollups_drop(t, window);
	}
}

/* Prefetches file record i, which has probably left the cache. */
static void prefetch_filerec(const struct hr_engine *e, const uint32_t *indexes, size_t n, size_t i)
{
	const char *r = i < n ? (const char *)&e->filerecs.v[indexes[i]] : NULL;

	for (size_t at = 0; r && at < sizeof(struct hr_filerec); at += 64)
		__builtin_prefetch(r + at);
}

void hr__emit_filerecs(struct hr_engine *e, const uint32_t *indexes, size_t n)
{
	while (n) {
		size_t some = n < HR_ROWS_MOST ? n : HR_ROWS_MOST;
		Headrace__FileRecords *m;
		Headrace__FileRecord *rows;
		struct hr_out *o;

		hr__emit_names(e);
		m = hr__out_message(e, HEADRACE__FRAME__BODY_FILE_RECORDS,
				    &headrace__file_records__descriptor, &o);
		if (!m)
			return;
		rows = hr_rows_in(&o->arena, some, sizeof(*rows), &m->rows);
		for (size_t i = 0; i < some && rows; i++) {
			prefetch_filerec(e, indexes, n, i + EMIT_AHEAD);
			hr_filerec_message(&o->arena, &e->filerecs.v[indexes[i]],
					   &rows[m->n_rows++]);
		}
		o->absence = (struct hr_loss){.reason = HR_LOSS_FILES_FULL, .count = some};
		hr__out_end(e, o);
		indexes += some;
		n -= some;
	}
}

void hr__flush_idle(struct hr_engine *e)
{
	uint32_t due[256], n;

	do {
		n = hr_filerecs_due(&e->filerecs, e->now_ns, due, 256);
		if (n)
			hr__emit_filerecs(e, due, n);
		for (uint32_t i = 0; i < n; i++)
			hr_filerec_remove(&e->filerecs, due[i]);
	} while (n == 256);
}

/* ---- losses, levels, the job and its end ----------------------------------------------------- */

void hr__emit_losses(struct hr_engine *e)
{
	struct hr_losses *l = &e->losses;
	Headrace__Loss *m;
	Headrace__LossRow *rows;
	struct hr_out *o;

	m = l->n ? hr__out_message(e, HEADRACE__FRAME__BODY_LOSS, &headrace__loss__descriptor, &o)
		 : NULL;
	if (!m)
		return;
	rows = hr_rows_in(&o->arena, l->n, sizeof(*rows), &m->rows);
	for (uint32_t i = 0; i < l->n && rows; i++) {
		Headrace__LossRow *row = &rows[m->n_rows++];

		headrace__loss_row__init(row);
		row->proc = l->v[i].proc;
		row->reason = hr_arena_text(&o->arena, hr_loss_name(l->v[i].reason));
		row->op = l->v[i].op;
		row->count = l->v[i].count;
		row->bytes = l->v[i].bytes;
		row->dur_ns = l->v[i].dur_ns;
	}
	hr_losses_clear(l);
	hr__out_end(e, o);
}

static Headrace__JobEvent__LabelsEntry **copy_labels(struct hr_arena *arena,
						     const Headrace__JobEvent *job)
{
	Headrace__JobEvent__LabelsEntry **labels =
	    hr_arena_alloc(arena, job->n_labels * sizeof(*labels));

	for (size_t i = 0; i < job->n_labels && labels; i++) {
		labels[i] = hr_arena_copy(arena, job->labels[i], sizeof(*labels[i]));
		if (!labels[i])
			return NULL;
		labels[i]->key = hr_arena_text(arena, job->labels[i]->key);
		labels[i]->value = hr_arena_text(arena, job->labels[i]->value);
	}
	return labels;
}

/* Copies the job: a snapshot may replace it while the appender packs the frame. */
static Headrace__JobEvent *copy_job(struct hr_arena *arena, const Headrace__JobEvent *job)
{
	Headrace__JobEvent *m = hr_arena_copy(arena, job, sizeof(*job));

	if (!m)
		return NULL;
	m->user = hr_arena_text(arena, job->user);
	m->account = hr_arena_text(arena, job->account);
	m->partition = hr_arena_text(arena, job->partition);
	m->name = hr_arena_text(arena, job->name);
	m->array_job = hr_arena_text(arena, job->array_job);
	m->array_task = hr_arena_text(arena, job->array_task);
	m->labels = copy_labels(arena, job);
	if (!m->labels)
		m->n_labels = 0;
	return m;
}

void hr__emit_job(struct hr_engine *e, const char *state, uint64_t end_ns)
{
	struct hr_out *o = hr__out_begin(e, HEADRACE__FRAME__BODY_JOB);
	Headrace__JobEvent *m;

	if (!o)
		return;
	m = copy_job(&o->arena, e->job);
	if (m) {
		m->state = hr_arena_text(&o->arena, state);
		m->end_ns = end_ns;
		o->frame.job = m;
	}
	hr__out_end(e, o);
}

void hr__emit_levels(struct hr_engine *e, uint64_t end_ns)
{
	struct hr_out *o;
	Headrace__Levels *m =
	    hr__out_message(e, HEADRACE__FRAME__BODY_LEVELS, &headrace__levels__descriptor, &o);

	if (!m)
		return;
	m->level = hr_arena_text(&o->arena, hr_level_name(e->level));
	m->start_ns = e->level_since_ns;
	m->end_ns = end_ns;
	hr__out_end(e, o);
}

void hr__emit_end(struct hr_engine *e, const char *state, bool cut_short)
{
	struct hr_out *o;
	Headrace__StreamEnd *m = hr__out_message(e, HEADRACE__FRAME__BODY_STREAM_END,
						 &headrace__stream_end__descriptor, &o);

	if (!m)
		return;
	m->state = hr_arena_text(&o->arena, state);
	m->cut_short = cut_short;
	hr__out_end(e, o);
}
