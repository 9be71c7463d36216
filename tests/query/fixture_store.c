/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_store.c - the frames of the small store; tests/query/test_answers.c holds the same
 * numbers
 */
#include "tests/query/fixture_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"

void fixture__open(struct fixture__stream *s, const char *store, const struct hr_stream_id *id)
{
	*s = (struct fixture__stream){.b = {.now_ns = FIX_BOOT_NS,
					    .real_minus_boot_ns = FIX_REAL_NS - FIX_BOOT_NS,
					    .error_ns = 40}};
	build_open(&s->b, store, id);
}

void fixture__open_stream(struct fixture__stream *s, const char *store, const char *job,
			  const char *node)
{
	fixture__open(s, store,
		      &(struct hr_stream_id){.cluster = "c",
					     .job = job,
					     .attempt = 2,
					     .node = node,
					     .boot_id = "b",
					     .instance = 77});
}

/* A run of job 9 on n1. */
static void open_run(struct fixture__stream *s, const char *store, const char *cluster,
		     uint32_t attempt, uint64_t instance)
{
	fixture__open(s, store,
		      &(struct hr_stream_id){.cluster = cluster,
					     .job = "9",
					     .attempt = attempt,
					     .node = "n1",
					     .boot_id = "b",
					     .instance = instance});
}

/* ---- names -------------------------------------------------------------------------- */

void fixture__send_job(struct fixture__stream *s, char *state, uint32_t ranks)
{
	Headrace__JobEvent__LabelsEntry label = HEADRACE__JOB_EVENT__LABELS_ENTRY__INIT;
	Headrace__JobEvent__LabelsEntry *labels[] = {&label};

	label.key = "model";
	label.value = "resnet";
	build_job(&s->b, (Headrace__JobEvent){
			     .state = state,
			     .uid = 1000,
			     .user = "ada",
			     .name = "train",
			     .start_ns = FIX_BOOT_NS + s->late_ns,
			     .end_ns = strcmp(state, "ended") == 0 ? FIX_BOOT_NS + 3000000000u : 0,
			     .ranks_expected = ranks,
			     .n_labels = 1,
			     .labels = labels});
}

void fixture__send_processes(struct fixture__stream *s, uint32_t first_rank)
{
	Headrace__Process rows[3];
	Headrace__Excluded excluded[2], *left_out[2] = {&excluded[0], &excluded[1]};

	for (unsigned i = 0; i < 3; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)(100 + i),
					      .ppid = 99,
					      .exe = BUILD_BYTES("/usr/bin/python3"),
					      .cmdline = BUILD_BYTES("python3\0train.py\0"),
					      .start_ns = FIX_BOOT_NS,
					      .rank_plus1 = i < 2 ? first_rank + 1 : 0,
					      .local_rank_plus1 = i < 2,
					      .uid = 1000};
	rows[1].parent_proc = 1;
	rows[1].worker_plus1 = 4;
	rows[1].loader_plus1 = 1;
	rows[1].loader_worker_plus1 = 6;
	rows[1].end_ns = FIX_BOOT_NS + 2000000000u;
	rows[1].exit = "SIGKILL";
	rows[2].exec_of = 1;
	for (unsigned i = 0; i < 2; i++) {
		headrace__excluded__init(&excluded[i]);
		excluded[i].pattern = i == 0 ? BUILD_BYTES("/opt") : BUILD_BYTES("/etc");
		excluded[i].opens = 1200 - i;
	}
	rows[0].n_excluded = 2;
	rows[0].excluded = left_out;
	rows[1].n_excluded = 1;
	rows[1].excluded = left_out + 1;
	build_processes(&s->b, rows, 3);
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
	Headrace__Mount mounts[] = {
	    {.id = 1, .path = BUILD_BYTES("/data"), .fs_type = "lustre"},
	    {.id = 2, .path = BUILD_BYTES("/scratch"), .fs_type = "xfs"},
	};
	Headrace__Path rows[5];

	for (unsigned i = 0; i < 5; i++)
		rows[i] = (Headrace__Path){.id = i + 1,
					   .hash = 1000 + i,
					   .path = {files[i].bytes, (uint8_t *)files[i].text},
					   .mount = files[i].mount,
					   .scope = files[i].scope};
	build_paths(&s->b, rows, 5, mounts, 2);
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

/* ---- sums --------------------------------------------------------------------------- */

/* What send_rollups sends of a process, with `side` beside its reads. */
static void send_rollup(struct fixture__stream *s, uint64_t proc, uint64_t count, uint64_t bytes,
			uint64_t longest, Headrace__Rollup *side)
{
	uint64_t sizes[] = {6, count}, durations[] = {7, count};
	Headrace__Rollup row = {.proc = proc,
				.op = HR_OP_read,
				.mount = 1,
				.count = count,
				.bytes = bytes,
				.errors = 1,
				.dur_ns = 150 * count,
				.max_dur_ns = longest,
				.n_size_hist = 2,
				.size_hist = sizes,
				.n_dur_hist = 2,
				.dur_hist = durations};

	build_rollups(&s->b, FIX_BOOT_NS, &row, 1, side, side != NULL);
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
	uint64_t sizes[] = {0, 5};
	Headrace__Rollup side = {.proc = 1,
				 .op = HR_SIDE_SINGLE_READ,
				 .count = 5,
				 .bytes = 5,
				 .dur_ns = 50,
				 .n_size_hist = 2,
				 .size_hist = sizes};

	send_rollup(s, 1, 1, 100, 100, &side);
}

static void send_file_record(struct fixture__stream *s, uint64_t first, uint64_t last,
			     uint64_t longest)
{
	uint64_t sizes[] = {12, 2};
	Headrace__FileRecord row = {.proc = 1,
				    .file = 1,
				    .api = HR_API_POSIX,
				    .opens = 1,
				    .reads = 2,
				    .bytes_read = 8192,
				    .read_ns = 400,
				    .max_read_ns = longest,
				    .first_ns = FIX_BOOT_NS + first,
				    .last_ns = FIX_BOOT_NS + last,
				    .seq_reads = 1,
				    .n_read_size_hist = 2,
				    .read_size_hist = sizes};

	build_file_records(&s->b, &row, 1);
}

static void send_loss(struct fixture__stream *s, uint64_t count)
{
	build_losses(&s->b,
		     &(Headrace__LossRow){.proc = 2,
					  .reason = "ring_full",
					  .op = HR_OP_read,
					  .count = count,
					  .bytes = 10 * count},
		     1);
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
	static const struct build_texts texts[4] = {
	    {.domain = "torch"},
	    {.domain = "torch", .category = "a\n\xff", .args = "{\"k\": 1}", .name = "save"},
	};

	regions[1].dur_ns = 300;
	regions[2].dur_ns = 2000;
	regions[2].step = 7;
	for (unsigned i = 0; i < 4; i++) {
		regions[i].start_ns += FIX_BOOT_NS;
		regions[i].step = regions[i].step ? regions[i].step : HR_REGION_UNKNOWN;
		regions[i].epoch = i == 0 ? HR_REGION_UNKNOWN : 0;
		build_region(&s->b, regions[i], texts[i]);
	}
	build_regions(&s->b);
}

static void make_n1(const char *store)
{
	struct fixture__stream s;

	fixture__open_stream(&s, store, "7", "n1");
	fixture__send_job(&s, "running", 4);
	build_level(&s.b, "counters", FIX_BOOT_NS, 0);
	fixture__send_processes(&s, 0);
	fixture__send_paths(&s);
	build_events(&s.b, events, N_EVENTS, tasks, 3);
	send_rollups(&s, 3, 300, 800);
	send_rollups(&s, 4, 500, 700);
	send_file_record(&s, 1000, 2000, 90);
	send_file_record(&s, 500, 1500, 70);
	send_loss(&s, 5);
	send_loss(&s, 6);
	send_regions(&s);
	build_level(&s.b, "counters", FIX_BOOT_NS, FIX_BOOT_NS + 1500000000u);
	fixture__send_job(&s, "ended", 4);
	build_end(&s.b, "ended");
	build_close(&s.b);
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
	build_events(&s.b, events, 3, tasks, 3);
	build_events(&s.b, events + 4, 2, tasks, 3);
	build_close(&s.b);
}

static void make_other_job(const char *store)
{
	struct fixture__stream s;

	fixture__open_stream(&s, store, "8", "n1");
	build_end(&s.b, "ended");
	build_close(&s.b);
}

/* Reads of the rank and of its worker. */
static void make_run(struct fixture__stream *s)
{
	fixture__send_processes(s, 0);
	fixture__send_paths(s);
	build_events(&s->b, events, N_EVENTS, tasks, 3);
	send_rollup(s, 1, 2, 200, 100, NULL);
	send_rollup(s, 2, 3, 300, 100, NULL);
}

char *fixture__make_folder(void)
{
	char *store = build_folder();

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
			build_end(&s.b, "ended");
		build_close(&s.b);
	}
	return store;
}

struct hr_writer *fixture_start_run(const char *store)
{
	struct fixture__stream s;

	open_run(&s, store, "c", 7, 7);
	fixture__send_job(&s, "running", 1);
	send_rollup(&s, 1, 2, 1000000, 100, NULL);
	return s.b.writer;
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
		build_end(&s.b, "ended");
		build_close(&s.b);
	}
	fixture_open(&fix, store, NULL);
	*state = store;
	return 0;
}

int fixture__one_job(void **state, uint32_t ranks, void (*fill)(struct fixture__stream *))
{
	return fixture__job_on(state, 1, ranks, fill);
}
