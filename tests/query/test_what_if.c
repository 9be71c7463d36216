/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_what_if.c - replays of a job whose batches all take 10 ms, against what other settings make of it by hand
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

#define MS	UINT64_C(1000000)
#define BATCHES 20u

/*
 * One worker takes 10 ms in each fetch, for `fetch_cpu` of which it computes; the training
 * thread takes 5 ms for a batch, and does not compute:
 *
 *   0 to 100     starts           100 to 110  makes its worker
 *   110 to 310   the worker makes 20 batches, and the loop waits for each
 *   315 to 320   waits: there is no batch, the worker ends
 *   320 to 360   checkpoint       400         ends
 */
enum { TRAINS = 1, WORKER };

static struct build *stream;
static unsigned fetch_cpu, main_cpu, others_cpu; /* ms of a fetch, and of the time between waits */
static bool hidden;   /* an accelerator works until the end of each wait */
static unsigned busy; /* percent of the time in which an accelerator works; 0: not known */

static void region(uint64_t proc, uint32_t kind, uint64_t from, uint64_t to, const char *args)
{
	struct build_texts texts = {.args = args};

	if (kind == HR_REGION_RANGE)
		texts.name = "DataLoader.__iter__";
	if (kind == HR_REGION_MARK) {
		texts.domain = "headrace";
		texts.name = "accelerator";
	}
	build_region(stream,
		     (struct hr_region){.proc = proc,
					.tid = (uint32_t)proc,
					.kind = kind,
					.start_ns = FIX_BOOT_NS + from * MS,
					.dur_ns = (to - from) * MS,
					.step = HR_REGION_UNKNOWN,
					.epoch = HR_REGION_UNKNOWN},
		     texts);
}

static void send_regions(struct fixture__stream *s)
{
	char args[200];

	stream = &s->b;
	region(TRAINS, HR_REGION_RANGE, 100, 110, NULL);
	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t made = 110 + 10 * i, from = i > 0 ? made + 5 : made;

		snprintf(args, sizeof(args),
			 "{\"loader\":0,\"workers\":1,\"prefetch\":2,\"batch\":%u,\"cpu_ns\":0,"
			 "\"before_ns\":5000000,\"before_cpu_ns\":%u,\"others_cpu_ns\":%u%s}",
			 i, main_cpu * (unsigned)MS, others_cpu * (unsigned)MS,
			 hidden ? ",\"hidden\":true" : "");
		region(TRAINS, HR_REGION_INPUT_WAIT, from, made + 10, args);
		region(TRAINS, HR_REGION_OPTIMIZER, made + 14, made + 15, NULL);
		snprintf(args, sizeof(args),
			 "{\"loader\":0,\"worker\":0,\"batch\":%u,\"cpu_ns\":%u}", i,
			 fetch_cpu * (unsigned)MS);
		region(WORKER, HR_REGION_FETCH, made, made + 10, args);
	}
	region(TRAINS, HR_REGION_INPUT_WAIT, 315, 320,
	       "{\"loader\":0,\"workers\":1,\"prefetch\":2,\"batch\":20,\"end\":true}");
	region(TRAINS, HR_REGION_CHECKPOINT, 320, 360, NULL);
	if (busy > 0) {
		snprintf(args, sizeof(args), "{\"busy_percent\":%u,\"since_ns\":200000000}", busy);
		region(TRAINS, HR_REGION_MARK, 310, 310, args);
	}
	build_regions(stream);
}

static void fill(struct fixture__stream *s)
{
	Headrace__Process rows[2];

	for (unsigned i = 0; i < 2; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)i + 1,
					      .start_ns = FIX_BOOT_NS,
					      .end_ns = FIX_BOOT_NS + 400 * MS,
					      .parent_proc = i > 0 ? TRAINS : 0,
					      .worker_plus1 = i};
	build_processes(&s->b, rows, 2);
	send_regions(s);
}

static int setup_computing(void **state)
{
	fetch_cpu = 10;
	return fixture__one_job(state, 1, fill);
}

static int setup_parallel(void **state)
{
	main_cpu = others_cpu = 5;
	return setup_computing(state);
}

static int setup_busy(void **state)
{
	busy = 80;
	return setup_computing(state);
}

static int setup_hidden(void **state)
{
	hidden = true;
	busy = 0;
	return setup_computing(state);
}

static int setup(void **state)
{
	fetch_cpu = 0;
	return fixture__one_job(state, 1, fill);
}

static void replays_the_recorded_settings(void **state)
{
	struct answer r = answer_ask("what-if", NULL, NULL, NULL);

	assert_true(answer_next(&r));
	answer_near(&r, "workers", 1);
	answer_near(&r, "prefetch", 2);
	answer_near(&r, "persistent", 0);
	answer_ns(&r, "recorded_s", 220 * MS);
	answer_ns(&r, "low_s", 220 * MS);
	answer_ns(&r, "high_s", 220 * MS);
	answer_ns(&r, "wall_s", 400 * MS);
	answer_ns(&r, "wall_low_s", 400 * MS);
	assert_false(answer_next(&r));
}

/*
 * Two workers take 20 ms to make, and deliver two batches each 10 ms: the loop gets its first batch after 30 ms and is busy from
 * then on, for 100 ms. Their range is 5 % of that and 3 % of the recorded time: nothing here is I/O, which more workers may slow down.
 * At most, workers take twice as long to start (20 ms) and to end (5 ms).
 */
static void replays_more_workers(void **state)
{
	struct answer r = answer_ask("what-if", "workers=2", "checkpoint=async", NULL);
	double low = 135 * 0.95 - 0.03 * 220, high = 160 * 1.05 + 0.03 * 220;

	assert_true(answer_next(&r));
	answer_near(&r, "workers", 2);
	answer_near(&r, "low_s", low / 1e3);
	answer_near(&r, "predicted_s", 135 / 1e3);
	answer_near(&r, "high_s", high / 1e3);
	answer_near(&r, "wall_low_s", (400 - 220 + low - 40) / 1e3);
	answer_near(&r, "wall_high_s", (400 - 220 + high - 20) / 1e3);
	assert_false(answer_next(&r));

	/* Of one loop, persistent workers save nothing. */
	r = answer_ask("what-if", "workers=2", "persistent=true", NULL);
	assert_true(answer_next(&r));
	answer_near(&r, "low_s", low / 1e3);
	while (answer_next(&r))
		;
}

/* Without workers, the loop makes its batches itself: 15 ms for each. */
static void replays_no_workers(void **state)
{
	struct answer r = answer_ask("what-if", "workers=0", NULL, NULL);

	assert_true(answer_next(&r));
	answer_near(&r, "low_s", (305 * 0.95 - 0.03 * 220) / 1e3);
	answer_text(&r, "prefetch", "");
	while (answer_next(&r))
		;
}

static double predicted(char *workers, char *cores)
{
	struct answer r = answer_ask("what-if", workers, cores, NULL);
	double s;

	assert_true(answer_next(&r));
	s = answer_number(&r, "predicted_s");
	while (answer_next(&r))
		;
	return s;
}

/*
 * Two workers that share a core take 20 ms for a batch each: they start at 20 ms and end at 220
 * ms. Two batches are ready then, for 10 ms, and the worker takes 5 ms to end.
 */
static void shares_cores(void **state)
{
	assert_true(fabs(predicted("workers=2", "cores=2") - 0.135) < 1e-6);
	assert_true(fabs(predicted("workers=2", "cores=1") - 0.235) < 1e-6);
}

/*
 * The training process computes with two threads. Two workers take the cores of one of them,
 * for which the other one waits, and the workers are slower, too; with four cores, no thread
 * does.
 */
static void threads_take_cores_from_workers(void **state)
{
	assert_true(fabs(predicted("workers=2", "cores=4") - 0.135) < 1e-6);
	assert_true(predicted("workers=2", "cores=2") > 0.22);
}

/*
 * The accelerator works for 80 % of the loop's 220 ms, however fast the batches come. Of the 105 ms of waits in the last 200 ms, 40
 * ms cost time, because it was idle for as long.
 */
static void is_no_faster_than_the_accelerator(void **state)
{
	struct answer r = answer_ask("what-if", "workers=2", NULL, NULL);

	assert_true(answer_next(&r));
	answer_near(&r, "low_s", 0.8 * 220 / 1e3);
	answer_near(&r, "predicted_s", 0.8 * 220 / 1e3);
	while (answer_next(&r))
		;
	fixture_expect(&fix,
		       "SELECT round(sum(ns) FILTER (part <> 'wait_hidden') / 1e6)::INT, "
		       "round(sum(ns) FILTER (part = 'wait_hidden') / "
		       "1e6)::INT FROM parts WHERE part LIKE 'wait%' AND part <> 'wait_end'",
		       "40,65\n");
	fixture_expect(&fix,
		       "SELECT (SELECT sum(ns) FROM waits) = (SELECT sum(ns) FROM parts WHERE part "
		       "LIKE 'wait%')",
		       "true\n");
}

static void refuses_what_an_accelerator_hides(void **state)
{
	struct answer r = answer_ask("what-if", "workers=2", NULL, NULL);

	assert_true(answer_next(&r));
	answer_text(&r, "why",
		    "an accelerator hid waits, and how long it works for each step is not known");
	while (answer_next(&r))
		;
}

static void finds_the_cheapest_setting(void **state)
{
	char *text = fixture_named(&fix, "forecast", "best=true", NULL, NULL);

	assert_non_null(strstr(text, "predicted 315 ms (302 ms to 355 ms) instead of 400 ms"));
	assert_non_null(strstr(text, "num_workers=2 prefetch_factor=2\n"));
	free(text);
	text = fixture_named(&fix, "forecast", "best=true", "persistent=false", "workers=2");
	assert_non_null(strstr(text, "num_workers=2 prefetch_factor=2\n"));
	free(text);
}

static void a_wrong_setting_is_named(void **state)
{
	char *error = fixture_refused(&fix, "FROM hr_replays(cores := '0')", -EBADMSG);

	assert_string_equal(error, "hr_replays: `cores` must be a number from 1 to 65536");
	free(error);
}

/* Without fetches there is a reason instead of a prediction. */
static void refuses_what_it_does_not_know(void **state)
{
	struct fixture f;
	char *store = fixture_make_runs(), *text;

	fixture_open(&f, store, NULL);
	text = fixture_named(&f, "what-if", "workers=2", NULL, NULL);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	assert_int_equal(answer_notes(&f, "forecast"), 1);
	fixture_close(&f);
	build_remove(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(replays_the_recorded_settings),
	    cmocka_unit_test(replays_more_workers),
	    cmocka_unit_test(replays_no_workers),
	    cmocka_unit_test(finds_the_cheapest_setting),
	    cmocka_unit_test(a_wrong_setting_is_named),
	    cmocka_unit_test(refuses_what_it_does_not_know),
	};

	const struct CMUnitTest computing[] = {
	    cmocka_unit_test(shares_cores),
	};
	const struct CMUnitTest parallel[] = {
	    cmocka_unit_test(threads_take_cores_from_workers),
	};
	int failed = cmocka_run_group_tests(tests, setup, fixture_teardown);

	const struct CMUnitTest device[] = {
	    cmocka_unit_test(is_no_faster_than_the_accelerator),
	};
	const struct CMUnitTest hiding[] = {
	    cmocka_unit_test(refuses_what_an_accelerator_hides),
	};

	failed += cmocka_run_group_tests(device, setup_busy, fixture_teardown);
	failed += cmocka_run_group_tests(hiding, setup_hidden, fixture_teardown);
	hidden = false;
	failed += cmocka_run_group_tests(computing, setup_computing, fixture_teardown);
	return failed + cmocka_run_group_tests(parallel, setup_parallel, fixture_teardown);
}
