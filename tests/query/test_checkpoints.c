/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoints.c - one row for each save as the user sees it: its number, name, path, files and bytes
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

#define MS  UINT64_C(1000000)
#define KIB 1024
#define MIB (1024 * KIB)

/* Tasks, by their processes: rank 0, its second thread, its worker, rank 1. */
enum task { RANK_0, THREAD, WORKER, RANK_1, TASKS };
static const struct hr_task tasks[TASKS] = {{1, 10}, {1, 11}, {2, 20}, {3, 30}};

static const char *const paths[] = {
    "/out/tmp.1",	"/out/one.pt",	 "/out/pair/model.pt", "/out/pair/optimizer.pt",
    "/out/tmp/weights", "/out/tmp",	 "/out/step-3",	       "/out/background.pt",
    "/out/dump.bin",	"/out/rank1.pt", "/out/log",
};
enum file { TMP_1 = 1, ONE, MODEL, OPTIMIZER, WEIGHTS, TMP, STEP_3, BACKGROUND, DUMP, RANK1, LOG };
#define FILES (sizeof(paths) / sizeof(paths[0]))

static const struct save {
	enum task task;
	uint64_t start_ms, dur_ms;
	const char *name, *args;
} saves[] = {
    /* Into memory. The thread writes the bytes and renames the file afterwards. */
    {RANK_0, 120, 10, "torch.save", NULL},
    /* Two files of one save, once in each step. */
    {RANK_0, 220, 10, "torch.save", "{\"path\": \"pair/model.pt\"}"},
    {RANK_0, 235, 10, "torch.save", "{\"path\": \"pair/optimizer.pt\"}"},
    {RANK_0, 320, 10, "torch.save", "{\"path\": \"pair/model.pt\"}"},
    {RANK_0, 335, 10, "torch.save", "{\"path\": \"pair/optimizer.pt\"}"},
    /* Rank 1 saves only now. Rank 0 saves a folder that is renamed, and nests a range in the save. */
    {RANK_0, 420, 30, "Trainer.save", "{\"path\": \"/out/step-3\"}"},
    {RANK_1, 455, 10, "Trainer.save", "{\"path\": \"/out/rank1.pt\"}"},
    /* The save goes on in a thread, and a worker writes the end of the file. */
    {RANK_0, 520, 5, "Trainer.save", "{\"path\": \"/out/background.pt\"}"},
    {THREAD, 530, 30, "Plugin.save", "{\"path\": \"/out/background.pt\"}"},
    /* Two names that differ by a number. */
    {RANK_0, 620, 5, "torch.save", "{\"path\": \"/out/e1.pt\"}"},
    {RANK_0, 630, 5, "torch.save", "{\"path\": \"/out/e2.pt\"}"},
};
#define SAVES (sizeof(saves) / sizeof(saves[0]))

static const struct write {
	enum task task;
	uint64_t start_ms;
	enum file file, renamed;
	int64_t ret; /* bytes, or a negative errno */
} writes[] = {
    {RANK_0, 110, LOG, 0, KIB}, /* no save is under way */
    {RANK_0, 135, TMP_1, 0, 10 * KIB},
    {RANK_0, 140, TMP_1, LOG, -EACCES},
    {RANK_0, 145, TMP_1, ONE, 0},
    {RANK_0, 170, LOG, 0, KIB}, /* the loop went on at 160 */
    {RANK_0, 225, MODEL, 0, 20 * KIB},
    {RANK_0, 240, OPTIMIZER, 0, 30 * KIB},
    {RANK_0, 325, MODEL, 0, 21 * KIB},
    {RANK_0, 340, OPTIMIZER, 0, 31 * KIB},
    {RANK_0, 430, WEIGHTS, 0, 40 * KIB},
    {RANK_0, 440, TMP, STEP_3, 0},
    {RANK_1, 457, RANK1, 0, 50 * KIB},
    {THREAD, 540, BACKGROUND, 0, 60 * KIB},
    {WORKER, 580, BACKGROUND, 0, 5 * KIB},
    {RANK_0, 2000, DUMP, 0, 2 * MIB}, /* a save without a mark */
};
#define WRITES (sizeof(writes) / sizeof(writes[0]))

static void send_processes(struct fixture__stream *s)
{
	Headrace__Process rows[3];

	for (unsigned i = 0; i < 3; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)i + 1,
					      .rank_plus1 = i == 2 ? 2 : 1,
					      .worker_plus1 = i == 1};
	build_processes(&s->b, rows, 3);
}

static void send_files(struct fixture__stream *s)
{
	Headrace__Path rows[FILES];
	Headrace__Mount mount = {.id = 1, .path = BUILD_BYTES("/out"), .fs_type = "xfs"};

	for (unsigned i = 0; i < FILES; i++)
		rows[i] = (Headrace__Path){
		    .id = i + 1, .hash = i + 1, .path = build_bytes(paths[i]), .mount = 1};
	build_paths(&s->b, rows, FILES, &mount, 1);
}

static void send_events(struct fixture__stream *s)
{
	struct hr_event events[WRITES];

	for (size_t i = 0; i < WRITES; i++)
		events[i] = (struct hr_event){.start_ns = FIX_BOOT_NS + writes[i].start_ms * MS,
					      .dur_ns = MS,
					      .task = writes[i].task,
					      .op = writes[i].renamed ? HR_OP_rename : HR_OP_write,
					      .file = writes[i].file,
					      .file2 = writes[i].renamed,
					      .fd = writes[i].renamed ? -1 : 3,
					      .offset = HR_OFFSET_NONE,
					      .asked = HR_ASKED_NONE,
					      .ret = writes[i].ret};
	build_events(&s->b, events, WRITES, tasks, TASKS);
}

static void add(struct fixture__stream *s, struct hr_region region, enum task task,
		const char *name, const char *args)
{
	region.proc = tasks[task].proc;
	region.tid = tasks[task].tid;
	region.start_ns = FIX_BOOT_NS + region.start_ns * MS;
	region.dur_ns *= MS;
	region.epoch = HR_REGION_UNKNOWN;
	build_region(&s->b, region, (struct build_texts){.args = args, .name = name});
}

/* Step n lasts from n * 100 + 60 ms on. Each begins with a wait for input. */
static void send_regions(struct fixture__stream *s)
{
	for (uint64_t n = 0; n < 6; n++)
		for (unsigned rank = 0; rank < 2; rank++) {
			struct hr_region step = {.kind = HR_REGION_STEP,
						 .start_ns = n * 100 + 60,
						 .dur_ns = 100,
						 .step = n};
			struct hr_region wait = step;

			wait.kind = HR_REGION_INPUT_WAIT;
			wait.dur_ns = 1;
			add(s, step, rank ? RANK_1 : RANK_0, "step", NULL);
			add(s, wait, rank ? RANK_1 : RANK_0, "wait", NULL);
		}
	for (size_t i = 0; i < SAVES; i++)
		add(s,
		    (struct hr_region){.kind = HR_REGION_CHECKPOINT,
				       .start_ns = saves[i].start_ms,
				       .dur_ns = saves[i].dur_ms,
				       .step = HR_REGION_UNKNOWN},
		    saves[i].task, saves[i].name, saves[i].args);
	build_regions(&s->b);
}

static void fill(struct fixture__stream *s)
{
	send_processes(s);
	send_files(s);
	send_events(s);
	send_regions(s);
}

static int setup(void **state)
{
	return fixture__one_job(state, 2, fill);
}

static void expect_all_saves(struct answer r)
{
	static const struct {
		const char *checkpoint, *rank, *step, *name, *path, *source;
		uint64_t dur_ms;
		unsigned files, bytes;
	} rows[] = {
	    {"1", "0", "0", "torch.save", "/out/one.pt", "regions", 26, 1, 10 * KIB},
	    {"2", "0", "1", "torch.save", "/out/pair", "regions", 25, 2, 50 * KIB},
	    {"3", "0", "2", "torch.save", "/out/pair", "regions", 25, 2, 52 * KIB},
	    {"4", "0", "3", "Trainer.save", "/out/step-3", "regions", 30, 1, 40 * KIB},
	    {"4", "1", "3", "Trainer.save", "/out/rank1.pt", "regions", 10, 1, 50 * KIB},
	    {"5", "0", "4", "Trainer.save", "/out/background.pt", "regions", 61, 1, 65 * KIB},
	    {"6", "0", "5", "torch.save", "/out/e1.pt", "regions", 5, 0, 0},
	    {"7", "0", "5", "torch.save", "/out/e2.pt", "regions", 5, 0, 0},
	    {"8", "0", "5", "", "/out/dump.bin", "writes", 1, 1, 2 * MIB},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(answer_next(&r));
		answer_text(&r, "checkpoint", rows[i].checkpoint);
		answer_text(&r, "rank", rows[i].rank);
		answer_text(&r, "step", rows[i].step);
		answer_text(&r, "name", rows[i].name);
		answer_text(&r, "path", rows[i].path);
		answer_text(&r, "source", rows[i].source);
		answer_text(&r, "mount", rows[i].files ? "/out" : "");
		answer_ns(&r, "dur_s", rows[i].dur_ms * MS);
		answer_near(&r, "files", rows[i].files);
		answer_near(&r, "bytes_written", rows[i].bytes);
	}
	assert_false(answer_next(&r));
}

static void a_row_for_each_save(void **state)
{
	expect_all_saves(answer_ask("checkpoints", NULL, NULL, NULL));
}

/* The query divides time into slots of this length. The loop resumes 30 ms after the first save, in the next slot. */
static void the_loop_resumes_in_another_time_slot(void **state)
{
	expect_all_saves(answer_ask("checkpoints", "gap=0.045", NULL, NULL));
}

static void saves_of_one_name(void **state)
{
	struct answer r = answer_ask("checkpoints", "name=Plugin.save", NULL, NULL);

	assert_true(answer_next(&r));
	answer_text(&r, "checkpoint", "1");
	answer_text(&r, "path", "/out/background.pt");
	assert_false(answer_next(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_row_for_each_save),
	    cmocka_unit_test(the_loop_resumes_in_another_time_slot),
	    cmocka_unit_test(saves_of_one_name),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
