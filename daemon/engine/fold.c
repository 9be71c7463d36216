/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks one operation, finds its file and position, adds it to all sums, and appends it to the
 * batch.
 *
 * A client wrote the slots, so every field is checked. A record that fails a check is counted and
 * dropped, without any other effect.
 */
#include "daemon/engine/fold.h"

#define BYTES_MOST (UINT64_C(1) << 50)

void hr__fold_hostile(struct fold *f, uint32_t op)
{
	f->e->stats.hostile++;
	hr__loss(f->e, f->p->id.proc, HR_LOSS_HOSTILE, op < HR_OP_MAX ? op : 0, 1);
}

uint32_t hr__fold_find_path(struct fold *f, uint64_t hash, uint16_t scope)
{
	struct hr_proc *p = f->p;

	p->last_path = UINT32_MAX;
	for (uint32_t i = 0; i < p->n_collisions; i++)
		if (p->collisions[i].hash == hash)
			p->last_path = p->collisions[i].path;
	if (p->last_path < f->e->paths.n)
		hr_paths_at(&f->e->paths, p->last_path);
	else
		p->last_path = hr_paths_use(&f->e->paths, hash, scope);
	p->last_hash = hash;
	if (p->last_path == UINT32_MAX)
		f->e->failed = true;
	return p->last_path;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_rollup(struct fold *f, const struct operation *op)
{
	const struct hr_record *r = op->r;
	uint16_t mount = op->path == UINT32_MAX ? 0 : f->e->paths.v[op->path].mount;
	struct hr_rollup *row =
	    hr_rollup_row(&f->e->rollups, hr_rollup_window(&op->of), f->p->id.proc, r->op, mount,
			  r->bits & HR_REC_RUNTIME, &f->p->rollup_of[r->op]);

	if (__builtin_expect(!row, 0)) {
		f->e->failed = true;
		return;
	}
	hr_rollup_add(row, &op->of, op->sized, op->of.failed && r->ret != HR_RET_NONE);
}

static void add_side(struct fold *f, uint16_t side, uint16_t scope, const struct hr_file_op *op)
{
	struct hr_rollup *row = hr_rollup_row(&f->e->rollups, hr_rollup_window(op), f->p->id.proc,
					      side, 0, scope, &f->p->rollup_of[side]);

	if (!row) {
		f->e->failed = true;
		return;
	}
	hr_rollup_add_side(row, op);
}

static void add_singles(struct fold *f, const struct operation *op)
{
	add_side(f, op->of.class == HR_CLASS_READ ? HR_SIDE_SINGLE_READ : HR_SIDE_SINGLE_WRITE,
		 op->r->bits & HR_REC_RUNTIME, &op->of);
}

static void add_to_file(struct fold *f, uint32_t path, uint32_t api, const struct hr_file_op *op)
{
	uint32_t i = hr_filerec_get(&f->e->filerecs, f->p->id.proc, f->e->paths.v[path].id, api,
				    &f->p->last_filerec);

	if (__builtin_expect(i == UINT32_MAX || hr_filerec_add(&f->e->filerecs, i, op), 0))
		f->e->failed = true;
}

/* Adds a copy from the first file to the second. */
static void add_to_both(struct fold *f, const struct operation *op)
{
	bool has_first = op->path != UINT32_MAX, has_second = op->path2 != UINT32_MAX;
	struct hr_file_op first, second;
	bool moves =
	    hr_file_op_divide(&op->of, op->offset2, has_first, has_second, &first, &second);

	if (has_first) {
		add_to_file(f, op->path, op->trait.api, &first);
		if (moves)
			add_side(f, HR_SIDE_COPY_READ, f->e->paths.v[op->path].scope, &first);
	}
	if (has_second) {
		add_to_file(f, op->path2, op->trait.api, &second);
		if (moves)
			add_side(f, HR_SIDE_COPY_WRITE, f->e->paths.v[op->path2].scope, &second);
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint32_t find_task(struct fold *f)
{
	struct hr_ring_state *ring = f->ring;
	struct hr_batch *b = f->e->batch;
	uint32_t i;

	for (i = 0; i < b->n_tasks; i++)
		if (b->tasks[i].proc == f->p->id.proc && b->tasks[i].tid == ring->kept.tid)
			break;
	if (i == b->n_tasks) {
		b->tasks[i] = (struct hr_task){f->p->id.proc, ring->kept.tid};
		b->n_tasks++;
	}
	ring->task = i;
	ring->task_batch = f->e->batch_number;
	return i;
}

/* Returns the open batch, or a new one if the open batch is full. */
static struct hr_batch *open_batch(struct hr_engine *e)
{
	hr__emit_batch(e);
	e->batch = hr_batch_get(e->pool);
	if (!e->batch) {
		e->failed = true;
		return NULL;
	}
	e->batch->first_ns = e->now_ns;
	return e->batch;
}

static void add_event(struct fold *f, const struct operation *op)
{
	const struct hr_record *r = op->r;
	const struct hr_path *paths = f->e->paths.v;
	struct hr_batch *b = f->e->batch;
	uint32_t task;

	if (__builtin_expect(!b || b->n >= HR_BATCH_EVENTS || b->n_tasks >= HR_BATCH_TASKS, 0))
		b = open_batch(f->e);
	if (!b)
		return;
	task = f->ring->task_batch == f->e->batch_number ? f->ring->task : find_task(f);
	b->events[b->n++] = (struct hr_event){
	    .start_ns = op->of.start_ns,
	    .dur_ns = op->of.dur_ns,
	    .offset = op->of.offset,
	    .ret = r->ret,
	    .asked = r->asked,
	    .file = op->path == UINT32_MAX ? 0 : paths[op->path].id,
	    .file2 = op->path2 == UINT32_MAX ? 0 : paths[op->path2].id,
	    .task = task,
	    .flags = r->flags,
	    .fd = r->fd,
	    .op = r->op,
	    .bits = (uint16_t)((r->bits & (HR_EV_SCOPE_RUNTIME | HR_EV_CUT)) | f->ring->source),
	};
	b->bytes_moved += op->of.bytes;
	f->e->stats.events++;
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Checks and converts a record. Returns false if no correct client writes such a record. */
static bool understand(const struct fold *f, const struct hr_record *r, struct operation *op)
{
	uint64_t dur = hr_record_dur(r);
	bool aggregate = r->bits & HR_REC_AGGREGATE;

	op->r = r;
	op->trait = f->e->trait[r->op < HR_OP_MAX ? r->op : 0];
	if (op->trait.class == HR_CLASS_NONE || r->fd < -1 || r->start_ticks < f->p->id.min_ticks ||
	    r->start_ticks > f->max_ticks || dur > f->max_ticks - r->start_ticks)
		return false;
	op->of.count = aggregate ? r->asked : 1;
	if (op->of.count < 1 || op->of.count > UINT64_C(2) * HR_AGGREGATE_CALLS)
		return false;
	op->of.bytes = aggregate ? (uint64_t)r->ret
				 : hr_bytes_moved(op->trait.bytes_rule, r->ret, r->asked, r->flags);
	op->sized = op->of.bytes != UINT64_MAX;
	if (!op->sized)
		op->of.bytes = 0;
	else if (op->of.bytes > BYTES_MOST)
		return false;
	op->of.class = op->trait.class;
	op->of.failed = r->ret < 0;
	op->of.start_ns = hr_ticks_ns(&f->e->line, r->start_ticks);
	if (__builtin_expect(op->of.start_ns < f->p->id.start_ns, 0)) { /* corrects the start */
		f->p->id.start_ns = op->of.start_ns;
		hr__proc_dirty(f->e, f->p);
	}
	op->of.dur_ns = hr_ticks_span_ns(&f->e->line, dur);
	op->of.offset = r->offset > INT64_MAX / 2 ? HR_OFFSET_NONE : r->offset;
	return true;
}

/* Returns a key that identifies an operation of a thread: its start tick and its op. */
static uint64_t seen_key(uint64_t start_ticks, uint16_t op)
{
	return start_ticks ^ (uint64_t)op << 52;
}

/*
 * Keeps the last few operations of a ring: signal handlers nest, and each level may leave an
 * operation in the ring's cell.
 */
static void note_seen(struct hr_ring_state *ring, const struct hr_record *r)
{
	ring->kept.seen[ring->kept.n_seen++ % HR_RING_SEEN] = seen_key(r->start_ticks, r->op);
}

bool hr__fold_seen(const struct hr_ring_state *ring, const struct hr_inflight *c)
{
	uint64_t key = seen_key(c->start_ticks, c->op);

	for (uint32_t i = 0; i < HR_RING_SEEN; i++)
		if (ring->kept.seen[i] == key)
			return true;
	return false;
}

void hr__fold(struct fold *f, const struct hr_record *r, const struct hr_pair *pair)
{
	struct hr_engine *e = f->e;
	struct operation op;

	e->stats.records++;
	if (!understand(f, r, &op)) {
		hr__fold_hostile(f, r->op);
		return;
	}
	note_seen(f->ring, r);
	op.pair = pair;
	op.offset2 = pair ? pair->offset : HR_OFFSET_NONE;
	op.path2 = pair ? hr__fold_path(f, pair->file, pair->bits & HR_REC_RUNTIME) : UINT32_MAX;
	op.path = hr__fold_path(f, r->file, r->bits & HR_REC_RUNTIME);
	if (op.trait.effect == HR_FD_MOVE)
		hr__fd_move(f, &op);
	e->stats.bytes_moved += op.of.bytes;
	if (op.of.class == HR_CLASS_READ || pair)
		e->stats.read_bytes += op.of.bytes;
	if (op.of.class == HR_CLASS_WRITE || pair)
		e->stats.written_bytes += op.of.bytes;
	if (__builtin_expect(pair != NULL, 0))
		add_to_both(f, &op);
	else if (op.path != UINT32_MAX)
		add_to_file(f, op.path, op.trait.api, &op.of);
	if (op.trait.effect > HR_FD_MOVE)
		hr__fd_effects(f, &op);
	if (r->bits & HR_REC_AGGREGATE) {
		f->ring->kept.aggregate_gen = r->flags;
		add_singles(f, &op);
	} else {
		add_rollup(f, &op);
		if (e->level == HR_LEVEL_TRACE)
			add_event(f, &op);
	}
	if (!f->p->id.read_data && r->ret >= 0 && !(r->bits & HR_REC_RUNTIME) && r->file &&
	    (op.trait.class == HR_CLASS_READ || op.trait.class == HR_CLASS_MAP))
		hr__attribute_read(e, f->p);
}
