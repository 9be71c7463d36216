/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e_store.c - the job of workflow E as a store: what the daemons of its nodes would have written
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"
#include "tests/bench/workflow_e.h"
#include "tests/bench/workflow_e_records.h"

struct out {
	const struct hr_we_config *config;
	uint32_t node;
	struct hr_we_node *gen;
	struct hr_gen_stream stream;
	struct hr_encoder *encoder;
	struct hr_gen_rollups *rollups;
	struct hr_we_records *records;
	struct hr_regions *regions;
	struct hr_event *events;
	uint32_t files_named;
};

static int send_processes(struct out *o)
{
	static char command[] = "python3 pretrain_gpt.py";
	const struct hr_task *tasks;
	size_t n = hr_we_tasks(o->gen, &tasks);
	Headrace__Process *rows = calloc(n, sizeof(*rows));
	int r;

	if (!rows)
		return -ENOMEM;
	for (uint32_t t = 0; t < n; t++)
		hr_gen_process(t, hr_we_rank(o->gen, t), hr_we_worker(o->gen, t), HR_WE_LOCAL,
			       HR_WE_RANKS, command, &rows[t]);
	r = hr_gen_send_processes(&o->stream, rows, n);
	free(rows);
	return r;
}

static int send_records(struct out *o, bool all)
{
	Headrace__FileRecords records;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	int r = hr_we_records_take(o->records, all, &records);

	if (r < 0 || records.n_rows == 0)
		return r;
	frame.body_case = HEADRACE__FRAME__BODY_FILE_RECORDS;
	frame.file_records = &records;
	return hr_gen_send(&o->stream, &frame, 1);
}

static int send_region_frame(struct out *o)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	int r;

	if (hr_regions_count(o->regions) == 0)
		return 0;
	frame.body_case = HEADRACE__FRAME__BODY_REGIONS;
	frame.regions = (Headrace__Regions *)hr_regions_message(o->regions);
	r = hr_gen_send(&o->stream, &frame, 1);
	hr_regions_reset(o->regions);
	return r;
}

static int name_region(struct out *o, const struct hr_we_region *from, struct hr_region *ret)
{
	const char *name = hr_we_names[from->name];
	int r = hr_regions_text(o->regions, "torch", 5, &ret->domain);

	return r < 0 ? r : hr_regions_text(o->regions, name, strlen(name), &ret->name);
}

static int send_regions(struct out *o)
{
	const struct hr_we_region *list;
	size_t n = hr_we_regions(o->gen, &list);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct hr_region region = list[i].region;

		if (hr_regions_count(o->regions) == HR_REGIONS_MAX)
			r = send_region_frame(o);
		if (r == 0)
			r = name_region(o, &list[i], &region);
		if (r == 0)
			r = hr_regions_add(o->regions, &region);
	}
	return r < 0 ? r : send_region_frame(o);
}

static int send_sums(struct out *o, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct hr_event *e = &o->events[i];

		if (hr_gen_rollups_full(o->rollups, e))
			r = hr_gen_send_rollups(&o->stream, o->rollups);
		hr_gen_rollups_add(o->rollups, e, hr_we_mount(o->gen, e->file));
		if (r == 0)
			r = hr_we_records_add(o->records, e);
	}
	return r < 0 ? r : send_records(o, false);
}

static int send_events(struct out *o, size_t n)
{
	const struct hr_task *tasks;
	size_t n_tasks = hr_we_tasks(o->gen, &tasks);
	uint32_t first = o->files_named + 1;
	int r;

	o->files_named = hr_we_files(o->gen);
	r = hr_gen_send_paths(&o->stream, first, o->files_named, hr_we_file, o->gen);
	if (r == 0)
		r = hr_gen_send_events(&o->stream, o->encoder, o->events, n, tasks, n_tasks);
	if (r == 0)
		r = send_regions(o);
	return r < 0 ? r : send_sums(o, n);
}

static int send_loss(struct out *o)
{
	Headrace__LossRow row = HEADRACE__LOSS_ROW__INIT, *list[] = {&row};
	Headrace__Loss loss = HEADRACE__LOSS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	if (o->config->lost == 0 || o->node != 1)
		return 0;
	row.proc = HR_WE_LOCAL + 1; /* a worker */
	row.reason = "ring_full";
	row.op = HR_OP_read;
	row.count = o->config->lost;
	row.bytes = o->config->lost * 4096;
	loss.n_rows = 1;
	loss.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	frame.loss = &loss;
	return hr_gen_send(&o->stream, &frame, 1);
}

static int send_all(struct out *o)
{
	size_t n;
	int r = hr_gen_send_job(&o->stream, "pretrain_gpt.py", HR_WE_RANKS, false);

	if (r == 0)
		r = send_processes(o);
	if (r == 0)
		r = hr_gen_send_mounts(&o->stream, hr_we_mounts, HR_WE_MOUNTS);
	while (r == 0 && (n = hr_we_next(o->gen, o->events, HR_BATCH_EVENTS)) > 0)
		r = send_events(o, n);
	if (r == 0)
		r = send_regions(o);
	if (r == 0)
		r = hr_gen_send_rollups(&o->stream, o->rollups);
	if (r == 0)
		r = send_records(o, true);
	if (r == 0)
		r = send_loss(o);
	if (r == 0)
		r = hr_gen_send_job(&o->stream, "pretrain_gpt.py", HR_WE_RANKS, true);
	return r < 0 ? r : hr_gen_send_end(&o->stream);
}

static int make_parts(struct out *o, const char *store, struct hr_we_totals *totals)
{
	char name[32];
	struct hr_stream_id id = {.cluster = "bench",
				  .job = o->config->job,
				  .node = name,
				  .boot_id = "00000000-0000-4000-8000-000000000000",
				  .instance = UINT64_C(0xe00) + o->node};
	const struct hr_task *tasks;
	int r = hr_we_node_new(o->config, o->node, totals, &o->gen);

	snprintf(name, sizeof(name), "node%u", o->node);
	if (r == 0)
		r = hr_encoder_new(&o->encoder);
	if (r == 0)
		r = hr_gen_rollups_new(hr_we_tasks(o->gen, &tasks), &o->rollups);
	if (r == 0)
		r = hr_we_records_new(hr_we_tasks(o->gen, &tasks), &o->records);
	if (r == 0)
		r = hr_regions_new(&o->regions);
	if (r == 0)
		r = hr_writer_open(store, &id, &o->stream.writer, NULL);
	o->events = malloc(HR_BATCH_EVENTS * sizeof(*o->events));
	return r == 0 && !o->events ? -ENOMEM : r;
}

static int write_node(const struct hr_we_config *config, uint32_t node, const char *store,
		      struct hr_we_totals *totals)
{
	struct out o = {.config = config, .node = node, .stream.now_ns = HR_GEN_BOOT_NS};
	int r = make_parts(&o, store, totals), closed;

	if (r == 0)
		r = send_all(&o);
	if (r == 0)
		totals->bytes += hr_writer_bytes(o.stream.writer);
	closed = hr_writer_close(o.stream.writer);
	hr_regions_free(o.regions);
	hr_we_records_free(o.records);
	hr_gen_rollups_free(o.rollups);
	hr_encoder_free(o.encoder);
	hr_we_node_free(o.gen);
	free(o.events);
	return r < 0 ? r : closed;
}

int hr_we_store(const struct hr_we_config *config, const char *store, struct hr_we_totals *ret)
{
	int r = 0;

	for (uint32_t node = 0; node < HR_WE_NODES && r == 0; node++)
		r = write_node(config, node, store, ret);
	return r;
}
