/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a whole store, opening it, reading every batch back. */
#include "tests/bench/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/batch_reader.h"

static uint64_t count_events(const struct hr_stream *s)
{
	uint64_t n = 0;

	for (uint32_t b = 0; b < s->n_batches; b++)
		n += s->batches[b].count;
	return n;
}

/*
 * Copies the frames of a batch stream again and again: the writer alone, without generator and
 * encoder.
 */
static int append_again(const struct hr_bench *bench, const struct hr_stream *s)
{
	struct hr_stream_id id = {
	    .cluster = "", .job = "append", .node = "n", .boot_id = "", .instance = 1};
	struct hr_writer *w;
	double seconds = 0, sync_s;
	uint64_t events = 0;
	int r = hr_writer_open(bench->store, &id, &w, NULL), closed;

	for (uint32_t b = 0; b < s->n_batches && b < 256 && r == 0; b++) {
		Headrace__Frame *msg;
		uint8_t *buf;
		size_t bytes;
		double start;

		r = hr_stream_read(s, s->batches[b].frame, &msg);
		if (r < 0)
			break;
		msg->seq = hr_writer_mark(w) + 1;
		r = hr_frame_pack(msg, 0, &buf, &bytes);
		headrace__frame__free_unpacked(msg, NULL);
		if (r < 0)
			break;
		start = hr_bench_wall_s();
		r = hr_writer_append(w, buf, bytes);
		seconds += hr_bench_wall_s() - start;
		events += s->batches[b].count;
		free(buf);
	}
	if (r < 0)
		return r;
	sync_s = hr_bench_wall_s();
	r = hr_writer_sync(w);
	sync_s = hr_bench_wall_s() - sync_s;
	hr_bench_row("append (check, index, write)", seconds / (double)events * 1e9, "ns/event");
	hr_bench_row("append", (double)events / seconds / 1e6, "M events/s");
	hr_bench_row("one sync after them", sync_s * 1e3, "ms");
	closed = hr_writer_close(w);
	return r < 0 ? r : closed;
}

static int open_job(const struct hr_bench *bench, struct hr_catalog **ret,
		    const struct hr_stream **ret_streams, size_t *ret_n)
{
	int r = hr_catalog_open(&bench->store, 1, &(const struct hr_catalog_filter){.job = "bench"},
				ret, NULL);

	if (r == 0)
		*ret_n = hr_catalog_streams(*ret, ret_streams);
	return r;
}

int hr_bench_append(const struct hr_bench *bench)
{
	const struct hr_stream *streams;
	struct hr_catalog *c = NULL;
	double seconds = hr_bench_wall_s();
	uint64_t events = 0, bytes = 0;
	size_t n = 0;
	int r;

	if (access(bench->store, F_OK) != 0)
		hr_gen_store(&bench->config, bench->store, "bench");
	seconds = hr_bench_wall_s() - seconds;
	r = open_job(bench, &c, &streams, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		events += count_events(&streams[i]);
		bytes += streams[i].bytes;
	}
	hr_bench_row("events", (double)events / 1e6, "M");
	hr_bench_row("generate, encode, append", seconds / (double)events * 1e9, "ns/event");
	hr_bench_row("store, paths and footers too", (double)bytes / (double)events, "B/event");
	r = n > 0 ? append_again(bench, &streams[0]) : -ENOENT;
	hr_catalog_free(c);
	return r;
}

int hr_bench_open(const struct hr_bench *bench)
{
	const struct hr_stream *streams;
	struct hr_file_info info;
	uint32_t n_files;
	struct hr_catalog *c;
	double start = hr_bench_wall_s(), open_s, table_s, text_s;
	uint64_t files = 0;
	size_t n = 0;
	int r = open_job(bench, &c, &streams, &n);

	if (r < 0)
		return r;
	open_s = hr_bench_wall_s() - start;
	start = hr_bench_wall_s();
	for (size_t i = 0; i < n && r == 0; i++)
		r = hr_stream_file(&streams[i], 1, false, &info);
	table_s = hr_bench_wall_s() - start;
	start = hr_bench_wall_s();
	for (size_t i = 0; i < n && r == 0; i++) {
		r = hr_stream_files(&streams[i], &n_files);
		for (uint32_t file = 1; file <= n_files && r == 0; file++, files++)
			r = hr_stream_file_at(&streams[i], file, true, &info);
	}
	text_s = hr_bench_wall_s() - start;
	hr_bench_row("open", open_s * 1e3, "ms");
	hr_bench_row("files", (double)files / 1e6, "M");
	hr_bench_row("file tables", table_s * 1e3, "ms");
	hr_bench_row("text of all paths", text_s * 1e3, "ms");
	hr_catalog_free(c);
	return r;
}

static int scan(const struct hr_stream *s, struct hr_batch_reader *reader, uint32_t want,
		uint64_t *events)
{
	for (uint32_t b = 0; b < s->n_batches; b++) {
		const Headrace__EventBatch *msg;
		struct hr_columns columns;
		int r = want ? hr_batch_read(reader, s, &s->batches[b], want, &columns)
			     : hr_batch_load(reader, s, &s->batches[b], &msg);

		if (r < 0)
			return r;
		*events += s->batches[b].count;
	}
	return 0;
}

int hr_bench_scan(const struct hr_bench *bench)
{
	static const struct {
		const char *what;
		uint32_t want;
	} scans[] = {
	    {"read, check, unpack", 0},
	    {"  and op", HR_COL_BIT(HR_COL_OP)},
	    {"  and op, file", HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_FILE)},
	    {"  and op, ret, duration",
	     HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_RET) | HR_COL_BIT(HR_COL_DUR)},
	    {"  and all columns", HR_COL_ALL},
	};
	const struct hr_stream *streams;
	struct hr_batch_reader reader = {0};
	struct hr_catalog *c;
	size_t n = 0;
	int r = open_job(bench, &c, &streams, &n);

	if (r < 0)
		return r;
	for (size_t k = 0; k < sizeof(scans) / sizeof(scans[0]) && r == 0; k++) {
		double start = hr_bench_cpu_s();
		uint64_t events = 0;

		for (size_t i = 0; i < n && r == 0; i++)
			r = scan(&streams[i], &reader, scans[k].want, &events);
		hr_bench_row(scans[k].what, (hr_bench_cpu_s() - start) / (double)events * 1e9,
			     "ns/event");
	}
	hr_batch_reader_done(&reader);
	hr_catalog_free(c);
	return r;
}
