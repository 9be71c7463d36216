/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stalls.c - waits of ranks for each other, in jobs whose every unit of time is known
 */
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

#define UNIT  UINT64_C(10000000) /* 10 ms */
#define STEPS 10u
#define SAVES 5u /* rank 0 saves for 40 units before this step */

static struct build *stream;
static bool together, backward, saves_in_step, in_turns;
static uint64_t
    cpu_units; /* CPU time of backward() of rank 1, and one unit of rank 0; 0: unknown */

static uint64_t region(uint32_t rank, uint32_t kind, uint64_t from, uint64_t dur, uint64_t step)
{
	struct hr_region g = {.proc = rank + 1,
			      .tid = rank + 1,
			      .kind = kind,
			      .start_ns = FIX_BOOT_NS + from * UNIT,
			      .dur_ns = dur * UNIT,
			      .step = step,
			      .epoch = HR_REGION_UNKNOWN};
	char cpu[40] = "";

	if (cpu_units > 0)
		snprintf(cpu, sizeof(cpu), "{\"cpu_ns\":%llu}",
			 (unsigned long long)((rank == 0 ? 1 : cpu_units) * UNIT));
	build_region(stream, g,
		     kind == HR_REGION_RANGE
			 ? (struct build_texts){.domain = "torch", .name = "backward", .args = cpu}
			 : (struct build_texts){0});
	return from + dur;
}

/*
 * Rank 1 computes for 20 units before backward(), rank 0 for 5; in_turns: in each second step. It
 * takes 5 units, and rank 0 waits in it. With cpu_units, rank 1 computes so much in backward().
 */
static void compute(uint32_t rank)
{
	uint64_t at = 100;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t before = (rank == 0) != (in_turns && i % 2 == 0) || cpu_units > 0 ? 5 : 20;

		region(rank, HR_REGION_RANGE, at + before, 25 - before, HR_REGION_UNKNOWN);
		at = region(rank, HR_REGION_STEP, at, 25, i);
	}
}

/*
 * Steps last until the next one: 5 units of computing, and 5 in backward(). One step of rank 0
 * ends with a checkpoint of 40 units, for which rank 1 waits in backward() of its next step.
 */
static void save_in_step(uint32_t rank)
{
	uint64_t at = 100;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t saves = i == SAVES && rank == 0 ? 40 : 0;
		uint64_t sync = i == SAVES + 1 && rank == 1 ? 45 : 5;

		region(rank, HR_REGION_RANGE, at + 5, sync, HR_REGION_UNKNOWN);
		if (saves > 0)
			region(rank, HR_REGION_CHECKPOINT, at + 10, saves, HR_REGION_UNKNOWN);
		at = region(rank, HR_REGION_STEP, at, 5 + sync + saves, i);
	}
}

/*
 * Each step has 10 units of computing. Rank 0 waits for 2 units, and rank 1 for 20. If they end
 * their steps together, rank 0 stalls for 18 units; after the checkpoint, rank 1 stalls for 22.
 */
static void train(uint32_t rank)
{
	uint64_t at = 100, wait = rank == 0 ? 2 : 20;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t dur = 30;

		if (i == SAVES && rank == 0) {
			at = region(rank, HR_REGION_CHECKPOINT, at, 40, HR_REGION_UNKNOWN);
			dur = 12;
		} else if (i == SAVES) {
			dur = 52;
		}
		if (!together)
			dur = wait + 10;
		region(rank, HR_REGION_INPUT_WAIT, at, wait, i);
		at = region(rank, HR_REGION_STEP, at, dur, i);
	}
}

static void fill(struct fixture__stream *s)
{
	Headrace__Process rows[2];

	stream = &s->b;
	for (uint32_t i = 0; i < 2; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)i + 1,
					      .start_ns = FIX_BOOT_NS,
					      .end_ns = FIX_BOOT_NS + 500 * UNIT,
					      .rank_plus1 = i + 1};
	build_processes(stream, rows, 2);
	for (uint32_t rank = 0; rank < 2; rank++)
		(saves_in_step ? save_in_step : backward ? compute : train)(rank);
	build_regions(stream);
}

static int setup_together(void **state)
{
	together = true;
	return fixture__one_job(state, 2, fill);
}

static int setup_backward(void **state)
{
	backward = true;
	return fixture__one_job(state, 2, fill);
}

static int setup_cpu(void **state)
{
	backward = true;
	cpu_units = 16;
	return fixture__one_job(state, 2, fill);
}

static int teardown_cpu(void **state)
{
	cpu_units = 0;
	return fixture_teardown(state);
}

static int setup_turns(void **state)
{
	backward = in_turns = true;
	return fixture__one_job(state, 2, fill);
}

static int setup_save(void **state)
{
	saves_in_step = true;
	return fixture__one_job(state, 2, fill);
}

static int setup_apart(void **state)
{
	together = false;
	return fixture__one_job(state, 2, fill);
}

static const char *const parts_of_steps =
    "SELECT rank, part, sum(ns) // 10000000 AS units FROM parts WHERE step IS NOT NULL GROUP BY "
    "ALL ORDER BY ALL";

static void a_checkpoint_stalls_the_next_step(void **state)
{
	fixture_expect(&fix,
		       "SELECT rank, step, part, ns // 10000000 AS units FROM parts WHERE part IN "
		       "('stall', 'checkpoint') ORDER BY ALL",
		       "0,5,checkpoint,40\n1,6,stall,40\n");
	fixture_expect(&fix, "SELECT cause, rank, lost_ns // 10000000 AS units FROM findings",
		       "checkpoint,0,40\n");
}

static void faster_ranks_wait(void **state)
{
	fixture_expect(&fix, parts_of_steps,
		       "0,compute,100\n0,stall,162\n0,wait_unknown,20\n"
		       "1,compute,100\n1,stall,22\n1,wait_unknown,200\n");
	fixture_expect(&fix, "SELECT rank, sum(ns) FROM parts GROUP BY rank ORDER BY rank",
		       "0,5000000000\n1,5000000000\n");
	fixture_expect(&fix,
		       "SELECT rank, step, ns // 10000000 AS units FROM parts WHERE part = 'stall' "
		       "AND step BETWEEN 4 AND 6 ORDER BY step",
		       "0,4,18\n1,5,22\n0,6,18\n");
}

/* The stalls belong to the rank for which the others waited, and to what it did meanwhile. */
static void losses_belong_to_the_slow_rank(void **state)
{
	double caused = 22.0 / 42, unit = (double)UNIT / 1e9;
	struct answer r = answer_ask("diagnose", NULL, NULL, NULL);

	assert_true(answer_next(&r));
	answer_text(&r, "cause", "wait_unknown");
	answer_text(&r, "rank", "1");
	assert_float_equal(answer_number(&r, "lost_s"), (220 + 162 + 2 * caused) / 2 * unit, 1e-6);
	assert_true(answer_next(&r));
	answer_text(&r, "cause", "checkpoint");
	answer_text(&r, "rank", "0");
	assert_float_equal(answer_number(&r, "lost_s"), (40 + 40 * caused) / 2 * unit, 1e-6);
	assert_false(answer_next(&r));

	r = answer_ask("steps", NULL, NULL, NULL);
	assert_true(answer_next(&r));
	answer_ns(&r, "stall_s", 162 * UNIT);
	answer_ns(&r, "compute_s", 100 * UNIT);
	while (answer_next(&r))
		;
}

static void independent_ranks_do_not_wait(void **state)
{
	fixture_expect(&fix, parts_of_steps,
		       "0,compute,100\n0,wait_unknown,20\n1,compute,100\n1,wait_unknown,200\n");
}

static void a_rank_computes_longer(void **state)
{
	struct answer r = answer_ask("diagnose", NULL, NULL, NULL);

	fixture_expect(&fix, parts_of_steps,
		       "0,backward,50\n0,compute,50\n0,stall,150\n"
		       "1,backward,50\n1,compute,200\n");
	assert_true(answer_next(&r));
	answer_text(&r, "cause", "slow_rank");
	answer_text(&r, "rank", "1");
	answer_ns(&r, "lost_s", 75 * UNIT);
	while (answer_next(&r))
		;
}

static void a_rank_computes_longer_in_backward(void **state)
{
	fixture_expect(&fix, parts_of_steps,
		       "0,backward,50\n0,compute,50\n0,stall,150\n"
		       "1,backward,200\n1,compute,50\n");
	fixture_expect(
	    &fix, "SELECT cause, rank, lost_ns // 10000000 AS units FROM findings WHERE number = 1",
	    "slow_rank,1,75\n");
}

static void ranks_compute_longer_in_turns(void **state)
{
	struct answer r = answer_ask("diagnose", NULL, NULL, NULL);

	fixture_expect(&fix, parts_of_steps,
		       "0,backward,50\n0,compute,125\n0,stall,75\n"
		       "1,backward,50\n1,compute,125\n1,stall,75\n");
	assert_true(answer_next(&r));
	answer_text(&r, "cause", "ranks_in_turns");
	answer_ns(&r, "lost_s", 75 * UNIT);
	while (answer_next(&r))
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(faster_ranks_wait, setup_together, fixture_teardown),
	    cmocka_unit_test_setup_teardown(losses_belong_to_the_slow_rank, setup_together,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(independent_ranks_do_not_wait, setup_apart,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(a_rank_computes_longer, setup_backward,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(a_rank_computes_longer_in_backward, setup_cpu,
					    teardown_cpu),
	    cmocka_unit_test_setup_teardown(ranks_compute_longer_in_turns, setup_turns,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(a_checkpoint_stalls_the_next_step, setup_save,
					    fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
