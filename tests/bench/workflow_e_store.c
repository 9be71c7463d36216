/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e_store.c - the job of workflow E as a store: what the daemons of its nodes would have written
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/workflow_e.h"
#include "tests/bench/workflow_e_records.h"

struct out {
	const struct hr_we_config *config;
	uint32_t node;
	struct hr_we_node *gen;
	struct hr_gen_stream stream;
	struct hr_we_records *records;
	struct hr_event *events;
	uint32_t files_named;
};

static void send_processes(struct out *o)
{
	const struct hr_task *tasks;
	size_t n = hr_we_tasks(o->gen, &tasks);
	Headrace__Process *rows = build_must(calloc(n, sizeof(*rows)));

	for (uint32_t t = 0; t < n; t++)
		rows[t] = hr_gen_process(t, hr_we_rank(o->gen, t), hr_we_worker(o->gen, t),
					 HR_WE_LOCAL, HR_WE_RANKS, "python3 pretrain_gpt.py");
	build_processes(&o->stream.b, rows, n);
	free(rows);
}

static void send_records(struct out *o, bool all)
{
	Headrace__FileRecords records = hr_we_records_take(o->records, all);

	if (records.n_rows > 0)
		build_send(&o->stream.b, BUILD_FRAME(FILE_RECORDS, file_records, &records));
}

static void send_regions(struct out *o)
{
	const struct hr_we_region *list;
	size_t n = hr_we_regions(o->gen, &list);

	for (size_t i = 0; i < n; i++)
		build_region(
		    &o->stream.b, list[i].region,
		    (struct build_texts){.domain = "torch", .name = hr_we_names[list[i].name]});
	build_regions(&o->stream.b);
}

static void send_events(struct out *o, size_t n)
{
	const struct hr_task *tasks;
	size_t n_tasks = hr_we_tasks(o->gen, &tasks);
	uint32_t first = o->files_named + 1;

	o->files_named = hr_we_files(o->gen);
	hr_gen_send_paths(&o->stream, first, o->files_named, hr_we_file, o->gen);
	hr_gen_send_events(&o->stream, o->events, n, tasks, n_tasks);
	send_regions(o);
	for (size_t i = 0; i < n; i++) {
		const struct hr_event *e = &o->events[i];

		hr_gen_add(&o->stream, e, hr_we_mount(o->gen, e->file));
		hr_we_records_add(o->records, e);
	}
	send_records(o, false);
}

static void send_loss(struct out *o)
{
	if (o->config->lost == 0 || o->node != 1)
		return;
	build_losses(&o->stream.b,
		     &(Headrace__LossRow){.proc = HR_WE_LOCAL + 1, /* a worker */
					  .reason = "ring_full",
					  .op = HR_OP_read,
					  .count = o->config->lost,
					  .bytes = o->config->lost * 4096},
		     1);
}

static void send_all(struct out *o)
{
	size_t n;

	hr_gen_send_job(&o->stream, "pretrain_gpt.py", HR_WE_RANKS, false);
	send_processes(o);
	hr_gen_send_mounts(&o->stream, hr_we_mounts, HR_WE_MOUNTS);
	while ((n = hr_we_next(o->gen, o->events, HR_BATCH_EVENTS)) > 0)
		send_events(o, n);
	send_regions(o);
	hr_gen_send_sums(&o->stream);
	send_records(o, true);
	send_loss(o);
	hr_gen_send_job(&o->stream, "pretrain_gpt.py", HR_WE_RANKS, true);
	build_end(&o->stream.b, "ended");
}

static void write_node(const struct hr_we_config *config, uint32_t node, const char *store,
		       struct hr_we_totals *totals)
{
	char name[32];
	struct hr_stream_id id = {.cluster = "bench",
				  .job = config->job,
				  .node = name,
				  .boot_id = "00000000-0000-4000-8000-000000000000",
				  .instance = UINT64_C(0xe00) + node};
	struct out o = {
	    .config = config, .node = node, .gen = hr_we_node_new(config, node, totals)};
	const struct hr_task *tasks;

	snprintf(name, sizeof(name), "node%u", node);
	hr_gen_open(&o.stream, store, &id, hr_we_tasks(o.gen, &tasks));
	o.records = hr_we_records_new(hr_we_tasks(o.gen, &tasks));
	o.events = build_must(malloc(HR_BATCH_EVENTS * sizeof(*o.events)));
	send_all(&o);
	totals->bytes += hr_gen_close(&o.stream);
	hr_we_records_free(o.records);
	hr_we_node_free(o.gen);
	free(o.events);
}

void hr_we_store(const struct hr_we_config *config, const char *store, struct hr_we_totals *ret)
{
	for (uint32_t node = 0; node < HR_WE_NODES; node++)
		write_node(config, node, store, ret);
}
