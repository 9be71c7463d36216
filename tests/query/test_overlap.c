/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_overlap.c - regions of one thread, or of one rank, that overlap and do not nest: spans that a program starts and finishes
 */
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

#define NS(ms)	   ((ms)*UINT64_C(1000000))
#define WAITS	   9u
#define COVERED_MS 95u /* of 100 ms: 0 to 15, 10 to 25, ... 80 to 95 */
#define KIB	   1024

/* Process 1 is rank 0, 2 and 3 have none. */
static const struct {
	uint64_t proc, start_ms, dur_ms;
} saves[] = {
    {1, 200, 15}, {1, 210, 15}, {1, 212, 2}, {1, 220, 15}, {2, 300, 50}, {3, 301, 50},
};
static const struct {
	uint64_t proc, start_ms;
	int64_t bytes;
} writes[] = {{1, 205, 1 * KIB}, {1, 213, 2 * KIB},  {1, 230, 4 * KIB},
	      {2, 310, 8 * KIB}, {3, 320, 16 * KIB}, {2, 340, 32 * KIB}};
#define SAVES  (sizeof(saves) / sizeof(saves[0]))
#define WRITES (sizeof(writes) / sizeof(writes[0]))

static void send_processes(struct fixture__stream *s)
{
	Headrace__Process rows[3];

	for (unsigned i = 0; i < 3; i++)
		rows[i] =
		    (Headrace__Process){.proc = i + 1, .pid = (int32_t)i + 1, .rank_plus1 = i == 0};
	build_processes(&s->b, rows, 3);
}

static void add(struct fixture__stream *s, uint64_t proc, uint32_t kind, uint64_t start_ms,
		uint64_t dur_ms)
{
	build_region(&s->b,
		     (struct hr_region){.proc = proc,
					.tid = (uint32_t)proc,
					.kind = kind,
					.start_ns = FIX_BOOT_NS + NS(start_ms),
					.dur_ns = NS(dur_ms),
					.epoch = HR_REGION_UNKNOWN},
		     (struct build_texts){0});
}

static void send_regions(struct fixture__stream *s)
{
	add(s, 1, HR_REGION_EPOCH, 0, 100);
	add(s, 1, HR_REGION_STEP, 0, 100);
	for (unsigned i = 0; i < WAITS; i++)
		add(s, 1, HR_REGION_INPUT_WAIT, i * UINT64_C(10), 15);
	for (size_t i = 0; i < SAVES; i++)
		add(s, saves[i].proc, HR_REGION_CHECKPOINT, saves[i].start_ms, saves[i].dur_ms);
	build_regions(&s->b);
}

static void send_events(struct fixture__stream *s)
{
	struct hr_event events[WRITES];
	struct hr_task tasks[] = {{1, 1}, {2, 2}, {3, 3}};

	for (size_t i = 0; i < WRITES; i++)
		events[i] = (struct hr_event){.start_ns = FIX_BOOT_NS + NS(writes[i].start_ms),
					      .dur_ns = NS(1),
					      .task = (uint32_t)writes[i].proc - 1,
					      .op = HR_OP_write,
					      .file = 1,
					      .fd = 3,
					      .offset = HR_OFFSET_NONE,
					      .asked = HR_ASKED_NONE,
					      .ret = writes[i].bytes};
	build_events(&s->b, events, WRITES, tasks, 3);
}

static void fill(struct fixture__stream *s)
{
	send_processes(s);
	send_events(s);
	send_regions(s);
}

static int setup(void **state)
{
	return fixture__one_job(state, 1, fill);
}

static void each_moment_counts_once(void **state)
{
	static const struct {
		char *name;
		const char *column;
	} answers[] = {
	    {"steps", "input_wait_s"}, {"epochs", "input_wait_s"}, {"input-wait", "wait_s"}};
	struct answer r;

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		r = answer_ask(answers[i].name, NULL, NULL, NULL);
		assert_true(answer_next(&r));
		answer_ns(&r, answers[i].column, NS(COVERED_MS));
		if (strcmp(answers[i].name, "input-wait") == 0)
			answer_near(&r, "waits", WAITS);
		assert_false(answer_next(&r));
	}
	r = answer_ask("summary", NULL, NULL, NULL);
	while (answer_next(&r))
		if (strcmp(answer_cell(&r, "what"), "input_wait") == 0)
			answer_ns(&r, "time_s", NS(COVERED_MS));
}

/* The one within another is none of its own. */
static void checkpoints_side_by_side(void **state)
{
	static const struct {
		const char *rank;
		uint64_t dur_ms;
		double bytes;
	} rows[] = {{"", 50, 40 * KIB},
		    {"0", 15, 1 * KIB},
		    {"", 50, 16 * KIB},
		    {"0", 15, 2 * KIB},
		    {"0", 15, 4 * KIB}};
	struct answer r = answer_ask("checkpoints", NULL, NULL, NULL);
	bool seen[5] = {false};
	unsigned n = 0;

	for (; answer_next(&r); n++) {
		unsigned i = 0;

		while (i < 5 && (seen[i] || strcmp(rows[i].rank, answer_cell(&r, "rank")) != 0 ||
				 rows[i].bytes != answer_number(&r, "bytes_written")))
			i++;
		assert_in_range(i, 0, 4);
		seen[i] = true;
		answer_ns(&r, "dur_s", NS(rows[i].dur_ms));
	}
	assert_int_equal(n, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_moment_counts_once),
	    cmocka_unit_test(checkpoints_side_by_side),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
