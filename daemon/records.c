/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record after the other: checked, given its file and position, appended to the batch, and added up.
 *
 * Slots were copied out of shared memory once, but a client wrote them: nothing is believed. A record that fails a
 * check is counted and dropped, and has no other effect.
 */
#include "daemon/fold.h"

#define CLOCK_SLACK_NS UINT64_C(1000000000)
#define BYTES_MOST     (UINT64_C(1) << 50) /* in one operation */
#define CALLS_MOST     (UINT64_C(1) << 31) /* in one aggregate */
#define TEXT_MOST      8192u
/* Slots between the one in work and those whose file is looked up: its cell, its row, the cell of its record. */
#define CELL_AHEAD   18
#define ROW_AHEAD    12
#define RECORD_AHEAD 6

struct cursor {
	const struct hr_record *slots;
	uint32_t n, at;
	uint64_t end; /* of the next record */
	struct hr_ring_state *ring;
};

static void hostile(struct fold *f, uint32_t op)
{
	f->e->stats.hostile++;
	hr__loss(f->e, f->p->id.proc, HR_LOSS_HOSTILE, op < HR_OP_MAX ? op : 0, 1);
}

/* ---- files ---------------------------------------------------------------------------------------- */

static uint32_t path_of(struct fold *f, uint64_t hash, uint16_t scope)
{
	struct hr_proc *p = f->p;

	if (hash == 0)
		return UINT32_MAX;
	if (hash == p->last_hash && p->last_path < f->e->paths.n &&
	    f->e->paths.v[p->last_path].hash == hash)
		return p->last_path;
	p->last_path = UINT32_MAX;
	for (uint32_t i = 0; i < p->n_collisions; i++)
		if (p->collisions[i].hash == hash)
			p->last_path = p->collisions[i].path;
	if (p->last_path >= f->e->paths.n)
		p->last_path = hr_paths_use(&f->e->paths, hash, scope);
	p->last_hash = hash;
	if (p->last_path == UINT32_MAX)
		f->e->failed = true;
	return p->last_path;
}

static void note_collision(struct hr_proc *p, uint64_t hash, uint32_t path)
{
	uint32_t i = 0;

	while (i < p->n_collisions && p->collisions[i].hash != hash)
		i++;
	if (i == HR_PROC_COLLISIONS)
		return;
	p->n_collisions += i == p->n_collisions;
	p->collisions[i].hash = hash;
	p->collisions[i].path = path;
	p->last_hash = 0;
}

static void take_path(struct fold *f, const struct hr_record *r, const uint8_t *text)
{
	struct hr_engine *e = f->e;
	bool missing = false;
	uint32_t index;
	uint16_t mount;
	int second;

	if (r->file == 0) {
		hostile(f, 0);
		return;
	}
	mount = hr_mounts_find(&e->mounts, r->ret, r->offset, text, (uint32_t)r->asked, &missing);
	if (missing)
		e->mounts_wanted = f->p->id.proc;
	/* A process that was told apart before says its own text again. */
	for (uint32_t i = 0; i < f->p->n_collisions; i++)
		if (f->p->collisions[i].hash == r->file)
			return;
	second = hr_paths_name(&e->paths, r->file, text, (uint32_t)r->asked, mount,
			       r->bits & HR_REC_RUNTIME ? 1 : 0, &index);
	if (second < 0) {
		e->failed = true;
		return;
	}
	/* Most often the next record opens it. */
	hr_filerec_prefetch(&e->filerecs, f->p->id.proc, hr_paths_at(&e->paths, index)->id,
			    HR_API_POSIX);
	if (second == 1) {
		hr__loss(e, f->p->id.proc, HR_LOSS_COLLISION, 0, 1);
		note_collision(f->p, r->file, index);
	}
}

/* A control record with text: returns the slots it took. */
static uint32_t take_text(struct fold *f, const struct hr_record *r, uint32_t left)
{
	const struct hr_text *parts = (const struct hr_text *)(r + 1);
	uint8_t text[TEXT_MOST + HR_TEXT_BYTES];
	uint32_t n;

	if (r->asked < 1 || r->asked > TEXT_MOST) {
		hostile(f, 0);
		return 1;
	}
	n = (uint32_t)(r->asked + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES;
	if (n >= left) {
		hostile(f, 0);
		return 1;
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(text + (size_t)i * HR_TEXT_BYTES, parts[i].text, HR_TEXT_BYTES);
	if (r->op == HR_CTL_PATH)
		take_path(f, r, text);
	else
		hr__attribute_env(f->e, f->p, (const char *)text, r->asked);
	return n + 1;
}

/* ---- sums ----------------------------------------------------------------------------------------- */

static void add_rollup(struct fold *f, const struct operation *op)
{
	const struct hr_record *r = op->r;
	uint16_t mount = op->path == UINT32_MAX ? 0 : f->e->paths.v[op->path].mount;
	struct hr_rollup *row =
	    hr_rollup_row(&f->e->rollups, (op->start_ns + op->dur_ns) / HR_WINDOW_NS, f->p->id.proc,
			  r->op, mount, r->bits & HR_REC_RUNTIME, &f->p->rollup_of[r->op]);

	if (__builtin_expect(!row, 0)) {
		f->e->failed = true;
		return;
	}
	row->count++;
	row->errors += r->ret < 0 && r->ret != HR_RET_NONE;
	row->dur_ns += op->dur_ns;
	if (op->dur_ns > row->max_dur_ns)
		row->max_dur_ns = op->dur_ns;
	row->dur_hist[hr_log2_bin(op->dur_ns)]++;
	if (op->bytes == UINT64_MAX)
		return;
	row->bytes += op->bytes;
	row->size_hist[hr_log2_bin(op->bytes)]++;
}

static void add_to_file(struct fold *f, uint32_t path, uint32_t api, const struct hr_file_op *op)
{
	uint32_t i = hr_filerec_get(&f->e->filerecs, f->p->id.proc, f->e->paths.v[path].id, api,
				    &f->p->last_filerec);

	if (i == UINT32_MAX)
		f->e->failed = true;
	else
		f->e->failed |= hr_filerec_add(&f->e->filerecs, i, op) != 0;
}

static void add_filerec(struct fold *f, const struct operation *op)
{
	struct hr_file_op o = {
	    .class = op->trait.class,
	    .failed = op->r->ret < 0,
	    .offset = op->offset,
	    .bytes = op->bytes == UINT64_MAX ? 0 : op->bytes,
	    .count = op->calls,
	    .start_ns = op->start_ns,
	    .dur_ns = op->dur_ns,
	};

	if (!op->pair) {
		if (op->path != UINT32_MAX)
			add_to_file(f, op->path, op->trait.api, &o);
		return;
	}
	/* Two files: data goes from the first to the second, and the time counts once. */
	if (o.class == HR_CLASS_WRITE)
		o.dur_ns = 0;
	if (o.class == HR_CLASS_READ || o.class == HR_CLASS_WRITE)
		o.class = HR_CLASS_READ;
	if (op->path != UINT32_MAX)
		add_to_file(f, op->path, op->trait.api, &o);
	o.dur_ns = op->trait.class == HR_CLASS_WRITE ? op->dur_ns : 0;
	if (o.class == HR_CLASS_READ)
		o.class = HR_CLASS_WRITE;
	o.offset = op->offset2;
	if (op->path2 != UINT32_MAX)
		add_to_file(f, op->path2, op->trait.api, &o);
}

/* ---- events --------------------------------------------------------------------------------------- */

static uint32_t task_of(struct fold *f)
{
	struct hr_ring_state *ring = f->ring;
	struct hr_batch *b = f->e->batch;
	uint32_t i;

	if (ring->task_batch == f->e->batch_number)
		return ring->task;
	for (i = 0; i < b->n_tasks; i++)
		if (b->tasks[i].proc == f->p->id.proc && b->tasks[i].tid == ring->tid)
			break;
	if (i == b->n_tasks) {
		b->tasks[i] = (struct hr_task){f->p->id.proc, ring->tid};
		b->n_tasks++;
	}
	ring->task = i;
	ring->task_batch = f->e->batch_number;
	return i;
}

/* The batch with room for one more event and one more task. */
static struct hr_batch *open_batch(struct hr_engine *e)
{
	if (e->batch && e->batch->n < HR_BATCH_EVENTS && e->batch->n_tasks < HR_BATCH_TASKS)
		return e->batch;
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
	struct hr_batch *b = open_batch(f->e);
	const struct hr_path *paths = f->e->paths.v;

	if (!b)
		return;
	b->events[b->n] = (struct hr_event){
	    .start_ns = op->start_ns,
	    .dur_ns = op->dur_ns,
	    .offset = op->offset,
	    .ret = r->ret,
	    .asked = r->asked,
	    .file = op->path == UINT32_MAX ? 0 : paths[op->path].id,
	    .file2 = op->path2 == UINT32_MAX ? 0 : paths[op->path2].id,
	    .task = task_of(f),
	    .flags = r->flags,
	    .fd = r->fd,
	    .op = r->op,
	    .bits = r->bits & (HR_EV_SCOPE_RUNTIME | HR_EV_CUT),
	};
	b->n++;
	b->bytes_moved += op->bytes == UINT64_MAX ? 0 : op->bytes;
	f->e->stats.events++;
}

/* ---- one record ----------------------------------------------------------------------------------- */

/* Checks and converts; false: hostile. */
static bool understand(const struct fold *f, const struct hr_record *r, struct operation *op)
{
	uint64_t dur = (uint64_t)r->dur_hi << 32 | r->dur_lo;
	bool aggregate = r->bits & HR_REC_AGGREGATE;

	op->r = r;
	op->trait = f->e->trait[r->op < HR_OP_MAX ? r->op : 0];
	if (op->trait.class == HR_CLASS_NONE || r->fd < -1 || r->start_ticks < f->p->id.min_ticks ||
	    r->start_ticks > f->max_ticks || (!aggregate && dur > f->max_ticks - r->start_ticks))
		return false;
	op->calls = aggregate ? r->asked : 1;
	if (op->calls < 1 || op->calls > CALLS_MOST)
		return false;
	op->bytes = aggregate ? (uint64_t)r->ret
			      : hr_bytes_moved(op->trait.bytes_rule, r->ret, r->asked, r->flags);
	if (op->bytes > BYTES_MOST && op->bytes != UINT64_MAX)
		return false;
	op->start_ns = hr_ticks_ns(&f->e->line, r->start_ticks);
	op->dur_ns = hr_ticks_span_ns(&f->e->line, dur);
	op->offset = r->offset > INT64_MAX / 2 ? HR_OFFSET_NONE : r->offset;
	return true;
}

/* What a thread began at one tick is one operation. */
static uint64_t seen_key(uint64_t start_ticks, uint16_t op)
{
	return start_ticks ^ (uint64_t)op << 52;
}

/* The last few are enough: signal handlers nest, and each level leaves one. */
static void note_seen(struct hr_ring_state *ring, const struct hr_record *r)
{
	ring->seen[ring->n_seen++ % HR_RING_SEEN] = seen_key(r->start_ticks, r->op);
}

static bool was_seen(const struct hr_ring_state *ring, const struct hr_inflight *c)
{
	uint64_t key = seen_key(c->start_ticks, c->op);

	for (uint32_t i = 0; i < HR_RING_SEEN; i++)
		if (ring->seen[i] == key)
			return true;
	return false;
}

static void fold_record(struct fold *f, const struct hr_record *r, const struct hr_pair *pair)
{
	struct hr_engine *e = f->e;
	struct operation op;

	e->stats.records++;
	if (!understand(f, r, &op)) {
		hostile(f, r->op);
		return;
	}
	note_seen(f->ring, r);
	op.pair = pair;
	op.offset2 = pair ? pair->offset : HR_OFFSET_NONE;
	op.path2 = pair ? path_of(f, pair->file, pair->bits & HR_REC_RUNTIME) : UINT32_MAX;
	op.path = path_of(f, r->file, r->bits & HR_REC_RUNTIME);
	if (op.path != UINT32_MAX)
		hr_paths_at(&e->paths, op.path);
	if (op.path2 != UINT32_MAX)
		hr_paths_at(&e->paths, op.path2);
	if (op.trait.effect == HR_FD_MOVE)
		hr__fd_move(f, &op);
	e->stats.bytes_moved += op.bytes == UINT64_MAX ? 0 : op.bytes;
	add_filerec(f, &op);
	if (op.trait.effect > HR_FD_MOVE)
		hr__fd_effects(f, &op);
	if (r->bits & HR_REC_AGGREGATE) {
		f->ring->aggregate_gen = r->flags;
	} else {
		add_rollup(f, &op);
		if (e->level == HR_LEVEL_TRACE)
			add_event(f, &op);
	}
	if (!f->p->id.read_data && r->ret >= 0 && !(r->bits & HR_REC_RUNTIME) && r->file &&
	    (op.trait.class == HR_CLASS_READ || op.trait.class == HR_CLASS_MAP))
		hr__attribute_read(e, f->p);
}

/* One record with what belongs to it: returns the slots it took. */
static uint32_t take(struct fold *f, const struct hr_record *r, uint32_t left)
{
	if (r->op >= HR_OP_FIRST) {
		const struct hr_pair *pair = (const struct hr_pair *)(r + 1);

		if (!(r->bits & HR_REC_PAIR)) {
			fold_record(f, r, NULL);
			return 1;
		}
		if (left < 2 || pair->op != HR_CTL_PAIR) {
			hostile(f, r->op);
			return 1;
		}
		fold_record(f, r, pair);
		return 2;
	}
	switch (r->op) {
	case HR_CTL_NONE:
		f->e->stats.torn++;
		hr__loss(f->e, f->p->id.proc, HR_LOSS_TORN, 0, 1);
		return 1;
	case HR_CTL_THREAD:
		f->ring->tid = (uint32_t)r->fd;
		f->ring->task_batch = UINT64_MAX;
		return 1;
	case HR_CTL_PATH:
	case HR_CTL_ENV:
		return take_text(f, r, left);
	case HR_CTL_FORK:
		return 1;
	default:
		hostile(f, 0);
		return 1;
	}
}

/* ---- entries -------------------------------------------------------------------------------------- */

/* End of the next record of a cursor, in ticks; what has no time comes first, so that names precede their use. */
static uint64_t next_end(const struct cursor *c)
{
	const struct hr_record *r = &c->slots[c->at];

	if (r->op < HR_OP_FIRST)
		return 0;
	return r->start_ticks + ((uint64_t)r->dur_hi << 32 | r->dur_lo);
}

static bool other_file(const struct hr_record *r)
{
	return r[0].file != r[-1].file;
}

/*
 * Files are many and their tables larger than caches. What leads from a record to its file, and on to the file's record, is
 * asked for in three steps, each when the one before has arrived.
 */
static void look_ahead(const struct fold *f, const struct cursor *c)
{
	const struct hr_paths *paths = &f->e->paths;
	const struct hr_record *r = &c->slots[c->at];
	uint32_t index;

	if (c->at + CELL_AHEAD >= c->n)
		return;
	hr_map64_prefetch(&paths->by_hash, r[CELL_AHEAD].file);
	if (other_file(r + ROW_AHEAD)) {
		index = hr_map64_get(&paths->by_hash, r[ROW_AHEAD].file);
		if (index < paths->n)
			__builtin_prefetch(&paths->v[index], 1);
	}
	if (other_file(r + RECORD_AHEAD)) {
		index = hr_map64_get(&paths->by_hash, r[RECORD_AHEAD].file);
		if (index < paths->n)
			hr_filerec_prefetch(&f->e->filerecs, f->p->id.proc, paths->v[index].id,
					    f->e->trait[r[RECORD_AHEAD].op % HR_OP_MAX].api);
	}
}

static void advance(struct fold *f, struct cursor *c)
{
	f->ring = c->ring;
	look_ahead(f, c);
	c->at += take(f, &c->slots[c->at], c->n - c->at);
}

/* The root of the heap is the cursor whose next record ended first. */
static void sift_down(struct cursor *heap, uint32_t n, uint32_t i)
{
	struct cursor c = heap[i];

	for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && heap[child + 1].end < heap[child].end)
			child++;
		if (c.end <= heap[child].end)
			break;
		heap[i] = heap[child];
	}
	heap[i] = c;
}

/* Records of all rings in the order in which they ended. */
static void merge(struct fold *f, struct cursor *heap, uint32_t n)
{
	for (uint32_t i = n; i-- > 0;) {
		heap[i].end = next_end(&heap[i]);
		sift_down(heap, n, i);
	}
	while (n) {
		uint64_t until = n > 1 ? heap[1].end : UINT64_MAX;

		if (n > 2 && heap[2].end < until)
			until = heap[2].end;
		do
			advance(f, &heap[0]);
		while (heap[0].at < heap[0].n && (heap[0].end = next_end(&heap[0])) <= until);
		if (heap[0].at >= heap[0].n)
			heap[0] = heap[--n];
		sift_down(heap, n, 0);
	}
}

void hr__apply_records(struct hr_engine *e, const struct hr_entry_records *in)
{
	const struct hr_record *slots = (const struct hr_record *)(in->runs + in->n_runs);
	const uint8_t *end = (const uint8_t *)in + in->h.bytes;
	struct cursor cursors[HR_PROC_RINGS];
	struct fold f = {.e = e, .p = hr__proc_find(e, in->proc)};
	uint32_t n = 0;

	if (!f.p || f.p->end_ns || in->n_runs > HR_PROC_RINGS || (const uint8_t *)slots > end)
		return;
	f.max_ticks = in->sweep_ticks + hr_ns_ticks(&e->line, CLOCK_SLACK_NS);
	/* All rings first: making one may move those made before. */
	for (uint32_t i = 0; i < in->n_runs; i++)
		if (!hr__ring(f.p, in->runs[i].map, in->runs[i].ring))
			return;
	for (uint32_t i = 0; i < in->n_runs; i++) {
		const struct hr_run *run = &in->runs[i];
		struct hr_ring_state *ring = hr__ring(f.p, run->map, run->ring);

		if (run->count > (uint64_t)(end - (const uint8_t *)slots) / HR_SLOT_BYTES)
			return;
		ring->next = run->first + run->count;
		if (run->count)
			cursors[n++] = (struct cursor){slots, run->count, 0, 0, ring};
		slots += run->count;
	}
	merge(&f, cursors, n);
	if (e->filerecs.live > HR_FILERECS_MOST)
		hr__flush_idle(e);
}

/* What the owner of a ring was in the middle of when it died. */
static void left_inflight(struct fold *f, const struct hr_inflight *c, uint64_t now_ticks)
{
	uint64_t dur = now_ticks > c->start_ticks ? now_ticks - c->start_ticks : 0;
	struct hr_record r = {
	    .start_ticks = c->start_ticks,
	    .file = c->file,
	    .offset = c->offset,
	    .ret = HR_RET_NONE,
	    .asked = c->asked,
	    .dur_lo = (uint32_t)dur,
	    .dur_hi = dur >> 48 ? UINT16_MAX : (uint16_t)(dur >> 32),
	    .op = c->op,
	    .fd = c->fd,
	    .flags = c->flags,
	    .bits = (c->bits & (HR_REC_RUNTIME | HR_REC_DIR)) | HR_REC_CUT,
	};

	fold_record(f, &r, NULL);
}

static void left_aggregate(struct fold *f, const struct hr_aggregate *c)
{
	struct hr_record r = {
	    .start_ticks = c->start_ticks,
	    .file = c->file,
	    .offset = HR_OFFSET_NONE,
	    .ret = (int64_t)c->bytes,
	    .asked = c->count,
	    .dur_lo = (uint32_t)c->ticks,
	    .dur_hi = (uint16_t)(c->ticks >> 32),
	    .op = c->op,
	    .fd = c->fd,
	    .flags = c->gen,
	    .bits = (c->bits & HR_REC_RUNTIME) | HR_REC_AGGREGATE,
	};

	fold_record(f, &r, NULL);
}

void hr__apply_left(struct hr_engine *e, const struct hr_entry_left *in)
{
	struct fold f = {.e = e, .p = hr__proc_find(e, in->proc)};

	f.ring = f.p && !f.p->end_ns ? hr__ring(f.p, in->map, in->ring) : NULL;
	if (!f.ring)
		return;
	f.max_ticks = in->now_ticks;
	/* Committed, and killed before the cell was cleared: the record is here already. */
	if (in->inflight.op != 0 && !was_seen(f.ring, &in->inflight))
		left_inflight(&f, &in->inflight, in->now_ticks);
	if (in->aggregate.op != 0 && in->aggregate.count != 0 &&
	    in->aggregate.gen != f.ring->aggregate_gen)
		left_aggregate(&f, &in->aggregate);
}
