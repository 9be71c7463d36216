/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage drain: from full rings to batches ready for the encoder. One node of the generated job writes its operations into
 * real rings (not timed), with the path of each file whenever its process turns to it; timed is what the drain thread does with
 * them: look, copy into the journal, commit, give back, check, follow positions, fold into rollups and file records, append
 * events, checkpoints included. Stage counters is the same at level counters: without the events.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/engine/engine.h"
#include "daemon/session/ringpool.h"
#include "daemon/session/session.h"
#include "tests/bench/pipeline.h"

#define ROUND_EVENTS 40000u
#define SLOTS	     (1u << HR_RING_SLOTS_LOG2)
#define START_NS     (HR_GEN_BOOT_NS - 1)

struct lane {
	struct hr_session *session;
	uint64_t head;
	uint32_t last_file;
};

struct drain {
	struct hr_gen *gen;
	struct hr_batch_pool *pool;
	struct hr_journal *journal;
	struct hr_engine *engine;
	struct lane *lanes;
	size_t n_lanes;
	uint32_t level; /* enum hr_level */
	uint64_t applied;
	uint64_t slots;
	double journal_s; /* of all: looking, copying, committing, giving back */
};

static void throw_away(struct drain *d)
{
	struct hr_out_list out;
	struct hr_out *o;

	hr_out_list_init(&out);
	hr_engine_take(d->engine, &out);
	while ((o = hr_out_list_pop(&out)))
		hr_out_free(o, d->pool);
}

static void checkpoint(struct drain *d)
{
	uint64_t full = hr_journal_gen(d->journal);

	hr_engine_checkpoint(d->engine);
	hr_journal_begin(d->journal);
	hr_engine_snapshot(d->engine, d->journal);
	hr_journal_begun(d->journal);
	hr_journal_retire(d->journal, full);
	d->applied = hr_journal_head(d->journal);
	throw_away(d);
}

static void *reserve(struct drain *d, uint64_t bytes)
{
	void *entry = hr_journal_reserve(d->journal, bytes, HR_JOURNAL_SLACK + HR_KNOWN_SLACK);

	if (entry)
		return entry;
	checkpoint(d);
	return hr_journal_reserve(d->journal, bytes, HR_JOURNAL_SLACK + HR_KNOWN_SLACK);
}

/* What the engine makes of the entries committed since the last time. */
static void apply(struct drain *d)
{
	const struct hr_entry *entry;

	while ((entry = hr_journal_next(d->journal, hr_journal_gen(d->journal), &d->applied))) {
		uint32_t n;

		hr_engine_apply(d->engine, entry);
		n = hr_engine_known(d->engine);
		if (n) {
			struct hr_entry_known *in = hr_journal_reserve(
			    d->journal, sizeof(*in) + n * sizeof(in->rows[0]), 0);

			in->n = n;
			hr_engine_known_rows(d->engine, in->rows);
			hr_journal_commit(d->journal, HR_ENTRY_KNOWN,
					  sizeof(*in) + n * sizeof(in->rows[0]));
		}
	}
	throw_away(d);
}

static void commit(struct drain *d, uint32_t kind, uint64_t bytes)
{
	hr_journal_commit(d->journal, kind, bytes);
	apply(d);
}

/* ---- set up ---------------------------------------------------------------------------------------- */

static void begin(struct drain *d)
{
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	struct hr_entry_start *in;
	size_t bytes = headrace__job_event__get_packed_size(&job);

	hr_journal_begin(d->journal);
	in = hr_journal_reserve(d->journal, sizeof(*in) + bytes, 0);
	in->next_seq = 2;
	in->line = (struct hr_clock_line){0, 0, UINT64_C(1) << 32};
	in->now = (struct hr_clock_sample){START_NS, START_NS, 1};
	in->level = d->level;
	in->job_bytes = (uint32_t)headrace__job_event__pack(&job, in->job);
	hr_journal_begun(d->journal);
	commit(d, HR_ENTRY_START, sizeof(*in) + bytes);
}

static int add_lane(struct drain *d, size_t i)
{
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	struct hr_entry_attach *in = reserve(d, sizeof(*in) + sizeof(hello));
	const struct hr_map_hdr head = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .session = i + 1,
	    .ring_count = HR_MAP_RINGS,
	    .slots_log2 = HR_RING_SLOTS_LOG2,
	    .level = d->level,
	};
	struct hr_ringpool pool;
	struct hr_map map;
	int fd, r;

	hello.kind = HR_HELLO_ATTACH;
	hello.bytes = sizeof(hello);
	memset(in, 0, sizeof(*in));
	in->proc = in->token = i + 1;
	in->pid = (int32_t)i + 1;
	in->now_ns = in->now_ticks = START_NS;
	in->hello_bytes = sizeof(hello);
	memcpy(in->hello, &hello, sizeof(hello));
	commit(d, HR_ENTRY_ATTACH, sizeof(*in) + sizeof(hello));
	hr_ringpool_init(&pool);
	fd = hr_ringpool_take(&pool, &map);
	if (fd < 0)
		return fd;
	close(fd);
	memcpy(map.hdr, &head, HR_MAP_HEAD_BYTES);
	r = hr_session_new(i + 1, i + 1, (pid_t)i + 1, &d->lanes[i].session);
	return r ? r : hr_session_add_map(d->lanes[i].session, &map);
}

/* ---- the clients ----------------------------------------------------------------------------------- */

static struct hr_record *next_slot(struct lane *l)
{
	return &l->session->rings[0].slots[l->head & (SLOTS - 1)];
}

static void put(struct lane *l, const struct hr_record *r)
{
	struct hr_record *slot = next_slot(l);

	*slot = *r;
	slot->seq = (uint32_t)++l->head;
	l->session->rings[0].hdr->head = l->head;
}

static void put_path(struct drain *d, struct lane *l, uint32_t file)
{
	char path[HR_GEN_PATH_BYTES];
	size_t bytes = hr_gen_path(d->gen, file, path);
	struct hr_record r = {.file = hr_gen_path_hash(d->gen, file),
			      .offset = HR_OFFSET_NONE,
			      .ret = -1,
			      .asked = bytes,
			      .op = HR_CTL_PATH};

	put(l, &r);
	for (size_t at = 0; at < bytes; at += HR_TEXT_BYTES) {
		memset(&r, 0, sizeof(r));
		memcpy(&r, path + at, bytes - at < HR_TEXT_BYTES ? bytes - at : HR_TEXT_BYTES);
		put(l, &r);
	}
	l->last_file = file;
}

/* Returns when the last one ended. */
static uint64_t fill(struct drain *d, const struct hr_event *events, size_t n)
{
	uint64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		const struct hr_event *e = &events[i];
		struct lane *l = &d->lanes[e->task];
		struct hr_record r = {
		    .start_ticks = e->start_ns,
		    .file = hr_gen_path_hash(d->gen, e->file),
		    .offset =
			e->op == HR_OP_read || e->op == HR_OP_write ? HR_OFFSET_NONE : e->offset,
		    .ret = e->ret,
		    .asked = e->asked,
		    .dur_lo = (uint32_t)e->dur_ns,
		    .op = e->op,
		    .fd = e->fd,
		    .flags = e->flags,
		};

		if (e->file != l->last_file)
			put_path(d, l, e->file);
		put(l, &r);
		if (e->start_ns + e->dur_ns > last)
			last = e->start_ns + e->dur_ns;
	}
	return last;
}

/* ---- the drain thread -------------------------------------------------------------------------------- */

static void sweep(struct drain *d, struct lane *l, uint64_t ticks)
{
	struct hr_ring_view *ring = &l->session->rings[0];
	double start = hr_bench_cpu_s();
	uint64_t end, bytes;
	uint32_t n = hr_ring_ready(ring, ticks, SLOTS, false, ticks, &end);
	struct hr_entry_records *in;

	if (!n)
		return;
	bytes = sizeof(*in) + sizeof(struct hr_run) + (uint64_t)n * HR_SLOT_BYTES;
	d->journal_s += hr_bench_cpu_s() - start;
	in = reserve(d, bytes); /* with a checkpoint now and then, which is not counted here */
	start = hr_bench_cpu_s();
	in->proc = l->session->proc;
	in->sweep_ticks = ticks;
	in->n_runs = 1;
	in->runs[0] = (struct hr_run){0, 0, n, ring->tail};
	hr_ring_copy(ring, n, (struct hr_record *)(in->runs + 1));
	hr_journal_commit(d->journal, HR_ENTRY_RECORDS, bytes);
	hr_ring_consumed(ring, n);
	d->slots += n;
	d->journal_s += hr_bench_cpu_s() - start;
	apply(d);
}

static void tick(struct drain *d, uint64_t ns)
{
	struct hr_entry_tick *in = reserve(d, sizeof(*in));

	in->line = (struct hr_clock_line){0, 0, UINT64_C(1) << 32};
	in->now = (struct hr_clock_sample){ns, ns, 1};
	commit(d, HR_ENTRY_TICK, sizeof(*in));
}

/* Whether the engine has taken each operation once. */
static bool complete(const struct drain *d, uint64_t operations)
{
	struct hr_engine_stats stats;

	hr_engine_stats_get(d->engine, &stats);
	return stats.records == operations && !stats.hostile && !stats.torn &&
	       stats.events == (d->level == HR_LEVEL_TRACE ? operations : 0);
}

static int run_rounds(struct drain *d, uint64_t events)
{
	struct hr_event *buf = malloc(ROUND_EVENTS * sizeof(*buf));
	uint64_t done = 0;
	double cpu_s = 0;

	if (!buf)
		return -ENOMEM;
	for (; done + ROUND_EVENTS <= events; done += ROUND_EVENTS) {
		uint64_t ticks;
		double start;

		hr_gen_next(d->gen, buf, ROUND_EVENTS);
		ticks = fill(d, buf, ROUND_EVENTS);
		start = hr_bench_cpu_s();
		tick(d, ticks);
		for (size_t i = 0; i < d->n_lanes; i++)
			sweep(d, &d->lanes[i], ticks);
		cpu_s += hr_bench_cpu_s() - start;
	}
	free(buf);
	if (!done)
		return -EINVAL;
	if (!complete(d, done))
		return -EBADMSG;
	hr_bench_row("drain and fold", cpu_s * 1e9 / (double)done, "ns/event");
	hr_bench_row("of it, into the journal", d->journal_s * 1e9 / (double)done, "ns/event");
	hr_bench_row("on one core", (double)done / cpu_s / 1e6, "M events/s");
	hr_bench_row("slots of 64 bytes", (double)d->slots / (double)done, "per event");
	return 0;
}

static int drain_at(const struct hr_bench *bench, uint32_t level)
{
	struct drain d = {.level = level, .gen = hr_gen_new(&bench->config, 0)};
	const struct hr_task *tasks;
	bool found;
	int r = hr_batch_pool_new(8, &d.pool);

	if (!r)
		r = hr_journal_open(-1, HR_JOURNAL_HALF_BYTES, &d.journal, &found);
	if (!r)
		r = hr_engine_new(d.pool, &d.engine);
	if (r)
		return r;
	begin(&d);
	d.n_lanes = hr_gen_tasks(d.gen, &tasks);
	d.lanes = calloc(d.n_lanes, sizeof(*d.lanes));
	for (size_t i = 0; i < d.n_lanes && !r; i++)
		r = d.lanes ? add_lane(&d, i) : -ENOMEM;
	if (!r)
		r = run_rounds(&d, bench->config.events / bench->config.nodes);
	for (size_t i = 0; d.lanes && i < d.n_lanes; i++)
		hr_session_free(d.lanes[i].session);
	free(d.lanes);
	hr_engine_free(d.engine);
	hr_journal_close(d.journal);
	hr_batch_pool_free(d.pool);
	hr_gen_free(d.gen);
	return r;
}

int hr_bench_drain(const struct hr_bench *bench)
{
	return drain_at(bench, HR_LEVEL_TRACE);
}

int hr_bench_counters(const struct hr_bench *bench)
{
	return drain_at(bench, HR_LEVEL_COUNTERS);
}
