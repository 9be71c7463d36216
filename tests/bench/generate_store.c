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

static int send_job(struct out *o, char *state)
{
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	job.state = state;
	job.uid = 1000;
	job.user = "ada";
	job.name = "imagenet";
	job.start_ns = HR_GEN_BOOT_NS;
	job.ranks_expected = o->config->nodes * o->config->ranks;
	frame.body_case = HEADRACE__FRAME__BODY_JOB;
	frame.job = &job;
	return hr_gen_send(&o->stream, &frame, 1);
}

static void fill_process(const struct out *o, uint32_t task, Headrace__Process *p)
{
	static char python[] = "/usr/bin/python3", command[] = "python3 train.py";
	int worker = hr_gen_worker(o->gen, task);
	uint32_t rank = hr_gen_rank(o->gen, task);

	headrace__process__init(p);
	p->proc = task + 1;
	p->pid = (int32_t)(1000 + task);
	p->ppid = 1;
	p->exe = (ProtobufCBinaryData){sizeof(python) - 1, (uint8_t *)python};
	p->cmdline = (ProtobufCBinaryData){sizeof(command) - 1, (uint8_t *)command};
	p->start_ns = HR_GEN_BOOT_NS;
	p->rank_plus1 = rank + 1;
	p->local_rank_plus1 = rank % o->config->ranks + 1;
	p->world_size = o->config->nodes * o->config->ranks;
	p->worker_plus1 = (uint32_t)(worker + 1);
	p->rank_source = "RANK";
}

static int send_processes(struct out *o, size_t n)
{
	Headrace__Process *rows = calloc(n, sizeof(*rows));
	int r;

	if (!rows)
		return -ENOMEM;
	for (uint32_t t = 0; t < n; t++)
		fill_process(o, t, &rows[t]);
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
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__EventBatch batch;
	const struct hr_task *tasks;
	size_t n_tasks = hr_gen_tasks(o->gen, &tasks);
	int r;

	hr_gen_next(o->gen, o->events, n);
	o->stream.now_ns = o->events[n - 1].start_ns + o->events[n - 1].dur_ns;
	r = send_paths(o);
	if (r == 0)
		r = hr_batch_encode(o->encoder, o->events, n, tasks, n_tasks, &batch);
	frame.body_case = HEADRACE__FRAME__BODY_EVENTS;
	frame.events = &batch;
	if (r == 0)
		r = hr_gen_send(&o->stream, &frame, 0);
	return r < 0 ? r : add_rollups(o, n);
}

static int send_all(struct out *o)
{
	static const struct hr_gen_mount mounts[] = {{"/data", "lustre"}, {"/scratch", "xfs"}};
	const struct hr_task *tasks;
	uint64_t left = o->config->events / o->config->nodes;
	int r = send_job(o, "running");

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
		r = send_job(o, "ended");
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
