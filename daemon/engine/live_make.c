/* SPDX-License-Identifier: Apache-2.0 */
/* Makes pictures of the engine's state (live.h), and adds up the rows that the engine sends. */
#include <errno.h>

#include "common/level.h"
#include "common/rows.h"
#include "daemon/engine/state.h"

#define PROCESSES_MOST 4096u
#define CMDLINE_BYTES  96u
#define PATHS_BYTES    (1u << 20) /* maximum bytes of the paths of all files in a picture */

/* ---- adding up ------------------------------------------------------------------------------- */

/* Returns the row of the job's sums to which a row of a window is added. */
static uint32_t row_of(struct hr_engine *e, const struct hr_rollup *r)
{
	bool known =
	    hr__proc_find(e, r->proc) || hr_map64_get(&e->live.by_ended, r->proc) != HR_MAP64_NONE;

	return hr_live_row(&e->live, known ? r->proc : 0, r->op, r->mount);
}

void hr__live_window(struct hr_engine *e, uint64_t window)
{
	const struct hr_rollups *t = &e->rollups;

	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t k;

		if (t->v[i].window != window || t->v[i].op < HR_OP_FIRST)
			continue;
		k = row_of(e, &t->v[i]);
		if (k != UINT32_MAX)
			hr_live_add(&e->live.v[k], &t->v[i]);
	}
}

/* Returns the name of the executable without folders, or the part that privacy rules allow. */
static ProtobufCBinaryData live_make_name_of(const struct hr_engine *e, struct hr_arena *a,
					     const struct hr_proc *p)
{
	ProtobufCBinaryData exe = hr__kept_path(e, a, p->exe, p->exe_bytes);
	const uint8_t *slash = exe.len ? memrchr(exe.data, '/', exe.len) : NULL;

	if (slash) {
		exe.len -= (size_t)(slash + 1 - exe.data);
		exe.data += slash + 1 - exe.data;
	}
	return exe;
}

void hr__live_end(struct hr_engine *e, const struct hr_proc *p)
{
	struct hr_live_ended who = {
	    .proc = p->id.proc,
	    .start_ns = p->id.start_ns,
	    .end_ns = p->end_ns,
	    .pid = p->id.pid,
	    .rank_plus1 = p->id.rank_plus1,
	    .local_plus1 = p->id.local_plus1,
	    .worker_plus1 = p->id.worker_plus1,
	    .wait_ns = p->wait_ns,
	    .steps = p->steps,
	};
	struct hr_arena arena = {0};
	ProtobufCBinaryData name = live_make_name_of(e, &arena, p);

	if (name.len)
		memcpy(who.name, name.data,
		       name.len < sizeof(who.name) ? name.len : sizeof(who.name) - 1);
	hr_arena_free(&arena);
	hr_live_end(&e->live, &who);
}

/* ---- making a picture ------------------------------------------------------------------------ */

static void fill_process(const struct hr_engine *e, struct hr_live_picture *p,
			 Headrace__LiveProcess *m, const struct hr_proc *of)
{
	m->proc = of->id.proc;
	m->pid = (uint32_t)of->id.pid;
	m->rank_plus1 = of->id.rank_plus1;
	m->local_rank_plus1 = of->id.local_plus1;
	m->worker_plus1 = of->id.worker_plus1;
	m->name = live_make_name_of(e, &p->arena, of);
	if (m->name.len > CMDLINE_BYTES)
		m->name.len = CMDLINE_BYTES;
	m->cmdline = hr__kept_command(e, &p->arena, of->cmdline, of->cmdline_bytes);
	if (m->cmdline.len > CMDLINE_BYTES)
		m->cmdline.len = CMDLINE_BYTES;
	m->start_ns = of->id.start_ns;
	m->wait_ns = of->wait_ns;
	m->steps = of->steps;
	m->save_start_ns = of->save.start_ns;
	m->save_end_ns = of->save.end_ns;
	if (of->hang.since_ns == 0)
		return;
	m->hang_ns = of->hang.since_ns;
	m->hang_work = hr_arena_text(&p->arena, of->hang.work);
	m->hang_line = hr_arena_text(&p->arena, of->hang.line);
}

static void fill_ended(struct hr_live_picture *p, Headrace__LiveProcess *m,
		       const struct hr_live_ended *of)
{
	m->proc = of->proc;
	m->pid = (uint32_t)of->pid;
	m->rank_plus1 = of->rank_plus1;
	m->local_rank_plus1 = of->local_plus1;
	m->worker_plus1 = of->worker_plus1;
	m->name = hr_bytes_in(&p->arena, of->name, strlen(of->name));
	m->start_ns = of->start_ns;
	m->end_ns = of->end_ns;
	m->ended = of->ended;
	m->wait_ns = of->wait_ns;
	m->steps = of->steps;
}

static void add_processes(const struct hr_engine *e, struct hr_live_picture *p)
{
	Headrace__LiveProcess *rows;
	size_t live = 0, n = 0, most;

	for (const struct hr_proc *of = e->first; of; of = of->next)
		live += of->end_ns == 0;
	most = live < PROCESSES_MOST ? live : PROCESSES_MOST;
	p->m.processes_cut = (uint32_t)(live - most);
	rows = hr_rows_in(&p->arena, most + e->live.n_ended, sizeof(*rows), &p->m.processes);
	for (const struct hr_proc *of = e->first; of && rows && n < most; of = of->next) {
		if (of->end_ns)
			continue;
		headrace__live_process__init(&rows[n]);
		fill_process(e, p, &rows[n++], of);
	}
	for (uint32_t i = 0; i < e->live.n_ended && rows; i++) {
		headrace__live_process__init(&rows[n]);
		fill_ended(p, &rows[n++], &e->live.ended[i]);
	}
	p->m.n_processes = n;
}

/*
 * Returns the totals of the sums and the open windows, in a malloc'ed array. NULL: there are no
 * rows, or no memory.
 */
static struct hr_live_row *sums(struct hr_engine *e)
{
	const struct hr_rollups *t = &e->rollups;
	struct hr_live_row *v;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].op >= HR_OP_FIRST)
			row_of(e, &t->v[i]);
	v = e->live.n ? malloc(e->live.n * sizeof(*v)) : NULL;
	if (!v)
		return NULL;
	memcpy(v, e->live.v, e->live.n * sizeof(*v));
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t k = t->v[i].op >= HR_OP_FIRST ? row_of(e, &t->v[i]) : UINT32_MAX;

		if (k < e->live.n)
			hr_live_add(&v[k], &t->v[i]);
	}
	return v;
}

static void fill_row(struct hr_live_picture *p, Headrace__LiveRow *m, const struct hr_live_row *r)
{
	uint64_t pairs[2 * HR_LIVE_BINS];
	size_t used = 0;

	headrace__live_row__init(m);
	m->proc = r->proc;
	m->op = r->op;
	m->mount = r->mount;
	m->count = r->count;
	m->bytes = r->bytes;
	m->errors = r->errors;
	m->dur_ns = r->dur_ns;
	m->max_dur_ns = r->max_dur_ns;
	for (uint32_t i = 0; i < HR_LIVE_BINS; i++) {
		if (!r->dur_hist[i])
			continue;
		pairs[used++] = i;
		pairs[used++] = r->dur_hist[i];
	}
	m->dur_hist = hr_arena_copy(&p->arena, pairs, used * sizeof(*pairs));
	m->n_dur_hist = m->dur_hist ? used : 0;
}

static void live_make_add_rows(struct hr_engine *e, struct hr_live_picture *p)
{
	struct hr_live_row *v = sums(e);
	Headrace__LiveRow *rows =
	    hr_rows_in(&p->arena, v ? e->live.n : 0, sizeof(*rows), &p->m.rows);

	for (uint32_t i = 0; i < e->live.n && rows; i++)
		fill_row(p, &rows[p->m.n_rows++], &v[i]);
	p->arena.failed = p->arena.failed || (e->live.n && !v);
	free(v);
}

static void add_mounts(const struct hr_engine *e, struct hr_live_picture *p)
{
	Headrace__LiveMount *rows;
	size_t n = 0;

	for (uint32_t i = 0; i < e->mounts.n; i++)
		n += e->mounts.v[i].id && e->mounts.v[i].path;
	rows = hr_rows_in(&p->arena, n, sizeof(*rows), &p->m.mounts);
	for (uint32_t i = 0; i < e->mounts.n && rows; i++) {
		const struct hr_mount *of = &e->mounts.v[i];
		Headrace__LiveMount *m = &rows[p->m.n_mounts];

		if (!of->id || !of->path)
			continue;
		p->m.n_mounts++;
		headrace__live_mount__init(m);
		m->id = of->id;
		m->path = hr__kept_path(e, &p->arena, of->path, strlen(of->path));
		m->fs_type = hr_arena_text(&p->arena, of->fs_type);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static void live_make_add_use(struct hr_live_picture *p, Headrace__LiveUse *rows,
			      const struct hr_filerec *r)
{
	Headrace__LiveUse *m = &rows[p->m.n_uses++];
	struct hr_filerec_past all = hr_filerec_all(r);

	headrace__live_use__init(m);
	m->proc = r->t.proc;
	m->file = r->t.file;
	m->api = r->t.api;
	m->ops = all.ops;
	m->bytes_read = all.bytes_read;
	m->bytes_written = all.bytes_written;
	m->dur_ns = all.dur_ns;
	m->max_dur_ns = all.max_ns;
	m->open = r->t.refs > 0;
}

static void add_uses(const struct hr_engine *e, struct hr_live_picture *p)
{
	const struct hr_filerecs *f = &e->filerecs;
	Headrace__LiveUse *rows = hr_rows_in(&p->arena, f->live, sizeof(*rows), &p->m.uses);
	uint32_t first[] = {f->open.oldest, f->idle.oldest};

	for (int k = 0; k < 2 && rows; k++)
		for (uint32_t i = first[k]; i != UINT32_MAX && p->m.n_uses < f->live;
		     i = f->links[i].newer)
			live_make_add_use(p, rows, &f->v[i]);
}

static void name_file(const struct hr_map64 *wanted, Headrace__LiveFile *rows,
		      const struct hr_name *name)
{
	uint32_t i = hr_map64_get(wanted, name->file);

	if (i == HR_MAP64_NONE)
		return;
	rows[i].mount = name->mount;
	/* copy_names replaces the pointer by a copy */
	rows[i].path.data = (uint8_t *)(uintptr_t)name->text;
	rows[i].path.len = name->bytes;
}

static void number_file(struct hr_live_picture *p, struct hr_map64 *wanted,
			Headrace__LiveFile *rows, uint32_t file)
{
	if (!file || hr_map64_get(wanted, file) != HR_MAP64_NONE ||
	    hr_map64_set(wanted, file, (uint32_t)p->m.n_files))
		return;
	headrace__live_file__init(&rows[p->m.n_files]);
	rows[p->m.n_files++].id = file;
}

static void number_files(struct hr_live_picture *p, struct hr_map64 *wanted,
			 Headrace__LiveFile *rows)
{
	for (size_t i = 0; p->m.uses && i < p->m.n_uses; i++)
		number_file(p, wanted, rows, p->m.uses[i]->file);
	for (size_t i = 0; p->m.in_flight && i < p->m.n_in_flight; i++)
		number_file(p, wanted, rows, p->m.in_flight[i]->file);
}

/* Drops files without a name: they were closed early, so their names were not kept (names.h). */
static void drop_nameless(struct hr_live_picture *p, const struct hr_map64 *wanted,
			  const Headrace__LiveFile *rows)
{
	size_t n = 0;

	for (size_t i = 0; p->m.uses && i < p->m.n_uses; i++) {
		uint32_t k = hr_map64_get(wanted, p->m.uses[i]->file);

		if (p->m.uses[i]->open || (k != HR_MAP64_NONE && rows[k].path.len))
			p->m.uses[n++] = p->m.uses[i];
	}
	p->m.n_uses = n;
}

static void copy_names(const struct hr_engine *e, struct hr_live_picture *p,
		       Headrace__LiveFile *rows)
{
	size_t bytes = 0;

	for (size_t i = 0; i < p->m.n_files; i++) {
		ProtobufCBinaryData *path = &rows[i].path;

		bytes += path->len;
		p->m.files_cut += bytes > PATHS_BYTES && path->len;
		*path = bytes > PATHS_BYTES ? (ProtobufCBinaryData){0}
					    : hr__kept_path(e, &p->arena, path->data, path->len);
	}
}

static void add_files(const struct hr_engine *e, struct hr_live_picture *p)
{
	struct hr_map64 wanted = {0};
	Headrace__LiveFile *rows =
	    hr_rows_in(&p->arena, p->m.n_uses + p->m.n_in_flight, sizeof(*rows), &p->m.files);

	if (!rows)
		return;
	number_files(p, &wanted, rows);
	for (uint32_t i = 0; i < e->names.n; i++)
		name_file(&wanted, rows, &e->names.v[i]);
	for (uint32_t i = 0; i < e->paths.n_fresh; i++) {
		const struct hr_fresh_path *f = &e->paths.fresh[i];
		const struct hr_path *path = &e->paths.v[f->path];

		if (f->text)
			name_file(
			    &wanted, rows,
			    &(struct hr_name){f->text, path->id, (uint16_t)f->bytes, path->mount});
	}
	drop_nameless(p, &wanted, rows);
	hr_map64_done(&wanted);
	copy_names(e, p, rows);
}

/* ---- in flight ------------------------------------------------------------------------------- */

static uint32_t file_of(const struct hr_engine *e, const struct hr_proc *p, uint64_t hash)
{
	uint32_t path = hash ? hr_map64_get(&e->paths.by_hash, hash) : HR_MAP64_NONE;

	for (uint32_t i = 0; i < p->n_collisions && hash; i++)
		if (p->collisions[i].hash == hash)
			path = p->collisions[i].path;
	return path < e->paths.n ? e->paths.v[path].id : 0;
}

/* Ignores unknown operations and processes, because clients wrote the cells. */
static void add_in_flight(const struct hr_engine *e, struct hr_live_picture *p, uint64_t now_ns,
			  const struct hr_live_cell *cells, size_t n)
{
	Headrace__LiveInFlight *rows = hr_rows_in(&p->arena, n, sizeof(*rows), &p->m.in_flight);

	for (size_t i = 0; i < n && rows; i++) {
		const struct hr_inflight *cell = &cells[i].cell;
		const struct hr_proc *of = hr__proc_find(e, cells[i].proc);
		uint32_t ring = cells[i].map * HR_MAP_RINGS + cells[i].ring;
		Headrace__LiveInFlight *m = &rows[p->m.n_in_flight];

		if (!of || cell->op >= HR_OP_MAX || !e->trait[cell->op].class ||
		    cells[i].age_ns > now_ns)
			continue;
		p->m.n_in_flight++;
		headrace__live_in_flight__init(m);
		m->proc = cells[i].proc;
		m->tid = ring < of->n_rings ? of->rings[ring].kept.tid : 0;
		m->op = cell->op;
		m->file = file_of(e, of, cell->file);
		m->fd = cell->fd;
		m->since_ns = now_ns - cells[i].age_ns;
		m->asked = cell->asked == HR_ASKED_NONE ? 0 : cell->asked;
	}
}

/* ---- the message ----------------------------------------------------------------------------- */

int hr_engine_live(struct hr_engine *e, const struct hr_clock_sample *now,
		   const struct hr_live_cell *cells, size_t n, struct hr_live_picture **ret)
{
	struct hr_live_picture *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	headrace__live_job__init(&p->m);
	p->m.boot_ns = now->boot_ns;
	p->m.real_ns = now->real_ns;
	p->m.level = hr_arena_text(&p->arena, hr_level_name(e->level));
	p->m.name = hr_arena_text(&p->arena, e->job ? e->job->name : "");
	p->m.since_ns = e->live.since_ns;
	p->m.whole = e->live.whole && !e->live.failed;
	p->m.lost = e->stats.lost + e->stats.torn;
	p->m.processes_total = e->stats.processes_total;
	add_processes(e, p);
	live_make_add_rows(e, p);
	p->m.rows_cut = e->live.cut;
	add_mounts(e, p);
	add_uses(e, p);
	add_in_flight(e, p, now->boot_ns, cells, n);
	add_files(e, p);
	if (p->arena.failed) {
		hr_live_free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

void hr_live_free(struct hr_live_picture *p)
{
	if (!p)
		return;
	hr_arena_free(&p->arena);
	free(p);
}

int hr_live_pack(const struct hr_live_picture *p, uint8_t **ret, size_t *ret_bytes)
{
	size_t bytes = headrace__live_job__get_packed_size(&p->m);
	uint8_t *packed = malloc(bytes + 1);

	if (!packed)
		return -ENOMEM;
	*ret_bytes = headrace__live_job__pack(&p->m, packed);
	*ret = packed;
	return 0;
}
