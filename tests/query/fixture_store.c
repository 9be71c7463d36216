/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_store.c - the frames of the small store; tests/query/test_answers.c holds the same
 * numbers
 */
#include "tests/query/fixture_frames.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/batch.h"
#include "common/region.h"

void fixture__send(struct fixture__stream *s, Headrace__Frame *frame)
{
	Headrace__Clock clock = HEADRACE__CLOCK__INIT;
	uint8_t *buf;
	size_t bytes;

	clock.boot_ns = FIX_BOOT_NS;
	clock.real_ns = FIX_REAL_NS;
	clock.error_ns = 40;
	frame->seq = hr_writer_mark(s->writer) + 1;
	frame->clock = &clock;
	assert_int_equal(hr_frame_pack(frame, 1, &buf, &bytes), 0);
	frame->clock = NULL;
	assert_int_equal(hr_writer_append(s->writer, buf, bytes), 0);
	free(buf);
}

void fixture__open_stream(struct fixture__stream *s, const char *store, const char *job,
			  const char *node)
{
	struct hr_stream_id id = {
	    .cluster = "c", .job = job, .attempt = 2, .node = node, .boot_id = "b", .instance = 77};

	*s = (struct fixture__stream){0};
	assert_int_equal(hr_writer_open(store, &id, &s->writer, NULL), 0);
}

/* A run of job 9 on n1. */
static void open_run(struct fixture__stream *s, const char *store, const char *cluster,
		     uint32_t attempt, uint64_t instance)
{
	struct hr_stream_id id = {.cluster = cluster,
				  .job = "9",
				  .attempt = attempt,
				  .node = "n1",
				  .boot_id = "b",
				  .instance = instance};

	*s = (struct fixture__stream){0};
	assert_int_equal(hr_writer_open(store, &id, &s->writer, NULL), 0);
}

/* ---- names -------------------------------------------------------------------------- */

void fixture__send_job(struct fixture__stream *s, char *state, uint32_t ranks)
{
	Headrace__JobEvent__LabelsEntry label = HEADRACE__JOB_EVENT__LABELS_ENTRY__INIT;
	Headrace__JobEvent__LabelsEntry *labels[] = {&label};
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	label.key = "model";
	label.value = "resnet";
	job.state = state;
	job.uid = 1000;
	job.user = "ada";
	job.name = "train";
	job.start_ns = FIX_BOOT_NS + s->late_ns;
	job.end_ns = strcmp(state, "ended") == 0 ? FIX_BOOT_NS + 3000000000u : 0;
	job.ranks_expected = ranks;
	job.n_labels = 1;
	job.labels = labels;
	frame.body_case = HEADRACE__FRAME__BODY_JOB;
	frame.job = &job;
	fixture__send(s, &frame);
}

void fixture__send_process_rows(struct fixture__stream *s, Headrace__Process *rows, size_t n)
{
	Headrace__Process *list[FIX_ROWS];
	Headrace__Processes processes = HEADRACE__PROCESSES__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	assert_in_range(n, 1, FIX_ROWS);
	for (size_t i = 0; i < n; i++)
		list[i] = &rows[i];
	processes.n_rows = n;
	processes.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_PROCESSES;
	frame.processes = &processes;
	fixture__send(s, &frame);
}

void fixture__send_processes(struct fixture__stream *s, uint32_t first_rank)
{
	Headrace__Process rows[3];
	Headrace__Excluded excluded[2], *left_out[2] = {&excluded[0], &excluded[1]};

	for (unsigned i = 0; i < 3; i++) {
		headrace__process__init(&rows[i]);
		rows[i].proc = i + 1;
		rows[i].pid = (int32_t)(100 + i);
		rows[i].ppid = 99;
		rows[i].exe = FIX_BYTES("/usr/bin/python3");
		rows[i].cmdline = FIX_BYTES("python3\0train.py\0");
		rows[i].start_ns = FIX_BOOT_NS;
		rows[i].rank_plus1 = i < 2 ? first_rank + 1 : 0;
		rows[i].local_rank_plus1 = i < 2 ? 1 : 0;
		rows[i].uid = 1000;
	}
	rows[1].parent_proc = 1;
	rows[1].worker_plus1 = 4;
	rows[1].loader_plus1 = 1;
	rows[1].loader_worker_plus1 = 6;
	rows[1].end_ns = FIX_BOOT_NS + 2000000000u;
	rows[1].exit = "SIGKILL";
	rows[2].exec_of = 1;
	for (unsigned i = 0; i < 2; i++) {
		headrace__excluded__init(&excluded[i]);
		excluded[i].pattern = i == 0 ? FIX_BYTES("/opt") : FIX_BYTES("/etc");
		excluded[i].opens = 1200 - i;
	}
	rows[0].n_excluded = 2;
	rows[0].excluded = left_out;
	rows[1].n_excluded = 1;
	rows[1].excluded = left_out + 1;
	fixture__send_process_rows(s, rows, 3);
}

void fixture__send_path_rows(struct fixture__stream *s, Headrace__Path *rows, size_t n,
			     Headrace__Mount *mounts, size_t n_mounts)
{
	Headrace__Path *list[FIX_ROWS];
	Headrace__Mount *mount_list[FIX_ROWS];
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	assert_in_range(n, 1, FIX_ROWS);
	assert_in_range(n_mounts, 0, FIX_ROWS);
	for (size_t i = 0; i < n; i++)
		list[i] = &rows[i];
	for (size_t i = 0; i < n_mounts; i++)
		mount_list[i] = &mounts[i];
	paths.n_rows = n;
	paths.rows = list;
	paths.n_mounts = n_mounts;
	paths.mounts = mount_list;
	frame.body_case = HEADRACE__FRAME__BODY_PATHS;
	frame.paths = &paths;
	fixture__send(s, &frame);
}

void fixture__send_paths(struct fixture__stream *s)
{
	static const struct {
		const char *text;
		size_t bytes;
		uint32_t mount, scope;
	} files[] = {
	    {"/data/train/img-001.jpg", 23, 1, 0},   {"/scratch/ckpt/model-10.pt", 25, 2, 0},
	    {"/scratch/ckpt/model-20.pt", 25, 2, 0}, {"/data/odd\n\xff\\1", 13, 1, 0},
	    {"/usr/lib/python3/os.py", 22, 0, 1},
	};
	Headrace__Path rows[5];
	Headrace__Mount mounts[2];

	for (unsigned i = 0; i < 5; i++) {
		headrace__path__init(&rows[i]);
		rows[i].id = i + 1;
		rows[i].hash = 1000 + i;
		rows[i].path = (ProtobufCBinaryData){files[i].bytes, (uint8_t *)files[i].text};
		rows[i].mount = files[i].mount;
		rows[i].scope = files[i].scope;
	}
	headrace__mount__init(&mounts[0]);
	mounts[0].id = 1;
	mounts[0].path = FIX_BYTES("/data");
	mounts[0].fs_type = "lustre";
	headrace__mount__init(&mounts[1]);
	mounts[1].id = 2;
	mounts[1].path = FIX_BYTES("/scratch");
	mounts[1].fs_type = "xfs";
	fixture__send_path_rows(s, rows, 5, mounts, 2);
}

/* ---- events ------------------------------------------------------------------------- */

#define NO_OFFSET HR_OFFSET_NONE
#define NO_SIZE	  HR_ASKED_NONE
#define EVENT(when, who, what, which, number, wanted, at, result, ...)                             \
	{                                                                                          \
		.start_ns = FIX_BOOT_NS + (when), .dur_ns = 100, .task = (who),                    \
		.op = HR_OP_##what, .file = (which), .fd = (number), .asked = (wanted),            \
		.offset = (at), .ret = (result), __VA_ARGS__                                       \
	}

static const struct hr_event events[] = {
    EVENT(0, 0, open64, 1, 5, NO_SIZE, NO_OFFSET, 5, .flags = 524288),
    EVENT(1000, 0, read, 1, 5, 65536, 0, 4096, ),
    EVENT(2000, 0, close, 1, 5, NO_SIZE, NO_OFFSET, 0, ),
    EVENT(3000, 0, open64, 4, -1, NO_SIZE, NO_OFFSET, -2, ),
    EVENT(1500, 1, write, 2, 6, 1000, 0, 1000, ),
    EVENT(2500, 1, write, 3, 6, 1000, 1000, -28, ),
    EVENT(3500, 1, read, 4, 7, 10, NO_OFFSET, HR_RET_NONE, .bits = HR_EV_CUT),
    EVENT(4000, 1, fread, 5, 8, 40, NO_OFFSET, 3, .flags = 8, .bits = HR_EV_SCOPE_RUNTIME),
    EVENT(5000, 2, rename, 2, -1, NO_SIZE, NO_OFFSET, 0, .file2 = 3),
    EVENT(6000, 2, read, 1, 9, 7, NO_OFFSET, 7, .bits = HR_EV_BPF),
};
#define N_EVENTS (sizeof(events) / sizeof(events[0]))

static const struct hr_task tasks[] = {{1, 100}, {2, 101}, {3, 102}};

void fixture__send_events(struct fixture__stream *s, const struct hr_event *list, size_t n,
			  const struct hr_task *of, uint32_t n_tasks)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__EventBatch batch;
	struct hr_encoder *encoder;

	assert_int_equal(hr_encoder_new(&encoder), 0);
	assert_int_equal(hr_batch_encode(encoder, list, n, of, n_tasks, &batch), 0);
	frame.body_case = HEADRACE__FRAME__BODY_EVENTS;
	frame.events = &batch;
	fixture__send(s, &frame);
	hr_encoder_free(encoder);
}

void fixture__send_regions(struct fixture__stream *s, struct hr_regions *r)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	frame.body_case = HEADRACE__FRAME__BODY_REGIONS;
	frame.regions = (Headrace__Regions *)hr_regions_message(r);
	fixture__send(s, &frame);
	hr_regions_free(r);
}

/* ---- sums --------------------------------------------------------------------------- */

/* What send_rollups sends of a process, with `side` beside its reads. */
static void send_rollup(struct fixture__stream *s, uint64_t proc, uint64_t count, uint64_t bytes,
			uint64_t longest, Headrace__Rollup *side)
{
	uint64_t sizes[] = {6, count}, durations[] = {7, count};
	Headrace__Rollup row = HEADRACE__ROLLUP__INIT, *list[] = {&row};
	Headrace__RollupBatch batch = HEADRACE__ROLLUP_BATCH__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	batch.n_sides = side != NULL;
	batch.sides = &side;
	row.proc = proc;
	row.op = HR_OP_read;
	row.mount = 1;
	row.count = count;
	row.bytes = bytes;
	row.errors = 1;
	row.dur_ns = 150 * count;
	row.max_dur_ns = longest;
	row.n_size_hist = row.n_dur_hist = 2;
	row.size_hist = sizes;
	row.dur_hist = durations;
	batch.window_start_ns = FIX_BOOT_NS;
	batch.window_ns = 10000000000u;
	batch.n_rows = 1;
	batch.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_ROLLUPS;
	frame.rollups = &batch;
	fixture__send(s, &frame);
}

/* Reads of proc 1 in one window come in two parts: 3 + 4 calls, 300 + 500 bytes. */
static void send_rollups(struct fixture__stream *s, uint64_t count, uint64_t bytes,
			 uint64_t longest)
{
	send_rollup(s, 1, count, bytes, longest, NULL);
}

/* Five characters, one by one. */
static void send_singles(struct fixture__stream *s)
{
	Headrace__Rollup side = HEADRACE__ROLLUP__INIT;
	uint64_t sizes[] = {0, 5};

	side.proc = 1;
	side.op = HR_SIDE_SINGLE_READ;
	side.count = side.bytes = 5;
	side.dur_ns = 50;
	side.n_size_hist = 2;
	side.size_hist = sizes;
	send_rollup(s, 1, 1, 100, 100, &side);
}

static void send_file_record(struct fixture__stream *s, uint64_t first, uint64_t last,
			     uint64_t longest)
{
	uint64_t sizes[] = {12, 2};
	Headrace__FileRecord row = HEADRACE__FILE_RECORD__INIT, *list[] = {&row};
	Headrace__FileRecords records = HEADRACE__FILE_RECORDS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	row.proc = 1;
	row.file = 1;
	row.api = HR_API_POSIX;
	row.opens = 1;
	row.reads = 2;
	row.bytes_read = 8192;
	row.read_ns = 400;
	row.max_read_ns = longest;
	row.first_ns = FIX_BOOT_NS + first;
	row.last_ns = FIX_BOOT_NS + last;
	row.seq_reads = 1;
	row.n_read_size_hist = 2;
	row.read_size_hist = sizes;
	records.n_rows = 1;
	records.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_FILE_RECORDS;
	frame.file_records = &records;
	fixture__send(s, &frame);
}

static void send_loss(struct fixture__stream *s, uint64_t count)
{
	Headrace__LossRow row = HEADRACE__LOSS_ROW__INIT, *list[] = {&row};
	Headrace__Loss loss = HEADRACE__LOSS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	row.proc = 2;
	row.reason = "ring_full";
	row.op = HR_OP_read;
	row.count = count;
	row.bytes = 10 * count;
	loss.n_rows = 1;
	loss.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	frame.loss = &loss;
	fixture__send(s, &frame);
}

/* end_ns 0: the span has begun. */
static void send_level(struct fixture__stream *s, uint64_t end_ns)
{
	Headrace__Levels level = HEADRACE__LEVELS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	level.level = "counters";
	level.start_ns = FIX_BOOT_NS;
	level.end_ns = end_ns;
	frame.body_case = HEADRACE__FRAME__BODY_LEVELS;
	frame.levels = &level;
	fixture__send(s, &frame);
}

/* The worker's fetches, 1,000 of them in one row; the rank's checkpoint, its step, an epoch that did not end. */
static void send_regions(struct fixture__stream *s)
{
	struct hr_region regions[] = {
	    {.proc = 2, .tid = 101, .kind = HR_REGION_FETCH, .count = 1000, .dur_ns = 70},
	    {.proc = 1, .tid = 100, .kind = HR_REGION_CHECKPOINT, .depth = 2, .start_ns = 1400},
	    {.proc = 1, .tid = 100, .kind = HR_REGION_STEP, .depth = 1, .start_ns = 500},
	    {.proc = 1, .tid = 100, .kind = HR_REGION_EPOCH, .open = true},
	};
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	struct hr_regions *r;

	regions[1].dur_ns = 300;
	regions[2].dur_ns = 2000;
	regions[2].step = 7;
	assert_int_equal(hr_regions_new(&r), 0);
	assert_int_equal(hr_regions_text(r, "torch", 5, &regions[0].domain), 0);
	assert_int_equal(hr_regions_text(r, "a\n\xff", 3, &regions[1].category), 0);
	assert_int_equal(hr_regions_text(r, "{\"k\": 1}", 8, &regions[1].args), 0);
	assert_int_equal(hr_regions_text(r, "save", 4, &regions[1].name), 0);
	assert_int_equal(hr_regions_text(r, "torch", 5, &regions[1].domain), 0);
	for (unsigned i = 0; i < 4; i++) {
		regions[i].start_ns += FIX_BOOT_NS;
		regions[i].step = regions[i].step ? regions[i].step : HR_REGION_UNKNOWN;
		regions[i].epoch = i == 0 ? HR_REGION_UNKNOWN : 0;
		assert_int_equal(hr_regions_add(r, &regions[i]), 0);
	}
	frame.body_case = HEADRACE__FRAME__BODY_REGIONS;
	frame.regions = (Headrace__Regions *)hr_regions_message(r);
	fixture__send(s, &frame);
	hr_regions_free(r);
}

void fixture__send_end(struct fixture__stream *s)
{
	Headrace__StreamEnd end = HEADRACE__STREAM_END__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	end.state = "ended";
	frame.body_case = HEADRACE__FRAME__BODY_STREAM_END;
	frame.stream_end = &end;
	fixture__send(s, &frame);
}

static void make_n1(const char *store)
{
	struct fixture__stream s;

	fixture__open_stream(&s, store, "7", "n1");
	fixture__send_job(&s, "running", 4);
	send_level(&s, 0);
	fixture__send_processes(&s, 0);
	fixture__send_paths(&s);
	fixture__send_events(&s, events, N_EVENTS, tasks, 3);
	send_rollups(&s, 3, 300, 800);
	send_rollups(&s, 4, 500, 700);
	send_file_record(&s, 1000, 2000, 90);
	send_file_record(&s, 500, 1500, 70);
	send_loss(&s, 5);
	send_loss(&s, 6);
	send_regions(&s);
	send_level(&s, FIX_BOOT_NS + 1500000000u);
	fixture__send_job(&s, "ended", 4);
	fixture__send_end(&s);
	assert_int_equal(hr_writer_close(s.writer), 0);
}

/* Two batches, of which the second has only writes. */
static void make_n2(const char *store)
{
	struct fixture__stream s;

	fixture__open_stream(&s, store, "7", "n2");
	s.late_ns = 1500000000; /* its job begins with the first node */
	fixture__send_job(&s, "running", 4);
	fixture__send_processes(&s, 2);
	fixture__send_paths(&s);
	fixture__send_events(&s, events, 3, tasks, 3);
	fixture__send_events(&s, events + 4, 2, tasks, 3);
	assert_int_equal(hr_writer_close(s.writer), 0);
}

static void make_other_job(const char *store)
{
	struct fixture__stream s;

	fixture__open_stream(&s, store, "8", "n1");
	fixture__send_end(&s);
	assert_int_equal(hr_writer_close(s.writer), 0);
}

/* Reads of the rank and of its worker. */
static void make_run(struct fixture__stream *s)
{
	fixture__send_processes(s, 0);
	fixture__send_paths(s);
	fixture__send_events(s, events, N_EVENTS, tasks, 3);
	send_rollup(s, 1, 2, 200, 100, NULL);
	send_rollup(s, 2, 3, 300, 100, NULL);
}

char *fixture__make_folder(void)
{
	char *store = strdup("/tmp/headrace-query-test-XXXXXX");

	assert_non_null(store);
	assert_non_null(mkdtemp(store));
	assert_int_equal(hr_store_create(store), 0);
	return store;
}

char *fixture_make(void)
{
	char *store = fixture__make_folder();

	make_n1(store);
	make_n2(store);
	make_other_job(store);
	return store;
}

char *fixture_make_runs(void)
{
	static const struct {
		const char *cluster;
		uint32_t attempt;
		bool ends;
	} runs[] = {{"c", 0, true}, {"c", 0, true}, {"c", 1, false}, {"d", 0, true}};
	char *store = fixture__make_folder();

	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct fixture__stream s;

		open_run(&s, store, runs[i].cluster, runs[i].attempt, i + 1);
		fixture__send_job(&s, runs[i].ends ? "ended" : "running", i == 3 ? 20000000 : 4);
		make_run(&s);
		send_file_record(&s, 1000 - 100 * i, 2000 + 100 * i, 90);
		if (i == 3)
			send_singles(&s);
		if (runs[i].ends)
			fixture__send_end(&s);
		assert_int_equal(hr_writer_close(s.writer), 0);
	}
	return store;
}

struct hr_writer *fixture_start_run(const char *store)
{
	struct fixture__stream s;

	open_run(&s, store, "c", 7, 7);
	fixture__send_job(&s, "running", 1);
	send_rollup(&s, 1, 2, 1000000, 100, NULL);
	return s.writer;
}

int fixture__job_on(void **state, unsigned nodes, uint32_t ranks,
		    void (*fill)(struct fixture__stream *))
{
	static const char *const names[] = {"n1", "n2"};
	char *store = fixture__make_folder();

	for (unsigned node = 0; node < nodes; node++) {
		struct fixture__stream s;

		fixture__open_stream(&s, store, "a", names[node]);
		s.node = node;
		fixture__send_job(&s, "ended", ranks);
		fixture__send_paths(&s);
		fill(&s);
		fixture__send_end(&s);
		assert_int_equal(hr_writer_close(s.writer), 0);
	}
	fixture_open(&fix, store, NULL);
	*state = store;
	return 0;
}

int fixture__one_job(void **state, uint32_t ranks, void (*fill)(struct fixture__stream *))
{
	return fixture__job_on(state, 1, ranks, fill);
}
