/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and orders the records in the slots of an entry, and handles control records. */
#include "daemon/engine/fold.h"

#define CLOCK_SLACK_NS UINT64_C(1000000000)

struct ahead;

struct cursor {
	const struct hr_record *slots;
	uint32_t n, at;
	uint64_t end; /* ticks at which the next record ended */
	struct hr_ring_state *ring;
	struct ahead *ahead;
};

/* ---- files ----------------------------------------------------------------------------------- */

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
	struct hr_path_name name = {.hash = r->file,
				    .text = text,
				    .bytes = (uint32_t)r->asked,
				    .scope = r->bits & HR_REC_RUNTIME ? 1 : 0};
	uint32_t index;
	int second;

	if (r->file == 0) {
		hr__fold_hostile(f, 0);
		return;
	}
	name.mount =
	    hr_mounts_find(&e->mounts, r->ret, r->offset, text, (uint32_t)r->asked, &missing);
	name.mount_exact = r->ret >= 0 && name.mount != 0;
	if (missing)
		e->mounts_wanted = f->p->id.proc;
	/* If the hash is in `collisions`, its text was read before. */
	for (uint32_t i = 0; i < f->p->n_collisions; i++)
		if (f->p->collisions[i].hash == r->file)
			return;
	second = hr_paths_name(&e->paths, &name, &index);
	if (second < 0) {
		e->failed = true;
		return;
	}
	/* The file is prefetched, because the next record is usually its open. */
	hr_filerec_prefetch(&e->filerecs, f->p->id.proc, hr_paths_at(&e->paths, index)->id,
			    HR_API_POSIX);
	if (second == 1) {
		hr__loss(e, f->p->id.proc, HR_LOSS_COLLISION, 0, 1);
		note_collision(f->p, r->file, index);
	}
}

/* Reads the text after a control record. Returns the slots used. Not inlined, to save registers. */
static __attribute__((noinline)) uint32_t take_text(struct fold *f, const struct hr_record *r,
						    uint32_t left)
{
	const struct hr_text *parts = (const struct hr_text *)(r + 1);
	uint8_t text[HR_TEXT_MOST + HR_TEXT_BYTES];
	uint32_t n = hr_text_slots(r->asked);

	if (n == 0 || n >= left) {
		hr__fold_hostile(f, 0);
		return 1;
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(text + (size_t)i * HR_TEXT_BYTES, parts[i].text, HR_TEXT_BYTES);
	switch (r->op) {
	case HR_CTL_PATH:
		take_path(f, r, text);
		break;
	case HR_CTL_ENV:
		hr__attribute_env(f->e, f->p, (const char *)text, r->asked);
		break;
	case HR_CTL_REGION_KEY:
		hr__region_key_take(f, r, text);
		break;
	default:
		hr__region_take(f, r, text);
	}
	return n + 1;
}

/* ---- one record and its further slots -------------------------------------------------------- */

/* Handles a record and the slots that belong to it. Returns the number of slots. */
static uint32_t records_take(struct fold *f, const struct hr_record *r, uint32_t left)
{
	if (r->op >= HR_OP_FIRST) {
		const struct hr_pair *pair = (const struct hr_pair *)(r + 1);

		if (!(r->bits & HR_REC_PAIR)) {
			hr__fold(f, r, NULL);
			return 1;
		}
		if (left < 2 || pair->op != HR_CTL_PAIR) {
			hr__fold_hostile(f, r->op);
			return 1;
		}
		hr__fold(f, r, pair);
		return 2;
	}
	switch (r->op) {
	case HR_CTL_NONE:
		f->e->stats.torn++;
		hr__loss(f->e, f->p->id.proc, HR_LOSS_TORN, 0, 1);
		return 1;
	case HR_CTL_THREAD:
		f->ring->kept.tid = (uint32_t)r->fd;
		f->ring->task_batch = UINT64_MAX;
		return 1;
	case HR_CTL_PATH:
	case HR_CTL_ENV:
	case HR_CTL_REGION_KEY:
		return take_text(f, r, left);
	case HR_CTL_REGION:
		if (hr_record_has_text(r))
			return take_text(f, r, left);
		hr__region_take(f, r, NULL);
		return 1;
	case HR_CTL_FORK:
		hr_positions_share(&f->p->positions, r->flags != 0);
		return 1;
	default:
		hr__fold_hostile(f, 0);
		return 1;
	}
}

/* ---- prefetching ----------------------------------------------------------------------------- */

/*
 * With many files, the tables are larger than the caches. So three steps prefetch what a record
 * needs: first the cell of its file in the hash map, then the row of the file, then the file
 * record. Each step is a stretch of slots later than the one before, so that the memory it reads
 * has arrived.
 */
#define STRETCH	     16u /* slots */
#define STRETCH_MOST 8u	 /* maximum number of files in a stretch */

struct ahead {
	uint32_t due;  /* slot at which to prefetch again */
	uint32_t walk; /* the next record to inspect */
	uint64_t file; /* file of the previous record */
	uint32_t turn;
	struct {
		uint32_t n;
		uint32_t api[STRETCH_MOST];
		uint64_t file[STRETCH_MOST];
		/* in turn: new, hash cells prefetched, rows prefetched */
	} found[3];
};

/* Finds the files of records up to slot `to`, and prefetches their cells in the hash map. */
static void find_files(struct ahead *a, const struct fold *f, const struct cursor *c, uint32_t to)
{
	uint32_t n = 0, turn = a->turn % 3;

	while (a->walk < to) {
		const struct hr_record *r = &c->slots[a->walk];

		a->walk += hr_record_has_text(r) ? 1 + hr_text_slots(r->asked) : 1;
		/* The field `file` of a region is not a file, but a key. */
		if (r->file == a->file || r->file == 0 || n == STRETCH_MOST ||
		    (r->op < HR_OP_FIRST && r->op != HR_CTL_PATH))
			continue;
		a->file = r->file;
		a->found[turn].api[n] = f->e->trait[r->op % HR_OP_MAX].api;
		a->found[turn].file[n++] = r->file;
		hr_map64_prefetch(&f->e->paths.by_hash, r->file);
	}
	a->found[turn].n = n;
}

/* Not inlined, to save registers. */
static __attribute__((noinline)) void look_ahead(struct ahead *a, const struct fold *f,
						 const struct cursor *c)
{
	const struct hr_paths *paths = &f->e->paths;
	uint32_t rows = (a->turn + 2) % 3, records = (a->turn + 1) % 3;
	uint32_t to = c->at + 4 * STRETCH;

	for (uint32_t i = 0; i < a->found[records].n; i++) {
		uint32_t index = hr_map64_get(&paths->by_hash, a->found[records].file[i]);

		if (index < paths->n)
			hr_filerec_prefetch(&f->e->filerecs, f->p->id.proc, paths->v[index].id,
					    a->found[records].api[i]);
	}
	for (uint32_t i = 0; i < a->found[rows].n; i++) {
		uint32_t index = hr_map64_get(&paths->by_hash, a->found[rows].file[i]);

		if (index < paths->n)
			__builtin_prefetch(&paths->v[index], 1);
	}
	find_files(a, f, c, to < c->n ? to : c->n);
	a->turn++;
	a->due = c->at + STRETCH;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Returns when the next record ended, in ticks. A name gets the time of the record that uses it. */
static uint64_t next_end(const struct cursor *c)
{
	const struct hr_record *r = &c->slots[c->at];

	if (r->op < HR_OP_FIRST)
		return 0;
	return r->start_ticks + hr_record_dur(r);
}

static void advance(struct fold *f, struct cursor *c)
{
	if (c->at >= c->ahead->due)
		look_ahead(c->ahead, f, c);
	f->ring = c->ring;
	c->at += records_take(f, &c->slots[c->at], c->n - c->at);
}

/* Restores the order of the heap, whose root is the cursor with the record that ended first. */
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

/* Folds the records of all rings in the order in which they ended. */
static void merge(struct fold *f, struct cursor *heap, uint32_t n)
{
	while (n == 1 && heap[0].at < heap[0].n)
		advance(f, &heap[0]);
	if (n <= 1)
		return;
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

/*
 * Returns the state of the ring that a run of slots comes from. Records of probes have no ring:
 * `kernel` is their state, for one entry.
 */
static struct hr_ring_state *ring_of(struct hr_proc *p, const struct hr_run *run,
				     struct hr_ring_state *kernel)
{
	return run->map == HR_MAP_KERNEL ? kernel : hr__ring(p, run->map, run->ring);
}

void hr__apply_records(struct hr_engine *e, const struct hr_entry_records *in)
{
	const struct hr_record *slots = (const struct hr_record *)(in->runs + in->n_runs);
	const uint8_t *end = (const uint8_t *)in + in->h.bytes;
	struct hr_ring_state kernel = {.task_batch = UINT64_MAX, .source = HR_EV_BPF};
	struct cursor cursors[HR_PROC_RINGS + 1];
	struct ahead ahead[HR_PROC_RINGS + 1];
	struct fold f = {.e = e, .p = hr__proc_find(e, in->proc)};
	uint32_t n = 0;

	if (!f.p || f.p->end_ns || in->n_runs > HR_PROC_RINGS + 1 || (const uint8_t *)slots > end)
		return;
	f.max_ticks = in->sweep_ticks + hr_ns_ticks(&e->line, CLOCK_SLACK_NS);
	/* Makes the states of all rings first, because a new one may move the others in memory. */
	for (uint32_t i = 0; i < in->n_runs; i++)
		if (!ring_of(f.p, &in->runs[i], &kernel))
			return;
	for (uint32_t i = 0; i < in->n_runs; i++) {
		const struct hr_run *run = &in->runs[i];
		struct hr_ring_state *ring = ring_of(f.p, run, &kernel);

		if (run->count > (uint64_t)(end - (const uint8_t *)slots) / HR_SLOT_BYTES)
			return;
		ring->kept.next = run->first + run->count;
		f.p->id.probed |= ring == &kernel;
		if (run->count) {
			ahead[n] = (struct ahead){0};
			cursors[n] = (struct cursor){slots, run->count, 0, 0, ring, &ahead[n]};
			n++;
		}
		slots += run->count;
	}
	merge(&f, cursors, n);
	if (hr_filerecs_full(&e->filerecs))
		hr__flush_idle(e);
}

/* Adds the operation that the owner of a ring had not finished when it died. */
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

	/* a cell has no room for the second file of a copy */
	hr__fold(f, &r, hr_op_copies(c->op) ? &(struct hr_pair){.offset = HR_OFFSET_NONE} : NULL);
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

	hr__fold(f, &r, NULL);
}

void hr__apply_left(struct hr_engine *e, const struct hr_entry_left *in)
{
	struct fold f = {.e = e, .p = hr__proc_find(e, in->proc)};

	f.ring = f.p && !f.p->end_ns ? hr__ring(f.p, in->map, in->ring) : NULL;
	if (!f.ring)
		return;
	f.max_ticks = in->now_ticks;
	/* If the owner died before it cleared the cell, a record of the operation may exist. */
	if (in->inflight.op != 0 && !hr__fold_seen(f.ring, &in->inflight))
		left_inflight(&f, &in->inflight, in->now_ticks);
	if (in->aggregate.op != 0 && in->aggregate.count != 0 &&
	    in->aggregate.gen != f.ring->kept.aggregate_gen)
		left_aggregate(&f, &in->aggregate);
}
