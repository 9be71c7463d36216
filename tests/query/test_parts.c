/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parts.c - the tables parts and waits, and what the named queries make of it, of a job whose every millisecond is known
 */
#include <stdlib.h>
#include <string.h>

#include "common/event.h"
#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

#define MS UINT64_C(1000000)

/*
 * One epoch with two workers, which takes 300 ms, and a validation without workers:
 *
 *   0 to 100     starts           100 to 110  makes its workers
 *   110 to 200   waits for batch 0: worker 0 makes it from 150 to 190, and reads from 160 to 175
 *   250 to 260   optimizer        (step 0 ends)
 *   260 to 300   waits for batch 1: worker 1 makes it from 200 to 280
 *   310 to 325   reads            340 to 350  optimizer (step 1 ends)
 *   350 to 400   checkpoint, and reads from 360 to 370
 *   400 to 420   waits: there is no batch
 *   500 to 520   validation: makes a batch itself until 510, computes, and waits until 521
 *   600          ends
 */
enum { TRAINS = 1, WORKER_0, WORKER_1, PROCESSES = WORKER_1 };

static struct build *stream;

static void region(uint64_t proc, uint32_t kind, uint64_t from, uint64_t to, const char *args)
{
	struct hr_region g = {.proc = proc,
			      .tid = (uint32_t)proc,
			      .kind = kind,
			      .start_ns = FIX_BOOT_NS + from * MS,
			      .dur_ns = (to - from) * MS,
			      .step = HR_REGION_UNKNOWN,
			      .epoch = HR_REGION_UNKNOWN};

	if (kind == HR_REGION_STEP)
		g.step = from > 200;
	if (kind == HR_REGION_EPOCH)
		g.epoch = 0;
	build_region(stream, g,
		     (struct build_texts){.args = args,
					  .name = kind == HR_REGION_RANGE && args == NULL
						      ? "DataLoader.__iter__"
						      : NULL});
}

static bool long_step; /* there is a step from 490 to 530, which contains the validation */
static bool own_marks; /* the program marks waits itself, two of them around those of the loader */

static void send_regions(struct fixture__stream *s)
{
	/* the shim's kind of a wait within another one */
	uint32_t inner = own_marks ? HR_REGION_RANGE : HR_REGION_INPUT_WAIT;

	stream = &s->b;
	if (own_marks) {
		region(TRAINS, HR_REGION_INPUT_WAIT, 110, 210, "{\"own\":true,\"cpu_ns\":1}");
		region(TRAINS, HR_REGION_INPUT_WAIT, 260, 300, "{\"own\":true,\"cpu_ns\":1}");
		region(TRAINS, HR_REGION_INPUT_WAIT, 430, 450,
		       "{\"own\":true,\"cpu_ns\":5000000,\"sleep_ns\":12000000}");
		region(TRAINS, HR_REGION_INPUT_WAIT, 460, 461, NULL);
	}
	region(TRAINS, HR_REGION_RANGE, 100, 110, NULL);
	region(TRAINS, HR_REGION_EPOCH, 100, 420, NULL);
	region(TRAINS, HR_REGION_STEP, 110, 260, NULL);
	region(TRAINS, HR_REGION_STEP, 260, 350, NULL);
	if (long_step)
		region(TRAINS, HR_REGION_STEP, 490, 530, NULL);
	region(TRAINS, inner, 110, 200, "{\"loader\":0,\"workers\":2,\"batch\":0}");
	region(TRAINS, HR_REGION_OPTIMIZER, 250, 260, NULL);
	/* members have no order */
	region(TRAINS, inner, 260, 300, "{\"workers\":2,\"batch\":1,\"loader\":0}");
	region(TRAINS, HR_REGION_OPTIMIZER, 340, 350, NULL);
	region(TRAINS, HR_REGION_CHECKPOINT, 350, 400, NULL);
	region(TRAINS, HR_REGION_INPUT_WAIT, 400, 420,
	       "{\"loader\":0,\"workers\":2,\"batch\":2,\"end\":true}");
	region(TRAINS, HR_REGION_INPUT_WAIT, 500, 510,
	       "{\"loader\":1,\"workers\":0,\"batch\":0,\"cpu_ns\":7000000}");
	region(TRAINS, HR_REGION_INPUT_WAIT, 520, 521,
	       "{\"loader\":1,\"workers\":0,\"batch\":1,\"end\":true}");
	region(
	    WORKER_0, HR_REGION_FETCH, 150, 190,
	    "{\"loader\":0,\"worker\":0,\"batch\":0,\"cpu_ns\":10000000,\"core_wait_ns\":5000000}");
	region(WORKER_1, HR_REGION_FETCH, 200, 280,
	       "{\"loader\":0,\"worker\":1,\"batch\":1,\"cpu_ns\":80000000}");
	build_regions(stream);
}

static void send_processes(struct fixture__stream *s)
{
	Headrace__Process rows[PROCESSES];

	for (unsigned i = 0; i < PROCESSES; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)i + 1,
					      .start_ns = FIX_BOOT_NS,
					      .end_ns = FIX_BOOT_NS + 600 * MS,
					      .parent_proc = i > 0 ? TRAINS : 0,
					      .rank_plus1 = 1,
					      .worker_plus1 = i};
	build_processes(&s->b, rows, PROCESSES);
}

static void send_events(struct fixture__stream *s)
{
	static const struct {
		uint32_t task;
		uint64_t from, to;
	} reads[] = {{1, 160, 175}, {0, 310, 325}, {0, 360, 370}};
	static const struct hr_task tasks[] = {{TRAINS, TRAINS}, {WORKER_0, WORKER_0}};
	struct hr_event events[3];

	for (unsigned i = 0; i < 3; i++)
		events[i] = (struct hr_event){.start_ns = FIX_BOOT_NS + reads[i].from * MS,
					      .dur_ns = (reads[i].to - reads[i].from) * MS,
					      .task = reads[i].task,
					      .op = HR_OP_read,
					      .file = 1,
					      .fd = 3,
					      .offset = HR_OFFSET_NONE,
					      .asked = HR_ASKED_NONE,
					      .ret = 1};
	build_events(&s->b, events, 3, tasks, 2);
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

static int setup_long_step(void **state)
{
	long_step = true;
	return fixture__one_job(state, 1, fill);
}

/* The waits in validation are no waits of the training. */
static void a_step_with_a_validation(void **state)
{
	struct answer r = answer_ask("steps", "by=step", NULL, NULL);

	for (unsigned i = 0; i < 3; i++)
		assert_true(answer_next(&r));
	answer_ns(&r, "dur_s", 40 * MS);
	answer_ns(&r, "input_wait_s", 0);
	answer_ns(&r, "validation_s", 21 * MS);
	answer_ns(&r, "compute_s", 19 * MS);
	assert_false(answer_next(&r));
	long_step = false;
}

static int setup_own_marks(void **state)
{
	own_marks = true;
	return fixture__one_job(state, 1, fill);
}

static void each_moment_has_one_part(void **state)
{
	fixture_expect(
	    &fix,
	    "SELECT phase, part, sum(ns) // 1000000 AS ms FROM parts GROUP BY ALL ORDER BY ALL",
	    "between,other,80\n"
	    "end,other,79\n"
	    "start,other,100\n"
	    "train,checkpoint,50\n"
	    "train,compute,75\n"
	    "train,create_workers,10\n"
	    "train,optimizer,20\n"
	    "train,own_read,15\n"
	    "train,wait_asleep,10\n"
	    "train,wait_core,5\n"
	    "train,wait_cpu,30\n"
	    "train,wait_end,20\n"
	    "train,wait_handover,30\n"
	    "train,wait_read,15\n"
	    "train,wait_worker_start,40\n"
	    "validation,compute,10\n"
	    "validation,wait_asleep,3\n"
	    "validation,wait_cpu,7\n"
	    "validation,wait_end,1\n");
	fixture_expect(&fix, "SELECT sum(ns) FROM parts", "600000000\n");
	fixture_expect(&fix,
		       "SELECT epoch, step, loop_loader, sum(ns) // 1000000 AS ms FROM parts "
		       "GROUP BY ALL ORDER BY ALL NULLS LAST",
		       "0,0,0,150\n0,1,0,90\n0,,0,80\n,,1,21\n,,,259\n");
}

/*
 * The loader's waits explain those around them, whose rest is of unknown cause. In a wait without
 * them, the thread makes its batch itself.
 */
static void own_marks_are_explained(void **state)
{
	fixture_expect(
	    &fix,
	    "SELECT phase, part, sum(ns) // 1000000 AS ms FROM parts WHERE part LIKE 'wait%' OR "
	    "part = 'compute' GROUP BY ALL ORDER BY ALL",
	    "train,compute,65\n"
	    "train,wait_asleep,10\n"
	    "train,wait_core,5\n"
	    "train,wait_cpu,30\n"
	    "train,wait_end,20\n"
	    "train,wait_handover,30\n"
	    "train,wait_read,15\n"
	    "train,wait_unknown,10\n"
	    "train,wait_worker_start,40\n"
	    "validation,compute,20\n"
	    "validation,wait_asleep,6\n"
	    "validation,wait_cpu,12\n"
	    "validation,wait_end,1\n"
	    "validation,wait_sleep,12\n"
	    "validation,wait_unknown,1\n");
	fixture_expect(&fix, "SELECT sum(ns) FROM parts", "600000000\n");
	fixture_expect(
	    &fix,
	    "SELECT (start_ns - min(start_ns) OVER ()) // 1000000 AS start_ms, dur_ns // "
	    "1000000 AS dur_ms, maker, part, ns // 1000000 AS ms FROM waits "
	    "WHERE batch IS NULL ORDER BY ALL",
	    "0,10,1,wait_unknown,10\n"
	    "200,20,,wait_end,20\n"
	    "230,20,1,wait_asleep,3\n"
	    "230,20,1,wait_cpu,5\n"
	    "230,20,1,wait_sleep,12\n"
	    "260,1,1,wait_unknown,1\n"
	    "320,1,,wait_end,1\n");
}

static void waits_know_what_their_worker_did(void **state)
{
	fixture_expect(
	    &fix,
	    "SELECT batch, (start_ns - min(start_ns) OVER ()) // 1000000 AS start_ms, dur_ns // "
	    "1000000 AS dur_ms, (piece_ns - start_ns) // 1000000 AS piece_ms, piece_dur_ns // "
	    "1000000 AS piece_dur_ms, maker, maker_tid, part, ns // 1000000 AS ms FROM waits "
	    "ORDER BY start_ns, piece_ns, part",
	    "0,0,90,0,40,,,wait_worker_start,40\n"
	    "0,0,90,40,40,2,2,wait_asleep,10\n"
	    "0,0,90,40,40,2,2,wait_core,5\n"
	    "0,0,90,40,40,2,2,wait_cpu,10\n"
	    "0,0,90,40,40,2,2,wait_read,15\n"
	    "0,0,90,80,10,,,wait_handover,10\n"
	    "1,150,40,0,20,3,3,wait_cpu,20\n"
	    "1,150,40,20,20,,,wait_handover,20\n"
	    ",290,20,0,20,,,wait_end,20\n"
	    "0,390,10,0,10,1,1,wait_asleep,3\n"
	    "0,390,10,0,10,1,1,wait_cpu,7\n"
	    ",410,1,0,1,,,wait_end,1\n");
	fixture_expect(&fix,
		       "SELECT part, sum(ns) FROM waits GROUP BY part EXCEPT SELECT part, sum(ns) "
		       "FROM parts GROUP BY part",
		       "");
}

/* Of the longest wait, and of all: only the operations of the worker that made the batch count. */
static void waits_are_blamed(void **state)
{
	struct answer r = answer_ask("blame", "longer=0.08", NULL, NULL);
	unsigned n = 0;

	assert_true(answer_next(&r));
	answer_text(&r, "what", "(the worker started)");
	answer_ns(&r, "waited_s", 40 * MS);
	answer_near(&r, "percent", 100.0 * 40 / 90);
	assert_true(answer_next(&r));
	answer_ns(&r, "waited_s", 15 * MS);
	answer_near(&r, "ops", 1);
	answer_ns(&r, "op_s", 15 * MS);
	for (n = 0; answer_next(&r); n++)
		assert_int_equal(answer_cell(&r, "what")[0], '(');
	assert_int_equal(n, 4);

	r = answer_ask("blame", "longer=0.001", "by=worker", NULL);
	assert_true(answer_next(&r));
	answer_text(&r, "what", "(the worker started)");
	assert_true(answer_next(&r));
	answer_text(&r, "what", "rank 0 worker 0");
	answer_ns(&r, "waited_s", 40 * MS);
	answer_near(&r, "ops", 1);
	assert_true(answer_next(&r));
	answer_text(&r, "what", "(the batch was on its way)");
	answer_ns(&r, "waited_s", 30 * MS);
	answer_near(&r, "waits", 2);
	assert_true(answer_next(&r));
	answer_text(&r, "what", "(no batch was left)");
	assert_true(answer_next(&r));
	answer_text(&r, "what", "rank 0 worker 1");
	answer_ns(&r, "waited_s", 20 * MS);
	answer_near(&r, "ops", 0);
	assert_true(answer_next(&r));
	answer_text(&r, "what", "rank 0");
	answer_ns(&r, "waited_s", 10 * MS);
	assert_false(answer_next(&r));

	r = answer_ask("blame", "longer=0.08", "by=wait", NULL);
	assert_true(answer_next(&r));
	answer_text(&r, "what", "rank 0 at 0.110000 s");
	answer_ns(&r, "waited_s", 90 * MS);
	assert_false(answer_next(&r));
}

static void queries_have_the_same_numbers(void **state)
{
	struct answer r = answer_ask("input-wait", "by=loader", NULL, NULL);

	assert_true(answer_next(&r));
	answer_text(&r, "loader", "0");
	answer_ns(&r, "wait_s", 150 * MS);
	answer_ns(&r, "loop_s", 320 * MS);
	answer_text(&r, "mostly", "worker_start");
	answer_near(&r, "waits", 2);
	answer_near(&r, "workers", 2);
	answer_ns(&r, "read_s", 15 * MS);
	answer_ns(&r, "cpu_s", 30 * MS);
	answer_ns(&r, "core_s", 5 * MS);
	answer_ns(&r, "asleep_s", 10 * MS);
	answer_ns(&r, "worker_start_s", 40 * MS);
	answer_ns(&r, "handover_s", 30 * MS);
	answer_ns(&r, "end_s", 20 * MS);
	assert_true(answer_next(&r));
	answer_text(&r, "loader", "1");
	answer_ns(&r, "wait_s", 11 * MS);
	answer_ns(&r, "loop_s", 21 * MS);
	assert_false(answer_next(&r));

	r = answer_ask("steps", NULL, NULL, NULL);
	assert_true(answer_next(&r));
	answer_ns(&r, "dur_s", 240 * MS);
	answer_ns(&r, "input_wait_s", 130 * MS);
	answer_ns(&r, "optimizer_s", 20 * MS);
	answer_ns(&r, "own_io_s", 15 * MS);
	answer_ns(&r, "compute_s", 75 * MS);
	answer_ns(&r, "unoverlapped_io_s", 30 * MS);
	assert_false(answer_next(&r));

	r = answer_ask("epochs", NULL, NULL, NULL);
	assert_true(answer_next(&r));
	answer_near(&r, "steps", 2);
	answer_ns(&r, "input_wait_s", 150 * MS);
	answer_ns(&r, "unoverlapped_io_s", 30 * MS);
	assert_false(answer_next(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_moment_has_one_part),
	    cmocka_unit_test(waits_know_what_their_worker_did),
	    cmocka_unit_test(waits_are_blamed),
	    cmocka_unit_test(queries_have_the_same_numbers),
	};

	const struct CMUnitTest own[] = {cmocka_unit_test(own_marks_are_explained)};
	const struct CMUnitTest validates[] = {cmocka_unit_test(a_step_with_a_validation)};
	int failed = cmocka_run_group_tests(tests, setup, fixture_teardown);

	failed += cmocka_run_group_tests(validates, setup_long_step, fixture_teardown);
	return failed + cmocka_run_group_tests(own, setup_own_marks, fixture_teardown);
}
