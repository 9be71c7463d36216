/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/batch.h"

int help_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *path;

	if (asprintf(&path, "%s/headrace-test-XXXXXX", tmp ? tmp : "/tmp") < 0 || !mkdtemp(path))
		return -1;
	*state = path;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int help_teardown(void **state)
{
	nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(*state);
	return 0;
}

const char *help_path(void **state, const char *name)
{
	static char buffers[4][4096];
	static unsigned next;
	char *ret = buffers[next++ % 4];

	snprintf(ret, sizeof(buffers[0]), "%s/%s", (const char *)*state, name);
	return ret;
}

struct hr_stream_id help_id(const char *node)
{
	return (struct hr_stream_id){
	    .cluster = "c", .job = "7", .attempt = 0, .node = node, .boot_id = "b", .instance = 1};
}

int help_append(struct hr_writer *w, Headrace__Frame *frame, uint64_t clock_ns)
{
	Headrace__Clock clock = HEADRACE__CLOCK__INIT;
	uint8_t *buf;
	size_t bytes;
	int r;

	frame->seq = hr_writer_mark(w) + 1;
	if (clock_ns) {
		clock.boot_ns = clock_ns;
		clock.real_ns = clock_ns + 1000000;
		clock.error_ns = 7;
		frame->clock = &clock;
	}
	assert_int_equal(hr_frame_pack(frame, 1, &buf, &bytes), 0);
	frame->clock = NULL;
	r = hr_writer_append(w, buf, bytes);
	free(buf);
	return r;
}

int help_append_end(struct hr_writer *w)
{
	Headrace__StreamEnd end = HEADRACE__STREAM_END__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	end.state = "ended";
	frame.body_case = HEADRACE__FRAME__BODY_STREAM_END;
	frame.stream_end = &end;
	return help_append(w, &frame, 0);
}

int help_append_process(struct hr_writer *w, uint64_t proc, uint32_t rank_plus1)
{
	Headrace__Processes processes = HEADRACE__PROCESSES__INIT;
	Headrace__Process row = HEADRACE__PROCESS__INIT, *rows = &row;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	row.proc = proc;
	row.rank_plus1 = rank_plus1;
	processes.n_rows = 1;
	processes.rows = &rows;
	frame.body_case = HEADRACE__FRAME__BODY_PROCESSES;
	frame.processes = &processes;
	return help_append(w, &frame, 0);
}

int help_append_loss(struct hr_writer *w, uint64_t count)
{
	Headrace__Loss loss = HEADRACE__LOSS__INIT;
	Headrace__LossRow row = HEADRACE__LOSS_ROW__INIT, *rows = &row;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	row.reason = "ring_full";
	row.count = count;
	loss.n_rows = 1;
	loss.rows = &rows;
	frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	frame.loss = &loss;
	return help_append(w, &frame, 0);
}

int help_append_paths(struct hr_writer *w, uint32_t first, uint32_t n, bool bare)
{
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__Path *rows = calloc(n, sizeof(*rows)), **list = calloc(n, sizeof(*list));
	char(*text)[32] = calloc(n, sizeof(*text));
	int r;

	assert_true(rows && list && text);
	for (uint32_t i = 0; i < n; i++) {
		headrace__path__init(&rows[i]);
		rows[i].id = first + i;
		rows[i].hash = (first + i) * 8;
		rows[i].mount = 1;
		rows[i].scope = i % 2;
		if (!bare)
			rows[i].path.len = (size_t)snprintf(text[i], 32, "/data/%u", first + i);
		rows[i].path.data = (uint8_t *)text[i];
		list[i] = &rows[i];
	}
	paths.n_rows = n;
	paths.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_PATHS;
	frame.paths = &paths;
	r = help_append(w, &frame, 0);
	free(rows);
	free(list);
	free(text);
	return r;
}

int help_append_mount(struct hr_writer *w, uint32_t id, const char *path)
{
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	Headrace__Mount mount = HEADRACE__MOUNT__INIT, *mounts = &mount;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	mount.id = id;
	mount.path = (ProtobufCBinaryData){strlen(path), (uint8_t *)path};
	mount.fs_type = "xfs";
	paths.n_mounts = 1;
	paths.mounts = &mounts;
	frame.body_case = HEADRACE__FRAME__BODY_PATHS;
	frame.paths = &paths;
	return help_append(w, &frame, 0);
}

int help_append_batch(struct hr_writer *w, uint64_t proc, uint32_t n, uint64_t first_ns)
{
	struct hr_event *events = calloc(n, sizeof(*events));
	struct hr_task task = {.proc = proc, .tid = 100};
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__EventBatch batch;
	struct hr_encoder *e;
	int r;

	assert_non_null(events);
	for (uint32_t i = 0; i < n; i++)
		events[i] = (struct hr_event){.start_ns = first_ns + i * 10,
					      .dur_ns = 5,
					      .offset = i * 4096,
					      .ret = 4096,
					      .asked = 4096,
					      .file = 1 + i / 100,
					      .fd = 3,
					      .op = HR_OP_read};
	assert_int_equal(hr_encoder_new(&e), 0);
	assert_int_equal(hr_batch_encode(e, events, n, &task, 1, &batch), 0);
	frame.body_case = HEADRACE__FRAME__BODY_EVENTS;
	frame.events = &batch;
	r = help_append(w, &frame, first_ns + n * 10);
	hr_encoder_free(e);
	free(events);
	return r;
}

size_t help_read(const char *path, uint8_t **ret)
{
	FILE *f = fopen(path, "rbe");
	long n;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	rewind(f);
	*ret = malloc((size_t)n + 1);
	assert_non_null(*ret);
	assert_int_equal(fread(*ret, 1, (size_t)n, f), n);
	fclose(f);
	return (size_t)n;
}

void help_write(const char *path, const uint8_t *data, size_t bytes)
{
	FILE *f = fopen(path, "wbe");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
}

const char *help_problem(const struct hr_catalog *c, const char *text)
{
	const struct hr_problem *problems;
	size_t n = hr_catalog_problems(c, &problems);

	for (size_t i = 0; i < n; i++)
		if (strstr(problems[i].text, text))
			return problems[i].text;
	return NULL;
}

struct hr_catalog *help_open(const char *store, const struct hr_stream **ret_streams, size_t *ret_n)
{
	struct hr_catalog *c;

	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, NULL), 0);
	*ret_n = hr_catalog_streams(c, ret_streams);
	return c;
}
