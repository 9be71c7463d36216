/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e.c - what happens on one node of the job of workflow E
 */
#include "tests/bench/workflow_e.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/generate_random.h"
#include "tests/bench/workflow_e_files.h"

#define TASKS		(HR_WE_LOCAL * (1 + HR_WE_WORKERS))
#define SAMPLE_BYTES	UINT64_C(16392) /* 4 sequences of 2,049 tokens of 2 bytes */
#define SHARD_SAMPLES	1024u
#define STEP_SAMPLES	64u    /* of each worker of a rank */
#define SAMPLE_NS	2.3e6  /* a worker's time for one: decoding */
#define PAUSE_NS	2500.0 /* interpreter between two calls */
#define EPOCHS		2u
#define SCR_CHECKPOINTS (HR_WE_CHECKPOINTS / 2)
#define MIB		UINT64_C(1048576)
#define FLUSH_PIECES	8u
#define FLUSH_BYTES	(64 * MIB)
#define QUEUE		256u
#define DATA_FD		5
#define CHECKPOINT_FD	9
#define FLUSH_FD	10
#define FIRST_TID	1000u

const char *const hr_we_names[] = {"epoch", "train", "DataLoader.__next__", HR_WE_REGION,
				   "torch.save"};

/* Calls of a part: looked for with SCR, then open, fstat, lseek, writes, close. */
static const struct {
	unsigned writes;
	uint64_t bytes; /* of each but the first, which is a header, and the last */
} shapes[] = {[HR_WE_MODEL] = {3, 48 * MIB},
	      [HR_WE_OPTIMIZER] = {24, 32 * MIB},
	      [HR_WE_LAYER] = {6, 16 * MIB}};
enum { SCR_ACCESSES = 2, SCR_STATS = 4 };

struct actor {
	struct hr_event next; /* its file is a number until it is handed out */
	uint64_t now_ns;
	/* a worker */
	uint64_t left, opened, position;
	uint32_t shard, sample;
	enum { OPEN, STAT, SEEK, READ, CLOSE } phase;
	/* a rank */
	uint32_t step, checkpoint, epoch;
	uint64_t epoch_ns;
	struct hr_event *queue;
	unsigned n_queue, at;
};

struct hr_we_node {
	struct hr_we_config config;
	uint32_t node, n_files;
	uint32_t steps, period; /* of a rank, between checkpoints */
	struct hr_we_totals *totals;
	uint64_t clocks[TASKS]; /* end of each actor's next event; UINT64_MAX: it is done */
	struct actor actors[TASKS];
	struct hr_task tasks[TASKS];
	uint32_t id_of[HR_WE_NUMBERS], number_of[HR_WE_NUMBERS + 1];
	struct hr_we_region *regions;
	size_t n_regions, regions_room;
	struct hr_gen_random random;
};

/* ---- tasks ----------------------------------------------------------------------------- */

uint32_t hr_we_rank(const struct hr_we_node *n, uint32_t task)
{
	uint32_t local = task < HR_WE_LOCAL ? task : (task - HR_WE_LOCAL) / HR_WE_WORKERS;

	return n->node * HR_WE_LOCAL + local;
}

int hr_we_worker(const struct hr_we_node *n, uint32_t task)
{
	(void)n;
	return task < HR_WE_LOCAL ? -1 : (int)((task - HR_WE_LOCAL) % HR_WE_WORKERS);
}

size_t hr_we_tasks(const struct hr_we_node *n, const struct hr_task **ret)
{
	*ret = n->tasks;
	return TASKS;
}

/* ---- workers --------------------------------------------------------------------------- */

static void set(struct hr_event *e, uint16_t op, int32_t fd, uint64_t asked, int64_t ret,
		int64_t offset, uint32_t flags)
{
	e->op = op;
	e->fd = fd;
	e->asked = asked;
	e->ret = ret;
	e->offset = offset;
	e->flags = flags;
}

/* Each worker takes every 64th of the epoch's order of shards; each epoch has another. */
static void next_shard(struct hr_we_node *n, struct actor *a, uint32_t task)
{
	uint64_t k = a->opened++ * (HR_WE_RANKS * HR_WE_WORKERS) +
		     n->node * (HR_WE_LOCAL * HR_WE_WORKERS) + task - HR_WE_LOCAL;
	uint64_t epoch = k / HR_WE_SHARDS, factor = hr_gen_mix(epoch + 1) | 1;

	a->shard = (uint32_t)(k * factor + epoch) % HR_WE_SHARDS;
	a->sample = 0;
	a->position = 0;
}

static void plan_worker(struct hr_we_node *n, uint32_t task)
{
	struct actor *a = &n->actors[task];
	struct hr_event *e = &a->next;
	double pause = PAUSE_NS, took = 310;

	if (a->left-- == 0) {
		n->clocks[task] = UINT64_MAX;
		return;
	}
	if (a->phase == OPEN)
		next_shard(n, a, task);
	switch (a->phase) {
	case OPEN:
		set(e, HR_OP_open64, DATA_FD, HR_ASKED_NONE, DATA_FD, HR_OFFSET_NONE, O_RDONLY);
		took = 5200;
		a->phase = STAT;
		break;
	case STAT:
		set(e, HR_OP___fxstat64, DATA_FD, HR_ASKED_NONE, 0, HR_OFFSET_NONE, 0);
		took = 560;
		a->phase = SEEK;
		break;
	case SEEK:
		pause = SAMPLE_NS;
		set(e, HR_OP_lseek64, DATA_FD, HR_ASKED_NONE, (int64_t)a->position,
		    (int64_t)a->position, SEEK_SET);
		a->phase = READ;
		break;
	case READ:
		pause = 900;
		set(e, HR_OP_read, DATA_FD, SAMPLE_BYTES, SAMPLE_BYTES, (int64_t)a->position, 0);
		took = 350 + 0.14 * (double)SAMPLE_BYTES;
		a->position += SAMPLE_BYTES;
		a->phase = ++a->sample == SHARD_SAMPLES ? CLOSE : SEEK;
		break;
	case CLOSE:
		set(e, HR_OP_close, DATA_FD, HR_ASKED_NONE, 0, HR_OFFSET_NONE, 0);
		took = 880;
		a->phase = OPEN;
		break;
	}
	e->file = a->shard;
	e->start_ns = a->now_ns + hr_gen_noisy(&n->random, pause);
	e->dur_ns = hr_gen_noisy(&n->random, took);
	n->clocks[task] = a->now_ns = e->start_ns + e->dur_ns;
}

/* ---- ranks ----------------------------------------------------------------------------- */

static void region(struct hr_we_node *n, uint32_t task, enum hr_we_name name, uint32_t kind,
		   uint64_t start_ns)
{
	static const uint32_t depths[] = {0, 1, 2, 1, 2};
	struct actor *a = &n->actors[task];
	uint64_t dur_ns = a->now_ns - start_ns;

	if (n->n_regions == n->regions_room) {
		n->regions_room = n->regions_room ? 2 * n->regions_room : 1024;
		n->regions = build_must(realloc(n->regions, n->regions_room * sizeof(*n->regions)));
	}
	n->regions[n->n_regions++] = (struct hr_we_region){
	    .name = name,
	    .region = {.proc = task + 1,
		       .tid = FIRST_TID + task,
		       .kind = kind,
		       .depth = depths[name],
		       .count = 1,
		       .start_ns = start_ns,
		       .dur_ns = dur_ns,
		       .step = name == HR_WE_EPOCH ? HR_REGION_UNKNOWN : a->step,
		       .epoch = a->epoch}};
	n->totals->regions++;
	if (name == HR_WE_CHECKPOINT)
		n->totals->checkpoint_ns[hr_we_rank(n, task)] += dur_ns;
}

/* A call of a rank, with the event's other fields set. */
static struct hr_event *call(struct hr_we_node *n, struct actor *a, uint32_t file, double took)
{
	struct hr_event *e = &a->queue[a->n_queue];

	if (++a->n_queue > QUEUE)
		abort(); /* sized for a checkpoint */
	*e = (struct hr_event){.task = a->next.task, .file = file};
	e->start_ns = a->now_ns + hr_gen_noisy(&n->random, PAUSE_NS);
	e->dur_ns = hr_gen_noisy(&n->random, took);
	a->now_ns = e->start_ns + e->dur_ns;
	return e;
}

static void open_file(struct hr_we_node *n, struct actor *a, uint32_t file, int32_t fd,
		      uint32_t flags)
{
	set(call(n, a, file, 48000), HR_OP_open64, fd, HR_ASKED_NONE, fd, HR_OFFSET_NONE, flags);
}

static void close_file(struct hr_we_node *n, struct actor *a, uint32_t file, int32_t fd)
{
	set(call(n, a, file, 3000), HR_OP_close, fd, HR_ASKED_NONE, 0, HR_OFFSET_NONE, 0);
}

static void transfer(struct hr_we_node *n, struct actor *a, uint32_t file, int32_t fd, uint16_t op,
		     uint64_t bytes, uint64_t offset)
{
	double byte_ns = hr_we_mount_of(n->config.scr, file) == 0 ? 0.8 : 0.4;

	set(call(n, a, file, 1500 + byte_ns * (double)bytes), op, fd, bytes, (int64_t)bytes,
	    (int64_t)offset, 0);
}

/* Sizes differ from rank to rank and part to part, as those of layers do. */
static uint64_t write_bytes(uint32_t file, unsigned shape, unsigned write)
{
	uint64_t chance = hr_gen_mix((uint64_t)file << 8 | write);

	if (write == 0)
		return 512 + chance % 512;
	if (write + 1 == shapes[shape].writes)
		return 700 + chance % 4096;
	return shapes[shape].bytes - 64 * (chance % 65536);
}

static void save_part(struct hr_we_node *n, uint32_t task, uint32_t file, unsigned part)
{
	unsigned shape = part > HR_WE_LAYER ? HR_WE_LAYER : part;
	struct actor *a = &n->actors[task];
	uint64_t begin_ns = a->now_ns, offset = 0;

	for (unsigned i = 0; n->config.scr && i < SCR_ACCESSES; i++)
		set(call(n, a, file, 1800), HR_OP_access, -1, HR_ASKED_NONE, 0, HR_OFFSET_NONE,
		    F_OK);
	for (unsigned i = 0; n->config.scr && i < SCR_STATS; i++)
		set(call(n, a, file, 2100), HR_OP___xstat, -1, HR_ASKED_NONE, 0, HR_OFFSET_NONE, 0);
	open_file(n, a, file, CHECKPOINT_FD, O_WRONLY | O_CREAT | O_TRUNC);
	set(call(n, a, file, 700), HR_OP___fxstat64, CHECKPOINT_FD, HR_ASKED_NONE, 0,
	    HR_OFFSET_NONE, 0);
	set(call(n, a, file, 350), HR_OP_lseek64, CHECKPOINT_FD, HR_ASKED_NONE, 0, 0, SEEK_CUR);
	for (unsigned i = 0; i < shapes[shape].writes; i++) {
		uint64_t bytes = write_bytes(file, shape, i);

		transfer(n, a, file, CHECKPOINT_FD, HR_OP_write, bytes, offset);
		offset += bytes;
	}
	close_file(n, a, file, CHECKPOINT_FD);
	region(n, task, HR_WE_SAVE, HR_REGION_CHECKPOINT, begin_ns);
}

/* SCR protects what lies on the SSD, and copies that to the parallel file system when the ranks go on. */
static void protect(struct hr_we_node *n, struct actor *a, uint32_t file)
{
	open_file(n, a, file, CHECKPOINT_FD, O_WRONLY | O_CREAT | O_TRUNC);
	for (unsigned i = 0; i < FLUSH_PIECES; i++)
		transfer(n, a, file, CHECKPOINT_FD, HR_OP_write, FLUSH_BYTES, i * FLUSH_BYTES);
	close_file(n, a, file, CHECKPOINT_FD);
}

static void flush(struct hr_we_node *n, struct actor *a, uint32_t from, uint32_t to)
{
	open_file(n, a, from, CHECKPOINT_FD, O_RDONLY);
	open_file(n, a, to, FLUSH_FD, O_WRONLY | O_CREAT | O_TRUNC);
	for (unsigned i = 0; i < FLUSH_PIECES; i++) {
		transfer(n, a, from, CHECKPOINT_FD, HR_OP_read, FLUSH_BYTES, i * FLUSH_BYTES);
		transfer(n, a, to, FLUSH_FD, HR_OP_write, FLUSH_BYTES, i * FLUSH_BYTES);
	}
	close_file(n, a, to, FLUSH_FD);
	close_file(n, a, from, CHECKPOINT_FD);
}

static void save(struct hr_we_node *n, uint32_t task)
{
	struct actor *a = &n->actors[task];
	uint32_t rank = hr_we_rank(n, task), checkpoint = a->checkpoint++;
	uint64_t begin_ns = a->now_ns;

	for (unsigned part = 0; part < HR_WE_REDUNDANCY; part++)
		save_part(n, task, hr_we_number(checkpoint, rank, part), part);
	if (n->config.scr)
		protect(n, a, hr_we_number(checkpoint, rank, HR_WE_REDUNDANCY));
	a->now_ns += 1000;
	region(n, task, HR_WE_CHECKPOINT, HR_REGION_CHECKPOINT, begin_ns);
	if (n->config.scr)
		flush(n, a, hr_we_number(checkpoint, rank, HR_WE_REDUNDANCY),
		      hr_we_number(checkpoint, rank, HR_WE_FLUSHED));
}

/* How many calls save() makes. */
static uint64_t calls_of_a_checkpoint(bool scr)
{
	uint64_t parts = HR_WE_REDUNDANCY, calls = 4 * parts + shapes[HR_WE_MODEL].writes +
						   shapes[HR_WE_OPTIMIZER].writes +
						   HR_WE_LAYERS * shapes[HR_WE_LAYER].writes;

	if (scr)
		calls +=
		    parts * (SCR_ACCESSES + SCR_STATS) + 2 + FLUSH_PIECES + 4 + 2 * FLUSH_PIECES;
	return calls;
}

static void train_step(struct hr_we_node *n, uint32_t task)
{
	struct actor *a = &n->actors[task];
	uint64_t begin_ns = a->now_ns;

	if (a->step == a->epoch * (n->steps / EPOCHS))
		a->epoch_ns = begin_ns;
	a->now_ns += hr_gen_noisy(&n->random, 12e6);
	region(n, task, HR_WE_WAIT, HR_REGION_INPUT_WAIT, begin_ns);
	a->now_ns += hr_gen_noisy(&n->random, STEP_SAMPLES * SAMPLE_NS - 20e6);
	region(n, task, HR_WE_STEP, HR_REGION_STEP, begin_ns);
	a->step++;
	if (a->step == (a->epoch + 1) * (n->steps / EPOCHS)) {
		region(n, task, HR_WE_EPOCH, HR_REGION_EPOCH, a->epoch_ns);
		a->epoch++;
	}
}

/* Trains until there is something to save. */
static void plan_rank(struct hr_we_node *n, uint32_t task)
{
	struct actor *a = &n->actors[task];

	if (a->at == a->n_queue) {
		a->at = a->n_queue = 0;
		while (a->n_queue == 0 && a->step < n->steps) {
			train_step(n, task);
			if (a->step % n->period == 0)
				save(n, task);
		}
		if (a->n_queue == 0) {
			n->clocks[task] = UINT64_MAX;
			return;
		}
	}
	a->next = a->queue[a->at++];
	n->clocks[task] = a->next.start_ns + a->next.dur_ns;
}

static void plan(struct hr_we_node *n, uint32_t task)
{
	if (task < HR_WE_LOCAL)
		plan_rank(n, task);
	else
		plan_worker(n, task);
}

/* ---- the node -------------------------------------------------------------------------- */

static void add_write(struct hr_we_node *n, uint64_t bytes)
{
	struct hr_we_totals *t = n->totals;

	if (t->n_writes == t->writes_room) {
		t->writes_room = t->writes_room ? 2 * t->writes_room : 1024;
		t->writes = build_must(realloc(t->writes, t->writes_room * sizeof(*t->writes)));
	}
	t->writes[t->n_writes++] = bytes;
}

static void tally(struct hr_we_node *n, const struct hr_event *e)
{
	struct hr_we_totals *t = n->totals;
	unsigned pattern = hr_we_pattern_of(e->file);

	t->events++;
	t->mount_ns[hr_we_mount_of(n->config.scr, e->file)][hr_we_rank(n, e->task)] += e->dur_ns;
	if (e->op == HR_OP_read)
		t->bytes_read[pattern] += (uint64_t)e->ret;
	if (e->op == HR_OP_write) {
		t->bytes_written[pattern] += (uint64_t)e->ret;
		add_write(n, (uint64_t)e->ret);
	}
	if (strcmp(hr_we_patterns[pattern], "model.pt") == 0)
		t->model_ops[e->op]++;
	if (e->file == hr_we_number(0, 0, HR_WE_MODEL))
		t->file_events[t->n_file_events++] = *e;
}

size_t hr_we_next(struct hr_we_node *n, struct hr_event *events, size_t max)
{
	size_t i;

	for (i = 0; i < max; i++) {
		uint32_t task = 0, number;

		for (uint32_t k = 1; k < TASKS; k++)
			if (n->clocks[k] < n->clocks[task])
				task = k;
		if (n->clocks[task] == UINT64_MAX)
			break;
		events[i] = n->actors[task].next;
		tally(n, &events[i]);
		number = events[i].file;
		if (!n->id_of[number]) {
			n->id_of[number] = ++n->n_files;
			n->number_of[n->n_files] = number;
		}
		events[i].file = n->id_of[number];
		plan(n, task);
	}
	return i;
}

uint32_t hr_we_files(const struct hr_we_node *n)
{
	return n->n_files;
}

uint32_t hr_we_mount(const struct hr_we_node *n, uint32_t file)
{
	return hr_we_mount_of(n->config.scr, n->number_of[file]) + 1;
}

void hr_we_file(const void *generator, uint32_t id, Headrace__Path *row,
		char text[HR_GEN_PATH_BYTES])
{
	const struct hr_we_node *n = generator;
	uint32_t number = n->number_of[id];

	row->hash = hr_gen_mix((uint64_t)number + 1 +
			       (number >= HR_WE_SHARDS && n->config.scr ? HR_WE_NUMBERS : 0)) &
		    ~UINT64_C(7);
	row->mount = hr_we_mount(n, id);
	hr_we_path(n->config.scr, number, text);
}

size_t hr_we_regions(struct hr_we_node *n, const struct hr_we_region **ret)
{
	size_t count = n->n_regions;

	*ret = n->regions;
	n->n_regions = 0;
	return count;
}

struct hr_we_node *hr_we_node_new(const struct hr_we_config *config, uint32_t node,
				  struct hr_we_totals *totals)
{
	uint32_t checkpoints = config->scr ? SCR_CHECKPOINTS : HR_WE_CHECKPOINTS;
	uint64_t events =
	    config->events / HR_WE_NODES + (node == 0 ? config->events % HR_WE_NODES : 0);
	uint64_t saves = checkpoints * HR_WE_LOCAL * calls_of_a_checkpoint(config->scr);
	uint64_t workers = HR_WE_LOCAL * HR_WE_WORKERS, left = events - saves;
	struct hr_we_node *n = build_must(calloc(1, sizeof(*n)));

	n->config = *config;
	n->node = node;
	n->totals = totals;
	hr_gen_random_init(&n->random, 7000 + 10 * config->scr + node);
	n->period = (uint32_t)(left / workers / (2 * STEP_SAMPLES)) / checkpoints + 1;
	n->steps = n->period * checkpoints;
	for (uint32_t t = 0; t < TASKS; t++) {
		struct actor *a = &n->actors[t];

		n->tasks[t] = (struct hr_task){.proc = t + 1, .tid = FIRST_TID + t};
		a->next.task = t;
		a->now_ns = HR_GEN_BOOT_NS + hr_gen_noisy(&n->random, 1e6);
		a->left = left / workers + (t - HR_WE_LOCAL < left % workers);
		if (t < HR_WE_LOCAL)
			a->queue = build_must(calloc(QUEUE, sizeof(*a->queue)));
		plan(n, t);
	}
	return n;
}

void hr_we_node_free(struct hr_we_node *n)
{
	if (!n)
		return;
	for (uint32_t t = 0; t < HR_WE_LOCAL; t++)
		free(n->actors[t].queue);
	free(n->regions);
	free(n);
}

void hr_we_totals_done(struct hr_we_totals *t)
{
	free(t->writes);
	*t = (struct hr_we_totals){0};
}
