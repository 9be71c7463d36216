/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/train_store.h"

#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/unit.h"

#define STEPS	     120u
#define EPOCH_STEPS  40u
#define BATCH_EVENTS 307u
#define US	     UINT64_C(1000)

static const struct hr_task tasks[TRAIN_TASKS] = {{1, 11}, {1, 12}, {2, 20}, {3, 30},
						  {4, 40}, {5, 50}, {6, 60}};

struct maker {
	struct train *t;
	uint64_t seed;
	uint64_t
	    free[TRAIN_TASKS]; /* when the last operation of a training thread with a rank ended */
};

static uint64_t below(struct maker *m, uint64_t n)
{
	m->seed = m->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (m->seed >> 33) % n;
}

static void event(struct maker *m, enum train_task task, uint16_t op, uint32_t file, uint64_t start,
		  uint64_t dur, uint64_t bytes)
{
	assert_true(m->t->n_events < TRAIN_EVENTS);
	if (task == TRAIN_0 || task == TRAIN_1) {
		start = start > m->free[task] ? start : m->free[task];
		m->free[task] = start + dur;
	}
	m->t->events[m->t->n_events++] = (struct hr_event){
	    .start_ns = start,
	    .dur_ns = dur,
	    .task = task,
	    .op = op,
	    .file = file,
	    .fd = 5,
	    .offset = HR_OFFSET_NONE,
	    .asked = bytes,
	    .ret = (int64_t)bytes,
	    .bits = file == TRAIN_RUNTIME ? HR_EV_SCOPE_RUNTIME : 0,
	};
}

static struct hr_region *region(struct maker *m, enum train_task task, uint32_t kind,
				uint64_t start, uint64_t dur, uint64_t step)
{
	struct hr_region *r = &m->t->regions[m->t->n_regions++];

	assert_true(m->t->n_regions <= TRAIN_REGIONS);
	*r = (struct hr_region){.proc = tasks[task].proc,
				.tid = tasks[task].tid,
				.kind = kind,
				.domain = task,
				.count = 1,
				.start_ns = start,
				.dur_ns = dur,
				.step = step,
				.epoch = HR_REGION_UNKNOWN};
	return r;
}

/* ---- what happens ------------------------------------------------------------------- */

/* In a wait: another one, the operations of a rank without workers, or a call that outlasts it. */
static void fill_wait(struct maker *m, enum train_task task, uint64_t step, uint64_t at,
		      uint64_t dur)
{
	if (step % 10 == 3)
		region(m, task, HR_REGION_INPUT_WAIT, at + dur / 4, dur / 2, step)->depth = 2;
	if (task == TRAIN_1) {
		for (unsigned i = 0; i < 3; i++)
			event(m, task, HR_OP_pread64, TRAIN_SCRATCH, at + i * dur / 4,
			      dur / 4 - below(m, dur / 16), 16384);
	} else if (step % 4 == 1) {
		event(m, task, HR_OP_read, TRAIN_DATA, at + dur / 2, dur, 100);
	}
}

static uint64_t save(struct maker *m, enum train_task task, uint64_t step, uint64_t at)
{
	uint64_t dur = TRAIN_MS + below(m, TRAIN_MS);

	region(m, task, HR_REGION_CHECKPOINT, at, dur, step);
	region(m, task, HR_REGION_CHECKPOINT, at + dur / 8, dur / 2, step)->depth = 2;
	for (unsigned i = 0; i < 4; i++)
		event(m, task, HR_OP_write, TRAIN_SCRATCH, at + i * dur / 4, below(m, dur / 3),
		      1000);
	return at + dur;
}

static uint64_t train_step(struct maker *m, enum train_task task, uint64_t step, uint64_t at)
{
	uint64_t begin = at, wait = 100 * US + below(m, step % 20 == 7 ? 9 * TRAIN_MS : TRAIN_MS);

	region(m, task, HR_REGION_INPUT_WAIT, at, wait, step)->depth = 1;
	fill_wait(m, task, step, at, wait);
	at += wait + below(m, 700 * US);
	if (step % 16 == 5)
		region(m, task, HR_REGION_INPUT_WAIT, at, 40 * US, step)->count = 7;
	if (step % 3 == 0)
		event(m, task, HR_OP_read, TRAIN_DATA, at, below(m, 200 * US), 10);
	if (step % 7 == 0)
		event(m, task, HR_OP_read, TRAIN_RUNTIME, at, 90 * US, 77);
	at += 250 * US;
	if (step % 25 == 24)
		at = save(m, task, step, at);
	region(m, task, HR_REGION_OPTIMIZER, at, 30 * US, step)->depth = 1;
	at += 50 * US;
	region(m, task, HR_REGION_STEP, begin, at - begin, step);
	return at;
}

/* Between steps there is a gap now and then, with a call that reaches into the next one. */
static void train(struct maker *m, enum train_task task, unsigned steps)
{
	uint64_t at = TRAIN_MS, epoch_at = at;

	for (unsigned step = 0; step < steps; step++) {
		at = train_step(m, task, step, at);
		if ((step + 1) % EPOCH_STEPS == 0) {
			region(m, task, HR_REGION_EPOCH, epoch_at, at - epoch_at, HR_REGION_UNKNOWN)
			    ->epoch = step / EPOCH_STEPS;
			epoch_at = at;
		}
		if (step % 5 == 2) {
			event(m, task, HR_OP_read, TRAIN_DATA, at, 120 * US, 1);
			at += 60 * US;
		}
	}
}

/* Fetches of some reads each; one in thirty is long. */
static void work(struct maker *m, enum train_task task, uint64_t until)
{
	uint64_t at = below(m, TRAIN_MS);

	while (at < until) {
		uint64_t begin = at;

		for (unsigned i = 0; i < 4; i++) {
			uint64_t dur = below(m, 30) == 0 ? 4 * TRAIN_MS : below(m, 250 * US);

			event(m, task, HR_OP_read, TRAIN_DATA, at, dur, 8192 * (1 + below(m, 3)));
			at += dur + 20 * US;
		}
		region(m, task, HR_REGION_FETCH, begin, at - begin, HR_REGION_UNKNOWN);
		at += below(m, 400 * US);
	}
}

static void rest(struct maker *m)
{
	struct hr_region *r;

	for (unsigned i = 0; i < 300; i++) {
		event(m, TRAIN_0_OTHER, HR_OP_write, TRAIN_SCRATCH, below(m, 150 * TRAIN_MS),
		      below(m, 100 * US), 500);
		event(m, TRAIN_2, HR_OP_read, TRAIN_DATA, below(m, 150 * TRAIN_MS), 10 * US, 5);
	}
	/* Five short steps of rank 1 as one. */
	r = region(m, TRAIN_1, HR_REGION_STEP, 900 * TRAIN_MS, 5 * US, 900);
	r->count = 5;
	region(m, TRAIN_NONE, HR_REGION_STEP, TRAIN_MS, 2 * TRAIN_MS, HR_REGION_UNKNOWN);
	region(m, TRAIN_NONE, HR_REGION_STEP, 4 * TRAIN_MS, TRAIN_MS, 1)->open = true;
	event(m, TRAIN_NONE, HR_OP_read, TRAIN_DATA, 2 * TRAIN_MS, 3 * TRAIN_MS, 64);
	/*
	 * What the query `blame` lays in pieces of time: a wait, 30 ms behind where one begins, and operations that begin in the
	 * piece before, and that are longer than a piece, of either size.
	 */
	region(m, TRAIN_NONE, HR_REGION_INPUT_WAIT, 1000 * TRAIN_MS, 500 * TRAIN_MS,
	       HR_REGION_UNKNOWN)
	    ->depth = 1;
	event(m, TRAIN_NONE, HR_OP_read, TRAIN_DATA, 940 * TRAIN_MS, 100 * TRAIN_MS, 32);
	event(m, TRAIN_NONE, HR_OP_read, TRAIN_DATA, 1250 * TRAIN_MS, 200 * TRAIN_MS, 128);
	event(m, TRAIN_NONE, HR_OP_read, TRAIN_SCRATCH, 1400 * TRAIN_MS, 150000 * TRAIN_MS, 256);
}

/* ---- the store ---------------------------------------------------------------------- */

static void send_processes(struct fixture__stream *s)
{
	static const struct {
		uint32_t rank_plus1, worker_plus1;
	} known[] = {{1, 0}, {1, 1}, {1, 2}, {2, 0}, {3, 0}, {0, 0}};
	Headrace__Process rows[6];

	for (unsigned i = 0; i < 6; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)(100 + i),
					      .start_ns = FIX_BOOT_NS,
					      .rank_plus1 = known[i].rank_plus1,
					      .worker_plus1 = known[i].worker_plus1};
	build_processes(&s->b, rows, 6);
}

static int by_end(const void *a, const void *b)
{
	const struct hr_event *x = a, *y = b;
	uint64_t ends[] = {x->start_ns + x->dur_ns, y->start_ns + y->dur_ns};

	if (ends[0] != ends[1])
		return ends[0] < ends[1] ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

static void send_events(struct fixture__stream *s, const struct train *t)
{
	struct hr_event batch[BATCH_EVENTS];

	assert_int_equal(hr_encoder_new(&s->b.encoder), 0);
	for (size_t i = 0, n; i < t->n_events; i += n) {
		n = t->n_events - i < BATCH_EVENTS ? t->n_events - i : BATCH_EVENTS;
		memcpy(batch, t->events + i, n * sizeof(*batch));
		for (size_t k = 0; k < n; k++)
			batch[k].start_ns += FIX_BOOT_NS;
		build_events(&s->b, batch, n, tasks, TRAIN_TASKS);
	}
	hr_encoder_free(s->b.encoder);
	s->b.encoder = NULL;
}

/* Of reads: a row for each process and mount. */
static void send_rollups(struct fixture__stream *s, const struct train *t)
{
	Headrace__Rollup rows[2 * TRAIN_TASKS];
	size_t n = 0;

	for (unsigned i = 0; i < 2 * TRAIN_TASKS; i++)
		rows[i] = (Headrace__Rollup){.proc = tasks[i / 2].proc,
					     .mount = 1 + i % 2,
					     .op = i % 2 ? HR_OP_pread64 : HR_OP_read};
	for (size_t i = 0; i < t->n_events; i++) {
		const struct hr_event *e = &t->events[i];
		Headrace__Rollup *row = &rows[2 * e->task + (e->op == HR_OP_pread64)];

		if (e->op == HR_OP_write || e->file == TRAIN_RUNTIME)
			continue;
		row->count++;
		row->bytes += (uint64_t)e->ret;
		row->dur_ns += e->dur_ns;
	}
	for (unsigned i = 0; i < 2 * TRAIN_TASKS; i++)
		if (rows[i].count > 0)
			rows[n++] = rows[i];
	build_rollups(&s->b, FIX_BOOT_NS, rows, n, NULL, 0);
}

static void send_regions(struct fixture__stream *s, const struct train *t)
{
	for (size_t i = 0; i < t->n_regions; i++) {
		struct hr_region region = t->regions[i];

		region.start_ns += FIX_BOOT_NS;
		build_region(&s->b, region, (struct build_texts){0});
	}
	build_regions(&s->b);
}

struct train *train_new(void)
{
	struct maker m = {.t = calloc(1, sizeof(struct train)), .seed = 7};
	struct fixture__stream s;

	assert_non_null(m.t);
	train(&m, TRAIN_0, STEPS);
	train(&m, TRAIN_1, STEPS / 2);
	work(&m, TRAIN_WORKER_0, 150 * TRAIN_MS);
	work(&m, TRAIN_WORKER_1, 90 * TRAIN_MS);
	rest(&m);
	qsort(m.t->events, m.t->n_events, sizeof(*m.t->events), by_end);
	m.t->store = fixture__make_folder();
	fixture__open_stream(&s, m.t->store, "t", "n1");
	fixture__send_job(&s, "ended", 3);
	send_processes(&s);
	fixture__send_paths(&s);
	send_events(&s, m.t);
	send_rollups(&s, m.t);
	send_regions(&s, m.t);
	build_end(&s.b, "ended");
	build_close(&s.b);
	return m.t;
}

void train_free(struct train *t)
{
	build_remove(t->store);
	free(t);
}
