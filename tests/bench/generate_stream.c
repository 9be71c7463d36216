/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/generate_stream.h"

#include <stdlib.h>

#include "common/rows.h"

#define MOUNTS_MAX 4u

void hr_gen_open(struct hr_gen_stream *s, const char *store, const struct hr_stream_id *id,
		 size_t n_tasks)
{
	*s = (struct hr_gen_stream){.b = {.now_ns = HR_GEN_BOOT_NS,
					  .real_minus_boot_ns = HR_GEN_REAL_NS - HR_GEN_BOOT_NS,
					  .error_ns = 50,
					  .zstd = BUILD_ZSTD_NO_BATCHES}};
	s->cached = build_must(calloc(n_tasks + 1, HR_OP_MAX * sizeof(*s->cached)));
	build_check(hr_encoder_new(&s->b.encoder), "make an encoder");
	build_open(&s->b, store, id);
}

uint64_t hr_gen_close(struct hr_gen_stream *s)
{
	uint64_t bytes = hr_writer_bytes(s->b.writer);

	build_close(&s->b);
	hr_encoder_free(s->b.encoder);
	hr_rollups_done(&s->sums);
	free(s->cached);
	return bytes;
}

void hr_gen_send_job(struct hr_gen_stream *s, const char *name, uint32_t ranks, bool ended)
{
	build_job(&s->b, (Headrace__JobEvent){.state = ended ? "ended" : "running",
					      .uid = 1000,
					      .user = "ada",
					      .name = (char *)name,
					      .start_ns = HR_GEN_BOOT_NS,
					      .end_ns = ended ? s->b.now_ns : 0,
					      .ranks_expected = ranks});
}

Headrace__Process hr_gen_process(uint32_t task, uint32_t rank, int worker, uint32_t local,
				 uint32_t ranks, const char *cmdline)
{
	return (Headrace__Process){.proc = task + 1,
				   .pid = (int32_t)(1000 + task),
				   .ppid = 1,
				   .exe = BUILD_BYTES("/usr/bin/python3"),
				   .cmdline = build_bytes(cmdline),
				   .start_ns = HR_GEN_BOOT_NS,
				   .rank_plus1 = rank + 1,
				   .local_rank_plus1 = rank % local + 1,
				   .world_size = ranks,
				   .worker_plus1 = (uint32_t)(worker + 1),
				   .rank_source = "RANK"};
}

void hr_gen_send_mounts(struct hr_gen_stream *s, const struct hr_gen_mount *mounts, size_t n)
{
	Headrace__Mount rows[MOUNTS_MAX];

	if (n > MOUNTS_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		rows[i] = (Headrace__Mount){.id = (uint32_t)i + 1,
					    .path = build_bytes(mounts[i].path),
					    .fs_type = mounts[i].fs_type};
	build_paths(&s->b, NULL, 0, rows, n);
}

void hr_gen_send_events(struct hr_gen_stream *s, const struct hr_event *events, size_t n,
			const struct hr_task *tasks, size_t n_tasks)
{
	s->b.now_ns = events[n - 1].start_ns + events[n - 1].dur_ns;
	build_events(&s->b, events, n, tasks, n_tasks);
}

void hr_gen_add(struct hr_gen_stream *s, const struct hr_event *e, uint32_t mount)
{
	uint64_t bytes = hr_bytes_moved(hr_op_info(e->op)->bytes_rule, e->ret, e->asked, e->flags);
	struct hr_file_op op = {.bytes = bytes, .start_ns = e->start_ns, .dur_ns = e->dur_ns};
	uint64_t window = hr_rollup_window(&op);
	struct hr_rollup *row;

	if (window > s->window)
		hr_gen_send_sums(s);
	s->window = window;
	row = build_must(hr_rollup_row(&s->sums, window, e->task + 1, e->op, (uint16_t)mount, 0,
				       &s->cached[e->task * HR_OP_MAX + e->op]));
	hr_rollup_add(row, &op, bytes != UINT64_MAX, e->ret < 0);
}

void hr_gen_send_sums(struct hr_gen_stream *s)
{
	for (uint32_t from = 0; from < s->sums.n;) {
		Headrace__RollupBatch batch = HEADRACE__ROLLUP_BATCH__INIT;
		struct hr_arena arena = {0};

		from = hr_rollups_message(&arena, &s->sums, s->window, from, &batch);
		build_send(&s->b, BUILD_FRAME(ROLLUPS, rollups, &batch));
		hr_arena_free(&arena);
	}
	hr_rollups_drop(&s->sums, s->window);
}

void hr_gen_send_paths(struct hr_gen_stream *s, uint32_t first, uint32_t last, hr_gen_file_fn *fill,
		       const void *generator)
{
	uint32_t n = last + 1 - first;
	char(*text)[HR_GEN_PATH_BYTES];
	Headrace__Path *rows;

	if (n == 0)
		return;
	rows = build_must(calloc(n, sizeof(*rows)));
	text = build_must(calloc(n, sizeof(*text)));
	for (uint32_t i = 0; i < n; i++) {
		rows[i].id = first + i;
		fill(generator, first + i, &rows[i], text[i]);
		rows[i].path = build_bytes(text[i]);
	}
	build_paths(&s->b, rows, n, NULL, 0);
	free(rows);
	free(text);
}
