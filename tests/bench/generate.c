/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/generate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/generate_random.h"

#define KIB		       UINT64_C(1024)
#define CHECKPOINT_WRITES      256u
#define CHECKPOINT_WRITE_BYTES (1024 * KIB)
#define SMALL_READ	       (4 * KIB)
#define LARGE_READ	       (64 * KIB)

/* What a task does next. */
enum step { STEP_OPEN, STEP_FSTAT, STEP_LSEEK, STEP_READ_HEAD, STEP_READ, STEP_WRITE, STEP_CLOSE };

struct actor {
	enum step step;
	bool is_rank;
	uint32_t path; /* number of the path, or of the checkpoint */
	uint32_t file; /* stream id */
	uint64_t size; /* of the file */
	uint64_t position;
	uint64_t clock_ns; /* end of its last event */
	struct hr_event next;
};

struct hr_gen {
	struct hr_gen_config config;
	uint32_t node;
	struct hr_gen_random random;
	uint64_t files_taken; /* by all workers, over all epochs */
	uint32_t checkpoints;
	uint32_t n_files;
	uint32_t *file_of_path; /* stream id, 0: not used yet */
	uint64_t *path_of_file; /* number of the path; from CHECKPOINT_BASE: of the checkpoint */
	size_t path_room;
	size_t n_tasks;
	struct hr_task *tasks;
	struct actor *actors;
};

#define CHECKPOINT_BASE (UINT64_C(1) << 32)

/* k-th path of an epoch: a Feistel permutation, walked until it lands inside. */
static uint32_t shuffled(const struct hr_gen *g, uint64_t epoch, uint64_t k)
{
	unsigned half = 1;

	while (UINT64_C(1) << 2 * half < g->config.paths)
		half++;
	do {
		uint64_t mask = (UINT64_C(1) << half) - 1, left = k >> half, right = k & mask;

		for (uint64_t round = 0; round < 4; round++) {
			uint64_t f =
			    hr_gen_mix(right ^ (epoch * 4 + round) << 32 ^ g->config.seed) & mask;
			uint64_t swap = left ^ f;

			left = right;
			right = swap;
		}
		k = left << half | right;
	} while (k >= g->config.paths);
	return (uint32_t)k;
}

static uint32_t new_file(struct hr_gen *g, uint64_t path)
{
	if (g->n_files == g->path_room)
		abort(); /* sized for every path and checkpoint */
	g->path_of_file[g->n_files++] = path;
	return g->n_files;
}

static void begin_file(struct hr_gen *g, struct actor *a)
{
	if (a->is_rank) {
		a->size = CHECKPOINT_WRITES * CHECKPOINT_WRITE_BYTES;
		a->file = new_file(g, CHECKPOINT_BASE + g->checkpoints++);
	} else {
		uint64_t k = g->files_taken++ * g->config.nodes + g->node;

		a->path = shuffled(g, k / g->config.paths, k % g->config.paths);
		a->size = 8 * KIB + hr_gen_mix(a->path ^ g->config.seed) % (200 * KIB);
		if (!g->file_of_path[a->path])
			g->file_of_path[a->path] = new_file(g, a->path);
		a->file = g->file_of_path[a->path];
	}
	a->position = 0;
}

static void set(struct hr_event *e, uint16_t op, uint64_t asked, int64_t ret, int64_t offset,
		uint32_t flags)
{
	e->op = op;
	e->asked = asked;
	e->ret = ret;
	e->offset = offset;
	e->flags = flags;
}

static void plan_transfer(struct hr_gen *g, struct actor *a)
{
	struct hr_event *e = &a->next;
	uint64_t asked = a->step == STEP_READ_HEAD ? SMALL_READ : LARGE_READ;
	uint64_t left = a->size - a->position, got;
	uint16_t op = HR_OP_read;

	if (a->step == STEP_WRITE) {
		asked = CHECKPOINT_WRITE_BYTES;
		op = HR_OP_write;
	}
	got = asked < left ? asked : left;
	set(e, op, asked, (int64_t)got, (int64_t)a->position, 0);
	e->dur_ns = hr_gen_noisy(&g->random, 350 + 0.14 * (double)got);
	a->position += got;
	if (a->step == STEP_READ_HEAD)
		a->step = STEP_READ;
	else if (got == 0 || (op == HR_OP_write && a->position == a->size))
		a->step = STEP_CLOSE;
}

/* Makes the actor's next event. */
static void plan(struct hr_gen *g, struct actor *a)
{
	struct hr_event *e = &a->next;
	double pause = 2500; /* interpreter between two calls, ns */
	bool opens = a->step == STEP_OPEN;

	if (opens) {
		pause = a->is_rank ? 4e9 : 4e6; /* training, decoding */
		begin_file(g, a);
	}
	e->file = a->file;
	e->start_ns = a->clock_ns + hr_gen_noisy(&g->random, pause);
	switch (a->step) {
	case STEP_OPEN:
		set(e, HR_OP_open64, HR_ASKED_NONE, e->fd, HR_OFFSET_NONE,
		    O_CLOEXEC | (a->is_rank ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY));
		e->dur_ns = hr_gen_noisy(&g->random, 5200);
		a->step = STEP_FSTAT;
		break;
	case STEP_FSTAT:
		set(e, HR_OP_fstat64, HR_ASKED_NONE, 0, HR_OFFSET_NONE, 0);
		e->dur_ns = hr_gen_noisy(&g->random, 560);
		a->step = STEP_LSEEK;
		break;
	case STEP_LSEEK:
		set(e, HR_OP_lseek64, HR_ASKED_NONE, 0, 0, SEEK_CUR);
		e->dur_ns = hr_gen_noisy(&g->random, 310);
		a->step = a->is_rank ? STEP_WRITE : STEP_READ_HEAD;
		break;
	case STEP_CLOSE:
		set(e, HR_OP_close, HR_ASKED_NONE, 0, HR_OFFSET_NONE, 0);
		e->dur_ns = hr_gen_noisy(&g->random, 880);
		a->step = STEP_OPEN;
		break;
	default:
		plan_transfer(g, a);
	}
	a->clock_ns = e->start_ns + e->dur_ns;
}

void hr_gen_next(struct hr_gen *g, struct hr_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct actor *first = &g->actors[0];

		for (size_t t = 1; t < g->n_tasks; t++)
			if (g->actors[t].clock_ns < first->clock_ns)
				first = &g->actors[t];
		events[i] = first->next;
		plan(g, first);
	}
}

static void allocate(struct hr_gen *g)
{
	const struct hr_gen_config *c = &g->config;

	g->n_tasks = (size_t)c->ranks * (1 + c->workers);
	g->path_room = c->paths + c->events / CHECKPOINT_WRITES + g->n_tasks + 1;
	g->file_of_path = build_must(calloc(c->paths, sizeof(*g->file_of_path)));
	g->path_of_file = build_must(malloc(g->path_room * sizeof(*g->path_of_file)));
	g->tasks = build_must(calloc(g->n_tasks, sizeof(*g->tasks)));
	g->actors = build_must(calloc(g->n_tasks, sizeof(*g->actors)));
}

struct hr_gen *hr_gen_new(const struct hr_gen_config *config, uint32_t node)
{
	struct hr_gen *g = build_must(calloc(1, sizeof(*g)));

	g->config = *config;
	g->node = node;
	hr_gen_random_init(&g->random, config->seed * 1000 + node);
	allocate(g);
	for (uint32_t t = 0; t < g->n_tasks; t++) {
		struct actor *a = &g->actors[t];

		g->tasks[t] = (struct hr_task){.proc = t + 1, .tid = 1000 + t};
		a->is_rank = t < config->ranks;
		a->next.task = t;
		a->next.fd = a->is_rank ? 9 : 5;
		a->clock_ns = HR_GEN_BOOT_NS + hr_gen_noisy(&g->random, 1e6);
		plan(g, a);
	}
	return g;
}

void hr_gen_free(struct hr_gen *g)
{
	if (!g)
		return;
	free(g->file_of_path);
	free(g->path_of_file);
	free(g->tasks);
	free(g->actors);
	free(g);
}

size_t hr_gen_tasks(const struct hr_gen *g, const struct hr_task **ret)
{
	*ret = g->tasks;
	return g->n_tasks;
}

uint32_t hr_gen_rank(const struct hr_gen *g, uint32_t task)
{
	uint32_t local =
	    task < g->config.ranks ? task : (task - g->config.ranks) / g->config.workers;

	return g->node * g->config.ranks + local;
}

int hr_gen_worker(const struct hr_gen *g, uint32_t task)
{
	return task < g->config.ranks ? -1 : (int)((task - g->config.ranks) % g->config.workers);
}

uint32_t hr_gen_files(const struct hr_gen *g)
{
	return g->n_files;
}

size_t hr_gen_path(const struct hr_gen *g, uint32_t file, char path[HR_GEN_PATH_BYTES])
{
	uint64_t number = g->path_of_file[file - 1];
	int n;

	if (number >= CHECKPOINT_BASE) {
		n = snprintf(path, HR_GEN_PATH_BYTES,
			     "/scratch/run/checkpoints/step%06u/model-%02u.pt",
			     (unsigned)(number - CHECKPOINT_BASE), g->node);
	} else {
		unsigned class = (unsigned)(hr_gen_mix(number / 1300) % 13000000 + 1440764);

		n = snprintf(path, HR_GEN_PATH_BYTES, "/data/imagenet/train/n%08u/n%08u_%u.JPEG",
			     class, class, (unsigned)(number % 1300 * 13));
	}
	return (size_t)n;
}

uint64_t hr_gen_path_hash(const struct hr_gen *g, uint32_t file)
{
	uint64_t number = g->path_of_file[file - 1];

	return hr_gen_mix(number >= CHECKPOINT_BASE ? number << 8 | g->node : number + 1) &
	       ~UINT64_C(7);
}
