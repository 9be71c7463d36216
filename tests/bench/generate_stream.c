/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/generate_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOUNTS_MAX 4u

int hr_gen_send(struct hr_gen_stream *s, Headrace__Frame *frame, int compress)
{
	Headrace__Clock clock = HEADRACE__CLOCK__INIT;
	uint8_t *buf;
	size_t bytes;
	int r;

	clock.boot_ns = s->now_ns;
	clock.real_ns = s->now_ns - HR_GEN_BOOT_NS + HR_GEN_REAL_NS;
	clock.error_ns = 50;
	frame->seq = hr_writer_mark(s->writer) + 1;
	frame->clock = &clock;
	r = hr_frame_pack(frame, compress, &buf, &bytes);
	frame->clock = NULL;
	if (r < 0)
		return r;
	r = hr_writer_append(s->writer, buf, bytes);
	free(buf);
	return r;
}

int hr_gen_send_processes(struct hr_gen_stream *s, Headrace__Process *rows, size_t n)
{
	Headrace__Processes processes = HEADRACE__PROCESSES__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__Process **list = calloc(n, sizeof(*list));
	int r;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = &rows[i];
	processes.n_rows = n;
	processes.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_PROCESSES;
	frame.processes = &processes;
	r = hr_gen_send(s, &frame, 1);
	free(list);
	return r;
}

int hr_gen_send_mounts(struct hr_gen_stream *s, const struct hr_gen_mount *mounts, size_t n)
{
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__Mount rows[MOUNTS_MAX], *list[MOUNTS_MAX];

	if (n > MOUNTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		headrace__mount__init(&rows[i]);
		rows[i].id = (uint32_t)i + 1;
		rows[i].path.len = strlen(mounts[i].path);
		rows[i].path.data = (uint8_t *)mounts[i].path;
		rows[i].fs_type = mounts[i].fs_type;
		list[i] = &rows[i];
	}
	paths.n_mounts = n;
	paths.mounts = list;
	frame.body_case = HEADRACE__FRAME__BODY_PATHS;
	frame.paths = &paths;
	return hr_gen_send(s, &frame, 1);
}

int hr_gen_send_paths(struct hr_gen_stream *s, uint32_t first, uint32_t last, hr_gen_file_fn *fill,
		      const void *generator)
{
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	uint32_t n = last + 1 - first;
	Headrace__Path *rows, **list;
	char(*text)[HR_GEN_PATH_BYTES];
	int r = -ENOMEM;

	if (n == 0)
		return 0;
	rows = calloc(n, sizeof(*rows));
	list = calloc(n, sizeof(*list));
	text = calloc(n, sizeof(*text));
	if (rows && list && text) {
		for (uint32_t i = 0; i < n; i++) {
			headrace__path__init(&rows[i]);
			rows[i].id = first + i;
			rows[i].path.len = fill(generator, first + i, &rows[i], text[i]);
			rows[i].path.data = (uint8_t *)text[i];
			list[i] = &rows[i];
		}
		paths.n_rows = n;
		paths.rows = list;
		frame.body_case = HEADRACE__FRAME__BODY_PATHS;
		frame.paths = &paths;
		r = hr_gen_send(s, &frame, 1);
	}
	free(rows);
	free(list);
	free(text);
	return r;
}

int hr_gen_send_rollups(struct hr_gen_stream *s, struct hr_gen_rollups *rollups)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__RollupBatch batch;
	int r = hr_gen_rollups_take(rollups, &batch);

	if (r < 0 || batch.n_rows == 0)
		return r;
	frame.body_case = HEADRACE__FRAME__BODY_ROLLUPS;
	frame.rollups = &batch;
	return hr_gen_send(s, &frame, 1);
}

int hr_gen_send_end(struct hr_gen_stream *s)
{
	Headrace__StreamEnd end = HEADRACE__STREAM_END__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	end.state = "ended";
	frame.body_case = HEADRACE__FRAME__BODY_STREAM_END;
	frame.stream_end = &end;
	return hr_gen_send(s, &frame, 0);
}
