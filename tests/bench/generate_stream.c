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

int hr_gen_send_job(struct hr_gen_stream *s, const char *name, uint32_t ranks, bool ended)
{
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	job.state = ended ? "ended" : "running";
	job.uid = 1000;
	job.user = "ada";
	job.name = (char *)name;
	job.start_ns = HR_GEN_BOOT_NS;
	job.end_ns = ended ? s->now_ns : 0;
	job.ranks_expected = ranks;
	frame.body_case = HEADRACE__FRAME__BODY_JOB;
	frame.job = &job;
	return hr_gen_send(s, &frame, 1);
}

void hr_gen_process(uint32_t task, uint32_t rank, int worker, uint32_t local, uint32_t ranks,
		    char *cmdline, Headrace__Process *ret)
{
	static char python[] = "/usr/bin/python3";

	headrace__process__init(ret);
	ret->proc = task + 1;
	ret->pid = (int32_t)(1000 + task);
	ret->ppid = 1;
	ret->exe = (ProtobufCBinaryData){sizeof(python) - 1, (uint8_t *)python};
	ret->cmdline = (ProtobufCBinaryData){strlen(cmdline), (uint8_t *)cmdline};
	ret->start_ns = HR_GEN_BOOT_NS;
	ret->rank_plus1 = rank + 1;
	ret->local_rank_plus1 = rank % local + 1;
	ret->world_size = ranks;
	ret->worker_plus1 = (uint32_t)(worker + 1);
	ret->rank_source = "RANK";
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

int hr_gen_send_events(struct hr_gen_stream *s, struct hr_encoder *encoder,
		       const struct hr_event *events, size_t n, const struct hr_task *tasks,
		       size_t n_tasks)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__EventBatch batch;
	int r = hr_batch_encode(encoder, events, n, tasks, n_tasks, &batch);

	if (r < 0)
		return r;
	s->now_ns = events[n - 1].start_ns + events[n - 1].dur_ns;
	frame.body_case = HEADRACE__FRAME__BODY_EVENTS;
	frame.events = &batch;
	return hr_gen_send(s, &frame, 0);
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
