/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_store.c - the generated job as a store: what the daemon of each node would have written
 */
#include "tests/bench/generate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/batch.h"
#include "tests/bench/generate_rollups.h"

#define MOUNT_DATA    1u
#define MOUNT_SCRATCH 2u

struct out {
	const struct hr_gen_config *config;
	const char *job;
	uint32_t node;
	struct hr_gen *gen;
	struct hr_gen_stream stream;
	struct hr_encoder *encoder;
	struct hr_gen_rollups *rollups;
	struct hr_event *events;
	uint32_t files_named;
};

static uint32_t ranks(const struct out *o)
{
	return o->config->nodes * o->config->ranks;
}

static int send_processes(struct out *o, size_t n)
{
	static char command[] = "python3 train.py";
	Headrace__Process *rows = calloc(n, sizeof(*rows));
	int r;

	if (!rows)
		return -ENOMEM;
	for (uint32_t t = 0; t < n; t++)
		hr_gen_process(t, hr_gen_rank(o->gen, t), hr_gen_worker(o->gen, t),
			       o->config->ranks, ranks(o), command, &rows[t]);
	r = hr_gen_send_processes(&o->stream, rows, n);
	free(rows);
	return r;
}

static size_t fill_file(const void *generator, uint32_t id, Headrace__Path *row,
			char text[HR_GEN_PATH_BYTES])
{
	size_t bytes = hr_gen_path(generator, id, text);

	row->hash = hr_gen_path_hash(generator, id);
	row->mount = text[1] == 'd' ? MOUNT_DATA : MOUNT_SCRATCH;
	return bytes;
}

/* Names the files that appeared since the last call. */
static int send_paths(struct out *o)
{
	uint32_t first = o->files_named + 1;

	o->files_named = hr_gen_files(o->gen);
	return hr_gen_send_paths(&o->stream, first, o->files_named, fill_file, o->gen);
}

/* Workers read the data, ranks write checkpoints. */
static int add_rollups(struct out *o, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct hr_event *e = &o->events[i];

		if (hr_gen_rollups_full(o->rollups, e))
			r = hr_gen_send_rollups(&o->stream, o->rollups);
		hr_gen_rollups_add(o->rollups, e,
				   hr_gen_worker(o->gen, e->task) < 0 ? MOUNT_SCRATCH : MOUNT_DATA);
	}
	return r;
}

static int send_events(struct out *o, size_t n)
{
	const struct hr_task *tasks;
	size_t n_tasks = hr_gen_tasks(o->gen, &tasks);
	int r;

	hr_gen_next(o->gen, o->events, n);
	r = send_paths(o);
	if (r == 0)
		r = hr_gen_send_events(&o->stream, o->encoder, o->events, n, tasks, n_tasks);
	return r < 0 ? r : add_rollups(o, n);
}

static int send_all(struct out *o)
{
	static const struct hr_gen_mount mounts[] = {{"/data", "lustre"}, {"/scratch", "xfs"}};
	const struct hr_task *tasks;
	uint64_t left = o->config->events / o->config->nodes;
	int r = hr_gen_send_job(&o->stream, "imagenet", ranks(o), false);

	if (r == 0)
		r = send_processes(o, hr_gen_tasks(o->gen, &tasks));
	if (r == 0)
		r = hr_gen_send_mounts(&o->stream, mounts, 2);
	while (r == 0 && left > 0) {
		size_t n = left < o->config->batch_events ? left : o->config->batch_events;

		r = send_events(o, n);
		left -= n;
	}
	if (r == 0)
		r = hr_gen_send_rollups(&o->stream, o->rollups);
	if (r == 0)
		r = hr_gen_send_job(&o->stream, "imagenet", ranks(o), true);
	return r < 0 ? r : hr_gen_send_end(&o->stream);
}

static int write_node(const struct hr_gen_config *config, uint32_t node, const char *store,
		      const char *job)
{
	char name[32];
	struct hr_stream_id id = {.cluster = "bench",
				  .job = job,
				  .node = name,
				  .boot_id = "00000000-0000-4000-8000-000000000000",
				  .instance = config->seed << 16 | node};
	struct out o = {
	    .config = config, .job = job, .node = node, .stream.now_ns = HR_GEN_BOOT_NS};
	const struct hr_task *tasks;
	int r, closed;

	snprintf(name, sizeof(name), "node%u", node);
	r = hr_gen_new(config, node, &o.gen);
	if (r == 0)
		r = hr_encoder_new(&o.encoder);
	if (r == 0)
		r = hr_gen_rollups_new(hr_gen_tasks(o.gen, &tasks), &o.rollups);
	if (r == 0)
		r = hr_writer_open(store, &id, &o.stream.writer, NULL);
	o.events = malloc(config->batch_events * sizeof(*o.events));
	if (r == 0)
		r = o.events ? send_all(&o) : -ENOMEM;
	closed = hr_writer_close(o.stream.writer);
	hr_encoder_free(o.encoder);
	hr_gen_rollups_free(o.rollups);
	hr_gen_free(o.gen);
	free(o.events);
	return r < 0 ? r : closed;
}

int hr_gen_store(const struct hr_gen_config *config, const char *store, const char *job)
{
	int r = 0;

	for (uint32_t node = 0; node < config->nodes && r == 0; node++)
		r = write_node(config, node, store, job);
	return r;
}
