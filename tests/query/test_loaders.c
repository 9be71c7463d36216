/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loaders.c - input-wait by loader: a rank that trains on one loader and validates on another, and waits that got no batch
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

#define MS UINT64_C(1000000)

/* Ranks 0, 1 and 2. MIXES uses another loader in the middle of an epoch. */
enum { TRAINS = 1, OTHER, MIXES, PROCESSES = MIXES };

static struct build *stream;

static void region(uint64_t proc, uint32_t kind, uint64_t at, uint64_t dur, const char *args)
{
	struct hr_region g = {.proc = proc,
			      .tid = (uint32_t)proc,
			      .kind = kind,
			      .start_ns = FIX_BOOT_NS + at * MS,
			      .dur_ns = dur * MS,
			      .step = HR_REGION_UNKNOWN,
			      .epoch = HR_REGION_UNKNOWN};

	build_region(stream, g, (struct build_texts){.args = args});
}

static void wait_of(uint64_t proc, unsigned loader, unsigned workers, unsigned batch, uint64_t at,
		    uint64_t dur, bool end)
{
	char args[96];

	snprintf(args, sizeof(args), "{\"loader\":%u,\"workers\":%u,\"batch\":%u%s}", loader,
		 workers, batch, end ? ",\"end\":true" : "");
	region(proc, HR_REGION_INPUT_WAIT, at, dur, args);
}

static void wait_for(unsigned loader, unsigned workers, unsigned batch, uint64_t at, uint64_t dur,
		     bool end)
{
	wait_of(TRAINS, loader, workers, batch, at, dur, end);
}

/* A pass of loader 0 over 4 batches, which takes 80 ms and its last wait. */
static void pass(uint64_t at, uint64_t end_dur)
{
	for (unsigned i = 0; i < 4; i++)
		wait_for(0, 2, i, at + 20ul * i, 10, false);
	wait_for(0, 2, 4, at + 80, end_dur, true);
}

/* Four batches of loader 0, a pass of loader 1 that takes 101 ms, and four more of loader 0. */
static void mix(void)
{
	for (unsigned i = 0; i < 8; i++) {
		uint64_t at = 10ul * i + (i < 4 ? 0 : 101);

		wait_of(MIXES, 0, 1, i, at, 9, false);
	}
	wait_of(MIXES, 0, 1, 8, 181, 1, true);
	for (unsigned i = 0; i < 10; i++)
		wait_of(MIXES, 1, 1, i, 40 + 10ul * i, 9, false);
	wait_of(MIXES, 1, 1, 10, 140, 1, true);
}

static void send_regions(struct fixture__stream *s)
{
	stream = &s->b;
	pass(0, 5);
	for (unsigned i = 0; i < 2; i++)
		wait_for(1, 1, i, 100 + 10ul * i, 4, false);
	wait_for(1, 1, 2, 120, 2, true);
	pass(200, 50);
	/* What programs say themselves may be anything. */
	region(OTHER, HR_REGION_INPUT_WAIT, 0, 10, "batch 1 {");
	region(OTHER, HR_REGION_INPUT_WAIT, 20, 10, "{\"loader\":\"first\",\"end\":7}");
	mix();
	build_regions(stream);
}

static void fill(struct fixture__stream *s)
{
	Headrace__Process rows[PROCESSES];

	for (unsigned i = 0; i < PROCESSES; i++)
		rows[i] =
		    (Headrace__Process){.proc = i + 1, .pid = (int32_t)i + 1, .rank_plus1 = i + 1};
	build_processes(&s->b, rows, PROCESSES);
	send_regions(s);
}

static int setup(void **state)
{
	return fixture__one_job(state, 3, fill);
}

static void is_row(const struct answer *r, const char *rank, const char *loader, double waits,
		   uint64_t wait_ms, uint64_t loop_ms)
{
	answer_text(r, "rank", rank);
	answer_text(r, "loader", loader);
	answer_near(r, "waits", waits);
	answer_ns(r, "wait_s", wait_ms * MS);
	answer_ns(r, "loop_s", loop_ms * MS);
}

static void each_loader_has_its_row(void **state)
{
	struct answer r = answer_ask("input-wait", "by=loader", NULL, NULL);

	/* The pause between its passes, in which the other loader was asked, is not its time. */
	assert_true(answer_next(&r));
	is_row(&r, "0", "0", 8, 40 + 5 + 40 + 50, 85 + 130);
	answer_ns(&r, "median_s", 10 * MS);
	answer_ns(&r, "max_s", 10 * MS);
	answer_near(&r, "workers", 2);
	answer_ns(&r, "end_s", (5 + 50) * MS);
	answer_ns(&r, "unknown_s", 80 * MS);

	assert_true(answer_next(&r));
	is_row(&r, "0", "1", 2, 4 + 4 + 2, 22);
	answer_ns(&r, "max_s", 4 * MS);
	answer_near(&r, "workers", 1);

	assert_true(answer_next(&r));
	is_row(&r, "1", "", 2, 20, 30);

	/* While loader 1 was in use, loader 0 was not. */
	assert_true(answer_next(&r));
	is_row(&r, "2", "0", 8, 73, 182 - 101);
	assert_true(answer_next(&r));
	is_row(&r, "2", "1", 10, 91, 101);
	assert_false(answer_next(&r));
}

static void a_rank_has_both(void **state)
{
	struct answer r = answer_ask("input-wait", "rank=0", NULL, NULL);

	assert_true(answer_next(&r));
	is_row(&r, "0", "", 10, 145, 215 + 22);
	answer_ns(&r, "median_s", 10 * MS);
	answer_ns(&r, "p95_s", 10 * MS);
	answer_ns(&r, "max_s", 10 * MS);
	answer_near(&r, "workers", 2);
	assert_false(answer_next(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_loader_has_its_row),
	    cmocka_unit_test(a_rank_has_both),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
