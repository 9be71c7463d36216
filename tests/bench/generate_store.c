/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_store.c - the generated job as a store: what the daemon of each node would have written
 */
#include "tests/bench/generate.h"

#include <stdio.h>
#include <stdlib.h>

#define MOUNT_DATA    1u
#define MOUNT_SCRATCH 2u

struct out {
	const struct hr_gen_config *config;
	struct hr_gen *gen;
	struct hr_gen_stream stream;
	struct hr_event *events;
	uint32_t files_named;
};

static uint32_t ranks(const struct out *o)
{
	return o->config->nodes * o->config->ranks;
}

static void send_processes(struct out *o, size_t n)
{
	Headrace__Process *rows = build_must(calloc(n, sizeof(*rows)));

	for (uint32_t t = 0; t < n; t++)
		rows[t] = hr_gen_process(t, hr_gen_rank(o->gen, t), hr_gen_worker(o->gen, t),
					 o->config->ranks, ranks(o), "python3 train.py");
	build_processes(&o->stream.b, rows, n);
	free(rows);
}

static void fill_file(const void *generator, uint32_t id, Headrace__Path *row,
		      char text[HR_GEN_PATH_BYTES])
{
	hr_gen_path(generator, id, text);
	row->hash = hr_gen_path_hash(generator, id);
	row->mount = text[1] == 'd' ? MOUNT_DATA : MOUNT_SCRATCH;
}

/* Names the files that appeared since the last call. */
static void send_paths(struct out *o)
{
	uint32_t first = o->files_named + 1;

	o->files_named = hr_gen_files(o->gen);
	hr_gen_send_paths(&o->stream, first, o->files_named, fill_file, o->gen);
}

/* Workers read the data, ranks write checkpoints. */
static void send_events(struct out *o, size_t n)
{
	const struct hr_task *tasks;
	size_t n_tasks = hr_gen_tasks(o->gen, &tasks);

	hr_gen_next(o->gen, o->events, n);
	send_paths(o);
	hr_gen_send_events(&o->stream, o->events, n, tasks, n_tasks);
	for (size_t i = 0; i < n; i++)
		hr_gen_add(&o->stream, &o->events[i],
			   hr_gen_worker(o->gen, o->events[i].task) < 0 ? MOUNT_SCRATCH
									: MOUNT_DATA);
}

static void send_all(struct out *o, size_t n_tasks)
{
	static const struct hr_gen_mount mounts[] = {{"/data", "lustre"}, {"/scratch", "xfs"}};
	uint64_t left = o->config->events / o->config->nodes;

	hr_gen_send_job(&o->stream, "imagenet", ranks(o), false);
	send_processes(o, n_tasks);
	hr_gen_send_mounts(&o->stream, mounts, 2);
	while (left > 0) {
		size_t n = left < o->config->batch_events ? left : o->config->batch_events;

		send_events(o, n);
		left -= n;
	}
	hr_gen_send_sums(&o->stream);
	hr_gen_send_job(&o->stream, "imagenet", ranks(o), true);
	build_end(&o->stream.b, "ended");
}

static void write_node(const struct hr_gen_config *config, uint32_t node, const char *store,
		       const char *job)
{
	char name[32];
	struct hr_stream_id id = {.cluster = "bench",
				  .job = job,
				  .node = name,
				  .boot_id = "00000000-0000-4000-8000-000000000000",
				  .instance = config->seed << 16 | node};
	struct out o = {.config = config, .gen = hr_gen_new(config, node)};
	const struct hr_task *tasks;
	size_t n_tasks = hr_gen_tasks(o.gen, &tasks);

	snprintf(name, sizeof(name), "node%u", node);
	hr_gen_open(&o.stream, store, &id, n_tasks);
	o.events = build_must(malloc(config->batch_events * sizeof(*o.events)));
	send_all(&o, n_tasks);
	hr_gen_close(&o.stream);
	hr_gen_free(o.gen);
	free(o.events);
}

void hr_gen_store(const struct hr_gen_config *config, const char *store, const char *job)
{
	for (uint32_t node = 0; node < config->nodes; node++)
		write_node(config, node, store, job);
}
