/* SPDX-License-Identifier: Apache-2.0 */
/* A training job as a store: what headraced of each node would have written. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/training.h"

#define FIRST_TID 1000u
#define DATA_FD	  5
#define LOG_FD	  9
#define CORES	  96u
#define LOG_BYTES 74u

/* What a process does: its operations follow each other. */
struct actor {
	uint32_t rank, worker; /* worker: of a training thread: UINT32_MAX */
	uint32_t pass, batch;  /* of the next fetch or step */
	struct hr_train_call calls[HR_TRAIN_FETCH_MAX];
	size_t at, n;
};

struct out {
	struct hr_train_plan *plan;
	uint32_t node, first; /* first: its first rank */
	struct hr_gen_stream stream;
	struct hr_event *events;
	struct hr_task *tasks;
	size_t n_tasks;
	struct actor *actors;
	uint64_t *ends; /* of each actor's next operation; UINT64_MAX: it has ended */
	size_t n_actors;
	uint32_t *sent; /* of each local rank: steps whose regions were sent */
	uint32_t *id_of, *file_of, n_files, files_named;
	struct hr_train_totals *totals;
};

/* ---- processes: the training threads, and the workers of each pass ---- */

static uint32_t task_of(const struct out *o, uint32_t rank, uint32_t pass, uint32_t worker)
{
	uint32_t local = rank - o->first;

	if (worker == UINT32_MAX)
		return local;
	return o->plan->config.local + (local * HR_TRAIN_PASSES + pass) * HR_TRAIN_WORKERS_MAX +
	       worker;
}

static Headrace__Process process_row(const struct out *o, uint32_t rank, uint32_t pass,
				     uint32_t worker)
{
	const struct hr_train_pass *t = hr_train_pass_of(o->plan, rank, pass);
	bool trains = worker == UINT32_MAX;
	Headrace__Process row =
	    hr_gen_process(task_of(o, rank, pass, worker), rank, trains ? -1 : (int)worker,
			   o->plan->config.local, o->plan->ranks, "python3 train.py");

	row.cpus = CORES;
	row.end_ns = hr_train_pass_of(o->plan, rank, HR_TRAIN_PASSES - 1)->saved + 500000000;
	if (!trains) {
		row.parent_proc = rank - o->first + 1;
		row.start_ns = t->from + 5000000;
		row.end_ns = t->to;
	}
	return row;
}

static void send_processes(struct out *o)
{
	Headrace__Process *rows = build_must(calloc(o->n_tasks, sizeof(*rows)));
	size_t n = 0;

	for (uint32_t rank = o->first; rank < o->first + o->plan->config.local; rank++) {
		rows[n++] = process_row(o, rank, 0, UINT32_MAX);
		for (uint32_t pass = 0; pass < HR_TRAIN_PASSES; pass++)
			for (uint32_t w = 0; w < hr_train_workers(rank); w++)
				rows[n++] = process_row(o, rank, pass, w);
	}
	build_processes(&o->stream.b, rows, n);
	free(rows);
}

/* ---- regions ---- */

/* `args`: NULL: none. */
static void add_region(struct out *o, uint32_t task, uint32_t kind, const char *name, uint64_t from,
		       uint64_t to, uint64_t step, uint64_t epoch, const char *args)
{
	build_region(&o->stream.b,
		     (struct hr_region){.proc = task + 1,
					.tid = FIRST_TID + task,
					.kind = kind,
					.start_ns = from,
					.dur_ns = to - from,
					.step = step,
					.epoch = epoch},
		     (struct build_texts){.domain = "torch", .args = args, .name = name});
	o->totals->regions++;
}

static void add_wait(struct out *o, uint32_t rank, uint32_t batch, uint64_t from, uint64_t to,
		     uint64_t step, uint64_t epoch)
{
	bool end = batch == o->plan->batches;
	char args[256];

	snprintf(args, sizeof(args),
		 "{\"loader\":0,\"workers\":%u,\"prefetch\":%u,\"batch_size\":%u,\"batch\":%u,%s"
		 "\"cpu_ns\":%" PRIu64 ",\"before_cpu_ns\":%u,\"before_ns\":%u}",
		 hr_train_workers(rank), HR_TRAIN_PREFETCH, HR_TRAIN_BATCH, batch,
		 end ? "\"end\":true," : "", 300000 + from % 65536,
		 30000000 + (uint32_t)(from % 1000000), 80000000 + (uint32_t)(to % 1000000));
	add_region(o, task_of(o, rank, 0, UINT32_MAX), HR_REGION_INPUT_WAIT, "DataLoader.__next__",
		   from, to, step, epoch, args);
}

static void add_fetch(struct out *o, uint32_t rank, uint32_t pass, uint32_t batch)
{
	const struct hr_train_step *s = hr_train_step_of(o->plan, rank, pass, batch);
	uint32_t worker = batch % hr_train_workers(rank);
	struct hr_train_call calls[HR_TRAIN_FETCH_MAX];
	uint64_t cpu_ns;
	char args[256];
	size_t n;

	hr_train_fetch(o->plan, rank, pass, batch, s->fetch_from, calls, &n, &cpu_ns);
	snprintf(args, sizeof(args),
		 "{\"loader\":0,\"worker\":%u,\"batch\":%u,\"samples\":%u,\"cpu_ns\":%" PRIu64
		 ",\"core_wait_ns\":%" PRIu64 "}",
		 worker, batch, HR_TRAIN_BATCH, cpu_ns, cpu_ns % 900000);
	add_region(o, task_of(o, rank, pass, worker), HR_REGION_FETCH, "DataLoader.fetch",
		   s->fetch_from, s->fetch_to, HR_REGION_UNKNOWN, HR_REGION_UNKNOWN, args);
}

static void add_step(struct out *o, uint32_t rank, uint32_t pass, uint32_t batch)
{
	const struct hr_train_step *s = hr_train_step_of(o->plan, rank, pass, batch);
	uint32_t task = task_of(o, rank, 0, UINT32_MAX);
	uint64_t step = (uint64_t)pass * o->plan->batches + batch;
	uint64_t end = batch + 1 < o->plan->batches
			   ? s[1].wait_from
			   : hr_train_pass_of(o->plan, rank, pass)->last_wait;

	add_fetch(o, rank, pass, batch);
	add_wait(o, rank, batch, s->wait_from, s->wait_to, step, pass);
	add_region(o, task, HR_REGION_RANGE, "backward", s->backward_from, s->backward_to, step,
		   pass, NULL);
	add_region(o, task, HR_REGION_OPTIMIZER, "AdamW.step", s->backward_to, s->optimized, step,
		   pass, NULL);
	add_region(o, task, HR_REGION_STEP, "step", s->wait_from, end, step, pass, NULL);
}

static void add_pass(struct out *o, uint32_t rank, uint32_t pass)
{
	const struct hr_train_pass *t = hr_train_pass_of(o->plan, rank, pass);
	uint32_t task = task_of(o, rank, 0, UINT32_MAX);

	add_region(o, task, HR_REGION_RANGE, "DataLoader.__iter__", t->from, t->created,
		   HR_REGION_UNKNOWN, HR_REGION_UNKNOWN, NULL);
	add_wait(o, rank, o->plan->batches, t->last_wait, t->to, HR_REGION_UNKNOWN, pass);
	add_region(o, task, HR_REGION_EPOCH, "epoch", t->from, t->to, HR_REGION_UNKNOWN, pass,
		   NULL);
	if (t->saved > t->to)
		add_region(o, task, HR_REGION_CHECKPOINT, "torch.save", t->to, t->saved,
			   HR_REGION_UNKNOWN, HR_REGION_UNKNOWN, NULL);
}

/* Sends the regions that have ended. */
static void send_regions(struct out *o, uint64_t now)
{
	uint32_t batches = o->plan->batches, all = HR_TRAIN_PASSES * batches;

	for (uint32_t i = 0; i < o->plan->config.local; i++) {
		uint32_t rank = o->first + i;

		for (uint32_t *n = &o->sent[i]; *n < all; ++*n) {
			uint32_t pass = *n / batches, batch = *n % batches;

			if (hr_train_step_of(o->plan, rank, pass, batch)->optimized > now)
				break;
			add_step(o, rank, pass, batch);
			if (batch + 1 == batches)
				add_pass(o, rank, pass);
		}
	}
	build_regions(&o->stream.b);
}

/* ---- operations ---- */

/* The next operations of an actor. A training thread writes a line into its log in each step. */
static void plan_actor(struct out *o, size_t i)
{
	struct actor *a = &o->actors[i];
	uint64_t cpu_ns;

	if (++a->at < a->n)
		goto planned;
	a->at = a->n = 0;
	while (a->pass < HR_TRAIN_PASSES && a->batch >= o->plan->batches) {
		a->pass++;
		a->batch = a->worker == UINT32_MAX ? 0 : a->worker;
	}
	if (a->pass == HR_TRAIN_PASSES) {
		o->ends[i] = UINT64_MAX;
		return;
	}
	if (a->worker == UINT32_MAX) {
		const struct hr_train_step *s =
		    hr_train_step_of(o->plan, a->rank, a->pass, a->batch++);

		a->calls[0] = (struct hr_train_call){.from = s->optimized + 20000,
						     .ns = 9000 + s->wait_to % 8192,
						     .bytes = LOG_BYTES,
						     .file = o->plan->config.files,
						     .op = HR_OP_write};
		a->n = 1;
	} else {
		const struct hr_train_step *s =
		    hr_train_step_of(o->plan, a->rank, a->pass, a->batch);

		hr_train_fetch(o->plan, a->rank, a->pass, a->batch, s->fetch_from, a->calls, &a->n,
			       &cpu_ns);
		a->batch += hr_train_workers(a->rank);
	}
planned:
	o->ends[i] = a->calls[a->at].from + a->calls[a->at].ns;
}

static void make_event(struct out *o, const struct actor *a, struct hr_event *e)
{
	const struct hr_train_call *c = &a->calls[a->at];
	bool moves = c->op == HR_OP_read || c->op == HR_OP_write, opens = c->op == HR_OP_open64;
	/* After the last fetch of a pass, a->pass is still that pass. */
	uint32_t task = task_of(o, a->rank, a->pass, a->worker);

	if (o->id_of[c->file] == 0) {
		o->id_of[c->file] = ++o->n_files;
		o->file_of[o->n_files] = c->file;
	}
	*e = (struct hr_event){.start_ns = c->from,
			       .dur_ns = c->ns,
			       .offset = moves || c->op == HR_OP_lseek64 ? (int64_t)c->offset
									 : HR_OFFSET_NONE,
			       .ret = moves		       ? (int64_t)c->bytes
				      : opens		       ? DATA_FD
				      : c->op == HR_OP_lseek64 ? (int64_t)c->offset
							       : 0,
			       .asked = !moves	       ? HR_ASKED_NONE
					: c->bytes > 0 ? c->bytes
						       : 131072,
			       .file = o->id_of[c->file],
			       .task = task,
			       .fd = a->worker == UINT32_MAX ? LOG_FD : DATA_FD,
			       .op = c->op};
}

/* The next operations of all actors, by their ends. */
static size_t next_events(struct out *o)
{
	size_t n;

	for (n = 0; n < HR_BATCH_EVENTS; n++) {
		size_t first = 0;

		for (size_t i = 1; i < o->n_actors; i++)
			first = o->ends[i] < o->ends[first] ? i : first;
		if (o->ends[first] == UINT64_MAX)
			break;
		make_event(o, &o->actors[first], &o->events[n]);
		plan_actor(o, first);
	}
	o->totals->events += n;
	return n;
}

static void fill_file(const void *out, uint32_t id, Headrace__Path *row,
		      char text[HR_GEN_PATH_BYTES])
{
	const struct out *o = out;
	uint32_t file = o->file_of[id];
	bool data = file < o->plan->config.files;

	if (data)
		snprintf(text, HR_GEN_PATH_BYTES, "/data/set/part%03u/shard%07u.bin", file / 1000,
			 file);
	else
		snprintf(text, HR_GEN_PATH_BYTES, "/scratch/run/log%u.txt", o->node);
	row->hash = hr_gen_mix((data ? file : (uint64_t)file << 20 | o->node) + 1) & ~UINT64_C(7);
	row->mount = data ? 1 : 2;
}

static void send_events(struct out *o, size_t n)
{
	uint32_t first = o->files_named + 1;

	o->files_named = o->n_files;
	hr_gen_send_paths(&o->stream, first, o->files_named, fill_file, o);
	hr_gen_send_events(&o->stream, o->events, n, o->tasks, o->n_tasks);
	send_regions(o, o->stream.b.now_ns);
	for (size_t i = 0; i < n; i++)
		hr_gen_add(&o->stream, &o->events[i],
			   o->events[i].task < o->plan->config.local ? 2 : 1);
}

static void send_all(struct out *o)
{
	static const struct hr_gen_mount mounts[] = {{"/data", "lustre"}, {"/scratch", "xfs"}};
	size_t n;

	hr_gen_send_job(&o->stream, "train.py", o->plan->ranks, false);
	send_processes(o);
	hr_gen_send_mounts(&o->stream, mounts, 2);
	while ((n = next_events(o)) > 0)
		send_events(o, n);
	send_regions(o, UINT64_MAX);
	hr_gen_send_sums(&o->stream);
	o->stream.b.now_ns =
	    hr_train_pass_of(o->plan, o->first, HR_TRAIN_PASSES - 1)->saved + 600000000;
	hr_gen_send_job(&o->stream, "train.py", o->plan->ranks, true);
	build_end(&o->stream.b, "ended");
}

/* ---- nodes ---- */

static void make_actors(struct out *o)
{
	const struct hr_train_config *c = &o->plan->config;
	size_t room = c->local * (1 + HR_TRAIN_WORKERS_MAX);

	o->n_tasks = c->local * (1 + HR_TRAIN_PASSES * HR_TRAIN_WORKERS_MAX);
	o->tasks = build_must(calloc(o->n_tasks, sizeof(*o->tasks)));
	o->actors = build_must(calloc(room, sizeof(*o->actors)));
	o->ends = build_must(calloc(room, sizeof(*o->ends)));
	o->sent = build_must(calloc(c->local, sizeof(*o->sent)));
	o->id_of = build_must(calloc(c->files + 1, sizeof(*o->id_of)));
	o->file_of = build_must(calloc(c->files + 2, sizeof(*o->file_of)));
	o->events = build_must(malloc(HR_BATCH_EVENTS * sizeof(*o->events)));
	for (uint32_t t = 0; t < o->n_tasks; t++)
		o->tasks[t] = (struct hr_task){.proc = t + 1, .tid = FIRST_TID + t};
	for (uint32_t rank = o->first; rank < o->first + c->local; rank++) {
		for (uint32_t w = 0; w <= hr_train_workers(rank); w++) {
			bool trains = w == hr_train_workers(rank);
			struct actor *a = &o->actors[o->n_actors];

			a->rank = rank;
			a->worker = trains ? UINT32_MAX : w;
			a->batch = trains ? 0 : w;
			plan_actor(o, o->n_actors++);
		}
	}
}

static void write_node(struct hr_train_plan *plan, uint32_t node, const char *store,
		       struct hr_train_totals *totals)
{
	char name[32];
	struct hr_stream_id id = {.cluster = "bench",
				  .job = plan->config.job,
				  .node = name,
				  .boot_id = "00000000-0000-4000-8000-000000000000",
				  .instance = UINT64_C(0x7000) + node};
	struct out o = {
	    .plan = plan, .node = node, .first = node * plan->config.local, .totals = totals};

	make_actors(&o);
	snprintf(name, sizeof(name), "node%03u", node);
	hr_gen_open(&o.stream, store, &id, o.n_tasks);
	send_all(&o);
	totals->bytes += hr_gen_close(&o.stream);
	free(o.tasks);
	free(o.actors);
	free(o.ends);
	free(o.sent);
	free(o.id_of);
	free(o.file_of);
	free(o.events);
}

void hr_train_store(const struct hr_train_config *config, const char *store,
		    struct hr_train_totals *ret)
{
	struct hr_train_plan plan;

	hr_train_plan_make(config, &plan);
	for (uint32_t node = 0; node < config->nodes; node++)
		write_node(&plan, node, store, ret);
	hr_train_plan_done(&plan);
}
