/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/passes.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/json_part.h"
#include "common/map64.h"
#include "common/region.h"
#include "proto/args.h"

#define NO_PASS	 SIZE_MAX
#define OPEN_MAX 64u /* a wait continues one of so many latest passes */

/* A wait for a batch, or iter() of a loader. */
struct event {
	uint64_t proc, start_ns, end_ns;
	uint32_t tid;
	bool iter;
	/* Of a wait: */
	int64_t loader, batch;
	bool end;    /* it returned no batch */
	size_t pass; /* index in passes */
};

struct loader_pass {
	int64_t loader;
	uint64_t start_ns, end_ns;
	bool is_epoch;
	size_t row; /* index of its epoch, and later of its last step; NO_PASS: none */
};

struct pass_row {
	uint32_t key;
	uint64_t start_ns, dur_ns;
	uint64_t step, epoch; /* as in hr_region; HR_REGION_UNKNOWN: the row is an epoch */
};

struct finder {
	struct hr_map64 procs; /* 1: only waits, 2: it has steps, epochs or an optimizer */
	struct event *events;
	size_t n_events, events_room;
	struct loader_pass *passes;
	size_t n_passes, passes_room;
	const struct event **threads; /* the first event of each */
	size_t n_threads, threads_room;
	struct pass_row *rows;
	size_t n_rows, rows_room;
};

static bool is_step(uint32_t kind)
{
	return kind == HR_REGION_STEP || kind == HR_REGION_EPOCH || kind == HR_REGION_OPTIMIZER;
}

/* Returns 1 if a process waits for batches and has no steps, else 0. -ENOMEM. */
static int find_procs(struct finder *x, const struct hr_frames *f)
{
	int any = 0;

	for (size_t i = 0; i < f->n; i++) {
		const Headrace__Regions *m = f->list[i]->regions;

		for (size_t k = 0; k < m->n_keys; k++) {
			const Headrace__RegionKey *key = m->keys[k];
			bool steps = is_step(key->kind);

			if (!steps && (key->kind != HR_REGION_INPUT_WAIT ||
				       hr_map64_get(&x->procs, key->proc) != HR_MAP64_NONE))
				continue;
			if (hr_map64_set(&x->procs, key->proc, steps ? 2 : 1) < 0)
				return -ENOMEM;
		}
	}
	for (uint32_t i = 0; x->procs.cells != NULL && i <= x->procs.mask; i++)
		any |= x->procs.cells[i].value == 1;
	return any;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Returns whether the args are those of a loader's wait. */
static bool read_args(const ProtobufCBinaryData *args, struct event *to)
{
	struct hr_json_part part;

	if (!hr_json_part_find(args->data, args->len, HR_ARGS_LOADER, &part))
		return false;
	if (!hr_json_part_int(&part, &to->loader))
		to->loader = -1; /* not known */
	to->end = hr_json_part_find(args->data, args->len, HR_ARGS_END, &part);
	return hr_json_part_find(args->data, args->len, HR_ARGS_BATCH, &part) &&
	       hr_json_part_int(&part, &to->batch);
}

static int add_event(struct finder *x, const Headrace__Regions *m, const struct hr_region *g)
{
	struct event e = {.proc = g->proc,
			  .tid = g->tid,
			  .start_ns = g->start_ns,
			  .end_ns = g->dur_ns < UINT64_MAX - g->start_ns ? g->start_ns + g->dur_ns
									 : UINT64_MAX,
			  .iter = g->kind == HR_REGION_RANGE &&
				  hr_regions_text_is(m, g->name, "DataLoader.__iter__")};

	if (!e.iter && (g->kind != HR_REGION_INPUT_WAIT || g->count > 1 || g->args == 0 ||
			!read_args(&m->texts[g->args - 1], &e)))
		return 0;
	if (!hr_array_reserve(x->events, x->n_events, x->events_room))
		return -ENOMEM;
	x->events[x->n_events++] = e;
	return 0;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int read_events(struct finder *x, const struct hr_frames *f)
{
	int r = 0;

	for (size_t i = 0; i < f->n; i++) {
		const Headrace__Regions *m = f->list[i]->regions;

		for (size_t k = 0; r == 0 && k < m->n_key; k++) {
			struct hr_region region;

			hr_regions_get(m, k, &region);
			if (hr_map64_get(&x->procs, region.proc) == 1)
				r = add_event(x, m, &region);
		}
	}
	if (x->n_events > 0)
		qsort(x->events, x->n_events, sizeof(*x->events), by_thread_and_time);
	return r;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Returns the latest pass over this loader from `first` on, or NO_PASS. */
static size_t latest_pass(const struct finder *x, size_t first, int64_t loader)
{
	for (size_t i = x->n_passes; i > first && x->n_passes - i < OPEN_MAX; i--)
		if (x->passes[i - 1].loader == loader)
			return i - 1;
	return NO_PASS;
}

/* Finds the passes of the thread whose events are [from, to). */
static int find_passes(struct finder *x, size_t from, size_t to)
{
	const struct event *iter = NULL;
	size_t first = x->n_passes;
	uint64_t until = 0;

	for (size_t i = from; i < to; i++) {
		struct event *e = &x->events[i];

		if (e->iter) {
			iter = e;
			continue;
		}
		e->pass = e->batch != 0 ? latest_pass(x, first, e->loader) : NO_PASS;
		if (e->pass == NO_PASS) {
			if (!hr_array_reserve(x->passes, x->n_passes, x->passes_room))
				return -ENOMEM;
			e->pass = x->n_passes++;
			x->passes[e->pass] = (struct loader_pass){
			    .loader = e->loader,
			    .start_ns = iter != NULL ? iter->start_ns : e->start_ns,
			    .row = NO_PASS};
		}
		iter = NULL;
		x->passes[e->pass].end_ns = e->end_ns;
	}
	for (size_t i = first; i < x->n_passes; i++) {
		struct loader_pass *p = &x->passes[i];

		p->is_epoch = p->start_ns >= until;
		until = p->is_epoch ? p->end_ns : until;
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Returns the index of the new row; NO_PASS: memory is short. */
static size_t add_row(struct finder *x, bool is_epoch, uint64_t start_ns, uint64_t end_ns)
{
	if (!hr_array_reserve(x->rows, x->n_rows, x->rows_room))
		return NO_PASS;
	x->rows[x->n_rows] = (struct pass_row){.key = (uint32_t)(2 * (x->n_threads - 1) + is_epoch),
					       .start_ns = start_ns,
					       .dur_ns = end_ns - start_ns,
					       .step = HR_REGION_UNKNOWN};
	return x->n_rows++;
}

/* Makes the steps and epochs of the thread whose events are [from, to). */
static int make_rows(struct finder *x, size_t from, size_t to)
{
	uint64_t step = 0, epoch = 0;

	if (!hr_array_reserve(x->threads, x->n_threads, x->threads_room))
		return -ENOMEM;
	x->threads[x->n_threads++] = &x->events[from];
	for (size_t i = from; i < to; i++) {
		const struct event *e = &x->events[i];
		struct loader_pass *p = e->iter ? NULL : &x->passes[e->pass];

		if (p == NULL || !p->is_epoch)
			continue;
		if (p->row == NO_PASS) {
			p->row = add_row(x, true, p->start_ns, p->end_ns);
			if (p->row == NO_PASS)
				return -ENOMEM;
			x->rows[p->row].epoch = epoch++;
		} else if (x->rows[p->row].step != HR_REGION_UNKNOWN) {
			x->rows[p->row].dur_ns = e->start_ns - x->rows[p->row].start_ns;
		}
		if (e->end)
			continue;
		p->row = add_row(x, false, e->start_ns, p->end_ns);
		if (p->row == NO_PASS)
			return -ENOMEM;
		x->rows[p->row].step = step++;
		x->rows[p->row].epoch = epoch - 1;
	}
	return 0;
}

static int find_all(struct finder *x)
{
	int r = 0;

	for (size_t from = 0, to; r == 0 && from < x->n_events; from = to) {
		for (to = from + 1; to < x->n_events &&
				    x->events[to].proc == x->events[from].proc &&
				    x->events[to].tid == x->events[from].tid;)
			to++;
		r = find_passes(x, from, to);
		if (r == 0)
			r = make_rows(x, from, to);
	}
	return r;
}

/* ---- the frame ------------------------------------------------------------------------------- */

/* Sets two keys for each thread: of its steps and of its epochs. */
static bool set_keys(Headrace__Regions *m, const struct finder *x, struct hr_arena *a)
{
	m->keys = hr_arena_alloc(a, 2 * x->n_threads * sizeof(*m->keys));
	for (; m->keys != NULL && m->n_keys < 2 * x->n_threads; m->n_keys++) {
		Headrace__RegionKey *key = hr_arena_alloc(a, sizeof(*key));

		if (key == NULL)
			return false;
		headrace__region_key__init(key);
		key->proc = x->threads[m->n_keys / 2]->proc;
		key->tid = x->threads[m->n_keys / 2]->tid;
		key->kind = m->n_keys % 2 == 0 ? HR_REGION_STEP : HR_REGION_EPOCH;
		m->keys[m->n_keys] = key;
	}
	return m->keys != NULL;
}

static int add_frame(const struct finder *x, struct hr_frames *f)
{
	Headrace__Frame **list = realloc(f->list, (f->n + 1) * sizeof(*list));
	Headrace__Frame *frame = hr_arena_alloc(&f->arena, sizeof(*frame));
	Headrace__Regions *m = hr_arena_alloc(&f->arena, sizeof(*m));
	size_t n = x->n_rows;

	f->list = list != NULL ? list : f->list;
	if (list == NULL || frame == NULL || m == NULL)
		return -ENOMEM;
	headrace__frame__init(frame);
	headrace__regions__init(m);
	frame->body_case = HEADRACE__FRAME__BODY_REGIONS;
	frame->regions = m;
	m->key = hr_arena_alloc(&f->arena, n * sizeof(*m->key));
	m->start_ns = hr_arena_alloc(&f->arena, n * sizeof(*m->start_ns));
	m->dur_ns = hr_arena_alloc(&f->arena, n * sizeof(*m->dur_ns));
	m->step = hr_arena_alloc(&f->arena, n * sizeof(*m->step));
	m->epoch = hr_arena_alloc(&f->arena, n * sizeof(*m->epoch));
	if (!set_keys(m, x, &f->arena) || f->arena.failed)
		return -ENOMEM;
	m->n_key = m->n_start_ns = m->n_dur_ns = m->n_step = m->n_epoch = n;
	for (size_t i = 0; i < n; i++) {
		m->key[i] = x->rows[i].key;
		m->start_ns[i] = (int64_t)x->rows[i].start_ns;
		m->dur_ns[i] = x->rows[i].dur_ns;
		m->step[i] = (int64_t)(x->rows[i].step + 1);
		m->epoch[i] = (int64_t)(x->rows[i].epoch + 1);
	}
	f->list[f->n++] = frame;
	return 0;
}

int hr__passes_add(struct hr_frames *f)
{
	struct finder x = {0};
	int r = find_procs(&x, f);

	if (r > 0) {
		r = read_events(&x, f);
		if (r == 0)
			r = find_all(&x);
		if (r == 0 && x.n_rows > 0)
			r = add_frame(&x, f);
	}
	hr_map64_done(&x.procs);
	free(x.events);
	free(x.passes);
	free(x.threads);
	free(x.rows);
	return r;
}
