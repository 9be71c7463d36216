/* SPDX-License-Identifier: Apache-2.0 */
/* Encode and decode of batches in memory; bytes per event by column. */
#include "tests/bench/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"

#define SAMPLE_BATCHES 64u

struct codec_run {
	struct hr_gen *gen;
	struct hr_encoder *encoder;
	struct hr_decoder *decoder;
	struct hr_event *events;
	uint64_t count;
	uint64_t column_bytes[HR_COL_END_];
	uint64_t bytes, file_bytes;
	double encode_s, decode_s, decode_some_s;
};

static const char *const column_names[HR_COL_END_] = {
    [HR_COL_START] = "gap",   [HR_COL_DUR] = "duration",  [HR_COL_OP] = "op",
    [HR_COL_FILE] = "file",   [HR_COL_OFFSET] = "offset", [HR_COL_ASKED] = "asked",
    [HR_COL_RET] = "ret",     [HR_COL_FD] = "fd",	  [HR_COL_FLAGS] = "flags",
    [HR_COL_FILE2] = "file2", [HR_COL_BITS] = "bits",
};

static void account(struct codec_run *run, const Headrace__EventBatch *msg)
{
	Headrace__EventBatch bare = *msg;

	run->bytes += headrace__event_batch__get_packed_size(msg);
	run->file_bytes += headrace__event_batch__get_packed_size(msg);
	bare.n_files = 0;
	run->file_bytes -= headrace__event_batch__get_packed_size(&bare);
	for (size_t c = 0; c < msg->n_columns; c++)
		run->column_bytes[msg->columns[c]->id] +=
		    headrace__column__get_packed_size(msg->columns[c]);
}

static int run_batch(struct codec_run *run, uint32_t n)
{
	const uint32_t some =
	    HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_RET) | HR_COL_BIT(HR_COL_DUR);
	const struct hr_task *tasks;
	size_t n_tasks = hr_gen_tasks(run->gen, &tasks);
	Headrace__EventBatch msg;
	struct hr_columns columns;
	double t0, t1, t2, t3;
	int r;

	hr_gen_next(run->gen, run->events, n);
	t0 = hr_bench_cpu_s();
	r = hr_batch_encode(run->encoder, run->events, n, tasks, n_tasks, &msg);
	t1 = hr_bench_cpu_s();
	if (r < 0)
		return r;
	account(run, &msg);
	r = hr_batch_decode(run->decoder, &msg, HR_COL_ALL, &columns);
	t2 = hr_bench_cpu_s();
	if (r < 0)
		return r;
	r = hr_batch_decode(run->decoder, &msg, some, &columns);
	t3 = hr_bench_cpu_s();
	run->encode_s += t1 - t0;
	run->decode_s += t2 - t1;
	run->decode_some_s += t3 - t2;
	run->count += n;
	return r;
}

static void report(const struct codec_run *run)
{
	double n = (double)run->count;

	hr_bench_row("encode + compress", run->encode_s / n * 1e9, "ns/event");
	hr_bench_row("decode, all columns", run->decode_s / n * 1e9, "ns/event");
	hr_bench_row("decode, op ret dur", run->decode_some_s / n * 1e9, "ns/event");
	hr_bench_row("batch", (double)run->bytes / n, "B/event");
	for (unsigned c = 1; c < HR_COL_END_; c++)
		hr_bench_row(column_names[c], (double)run->column_bytes[c] / n, "B/event");
	hr_bench_row("files", (double)run->file_bytes / n, "B/event");
}

/* The first epoch names files in order and is the cheapest; what is measured lies in the second. */
static void skip_epoch(struct codec_run *run, const struct hr_gen_config *config)
{
	uint64_t skip = (uint64_t)config->paths * 8 / config->nodes;

	if (config->events < 2 * skip * config->nodes)
		return;
	for (uint64_t done = 0; done < skip; done += config->batch_events)
		hr_gen_next(run->gen, run->events, config->batch_events);
}

int hr_bench_codec(const struct hr_bench *bench)
{
	const struct hr_gen_config *config = &bench->config;
	struct codec_run run = {0};
	uint64_t batches = config->events / config->batch_events;
	int r = -ENOMEM;

	run.events = malloc(config->batch_events * sizeof(*run.events));
	run.gen = hr_gen_new(config, 0);
	if (run.events && hr_encoder_new(&run.encoder) == 0 && hr_decoder_new(&run.decoder) == 0) {
		skip_epoch(&run, config);
		r = 0;
		for (uint64_t b = 0; b < batches && b < SAMPLE_BATCHES && r == 0; b++)
			r = run_batch(&run, config->batch_events);
	}
	if (r == 0)
		report(&run);
	hr_decoder_free(run.decoder);
	hr_encoder_free(run.encoder);
	hr_gen_free(run.gen);
	free(run.events);
	return r;
}
