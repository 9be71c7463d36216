/* SPDX-License-Identifier: Apache-2.0 */
/* Marks `hang`: which process is shown, until when, and what the fleet and the pictures get. */

#include <stdio.h>
#include <string.h>

#include "common/region.h"
#include "daemon/engine/live.h"
#include "daemon/node/now.h"
#include "rig.h"
#include "tests/unit.h"

enum { HANG = 800, STEP = 808, WAIT = 816, FETCH = 824 };

static uint64_t process(struct rig *r, int pid, const char *rank)
{
	struct rig_hello hello = {.pid = pid};
	char text[16];
	uint64_t proc;

	snprintf(text, sizeof(text), "RANK=%s", rank ? rank : "");
	if (rank)
		hello.env[0] = text;
	proc = rig_attach(r, &hello);
	rig_region_key(r, proc, HANG, HR_REGION_MARK, "headrace", "", "hang");
	return proc;
}

static void mark(struct rig *r, uint64_t proc, const char *args)
{
	struct hr_record s[16] = {rig_region(r, HANG, HR_REGION_MARK, 0)};

	s[0].flags |= HR_REGION_HAS_ARGS;
	rig_records(r, proc, s, rig_text(s, args, strlen(args)));
}

/* The process has hung in `in` for this time. */
static void hangs(struct rig *r, uint64_t proc, const char *in, unsigned seconds, const char *line)
{
	char args[256];

	snprintf(args, sizeof(args),
		 "{\"in\":\"%s\",\"tid\":7,\"since_ns\":%u000000000,\"line\":\"%s\"}", in, seconds,
		 line);
	mark(r, proc, args);
}

static void ends(struct rig *r, uint64_t proc, uint32_t key, uint32_t kind, bool open)
{
	struct hr_record s = rig_region(r, key, kind, 1000);

	if (open)
		s.flags |= HR_REGION_IS_OPEN;
	rig_records(r, proc, &s, 1);
}

static struct hr_job_hang now(const struct rig *r)
{
	struct hr_job_hang hang;

	hr_engine_hang(r->engine, &hang);
	return hang;
}

static void a_step_hangs_until_it_ends(void **state)
{
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10, "3");
	assert_int_equal(now(&r).processes, 0);
	hangs(&r, proc, "step", 5, "train.py:41 main");
	assert_int_equal(now(&r).processes, 1);
	assert_int_equal(now(&r).since_ns, r.now - 5 * RIG_SECOND);
	assert_int_equal(now(&r).wait_ns, 0);
	assert_int_equal(now(&r).pid, 10);
	assert_int_equal(now(&r).rank_plus1, 4);
	assert_int_equal(now(&r).worker_plus1, 0);
	assert_string_equal(now(&r).line, "train.py:41 main");
	ends(&r, proc, STEP, HR_REGION_STEP, true); /* it has not ended */
	assert_int_equal(now(&r).processes, 1);
	ends(&r, proc, STEP, HR_REGION_OPTIMIZER, false);
	assert_int_equal(now(&r).processes, 1);
	ends(&r, proc, STEP, HR_REGION_STEP, false);
	assert_int_equal(now(&r).processes, 0);
	hangs(&r, proc, "step", 5, "train.py:41 main");
	rig_restart(&r); /* it is marked again, as long as it hangs */
	assert_int_equal(now(&r).processes, 0);
	hangs(&r, proc, "step", 9, "train.py:41 main");
	assert_int_equal(now(&r).processes, 1);
	rig_end(&r, proc, "0");
	assert_int_equal(now(&r).processes, 0);
	rig_done(&r);
}

/* The training does not wait for a fetch, as long as other workers have batches. */
static void a_wait_shows_the_worker(void **state)
{
	struct rig r;
	uint64_t trainer, worker;

	rig_init(&r);
	trainer = process(&r, 10, NULL);
	worker = process(&r, 11, NULL);
	hangs(&r, worker, "fetch", 9, "data.py:7 load");
	assert_int_equal(now(&r).processes, 0);
	hangs(&r, trainer, "wait", 8, "train.py:20 main");
	assert_int_equal(now(&r).processes, 1);
	assert_int_equal(now(&r).pid, 11);
	assert_string_equal(now(&r).line, "data.py:7 load");
	assert_int_equal(now(&r).since_ns, r.now - 8 * RIG_SECOND);
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(now(&r).wait_ns, 9 * RIG_SECOND);
	ends(&r, worker, FETCH, HR_REGION_FETCH, false);
	assert_int_equal(now(&r).pid, 10);
	ends(&r, trainer, WAIT, HR_REGION_INPUT_WAIT, false);
	assert_int_equal(now(&r).processes, 0);
	rig_done(&r);
}

/* The other ranks wait for it in their steps, which began earlier. */
static void a_rank_that_waits_for_data_is_shown_first(void **state)
{
	struct rig r;
	uint64_t proc[3];

	rig_init(&r);
	for (int i = 0; i < 3; i++)
		proc[i] = process(&r, 10 + i, (const char *[]){"0", "1", "2"}[i]);
	hangs(&r, proc[0], "step", 9, "train.py:41 main");
	hangs(&r, proc[2], "step", 7, "train.py:41 main");
	assert_int_equal(now(&r).rank_plus1, 1);
	hangs(&r, proc[1], "wait", 6, "train.py:20 main");
	assert_int_equal(now(&r).processes, 3);
	assert_int_equal(now(&r).rank_plus1, 2);
	assert_int_equal(now(&r).since_ns, r.now - 6 * RIG_SECOND);
	rig_done(&r);
}

static void marks_without_sense_are_ignored(void **state)
{
	static const char *const args[] = {
	    "",
	    "{",
	    "[]",
	    "{\"in\":\"step\"}",
	    "{\"in\":\"step\",\"since_ns\":0}",
	    "{\"in\":\"step\",\"since_ns\":-5}",
	    "{\"in\":\"step\",\"since_ns\":9223372036854775807}",
	};
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10, NULL);
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
		mark(&r, proc, args[i]);
	assert_int_equal(now(&r).processes, 0);
	mark(&r, proc, "{\"in\":\"a work with a long name\",\"since_ns\":5000000000,\"line\":7}");
	assert_int_equal(now(&r).processes, 1);
	assert_string_equal(now(&r).line, "");
	rig_done(&r);
}

static void the_fleet_gets_what_hangs_for_5_s(void **state)
{
	struct hr_live_picture *before, *after;
	struct hr_now_message *m = NULL;
	struct rig r;
	uint64_t trainer, worker;

	rig_init(&r);
	trainer = process(&r, 10, "1");
	worker = process(&r, 11, NULL);
	before = rig_picture(&r, NULL, 0);
	hangs(&r, trainer, "wait", 3, "train.py:20 main");
	hangs(&r, worker, "fetch", 9, "data.py:7 load");
	after = rig_picture(&r, NULL, 0);
	assert_int_equal(hr_now_compare(&before->m, &after->m, &m), 0);
	assert_int_equal(m->m.n_stuck, 1);
	assert_true(m->m.stuck[0]->hang);
	assert_string_equal(m->m.stuck[0]->op, "fetch");
	assert_int_equal(m->m.stuck[0]->path.len, strlen("data.py:7 load"));
	assert_memory_equal(m->m.stuck[0]->path.data, "data.py:7 load", strlen("data.py:7 load"));
	assert_int_equal(m->m.stuck[0]->pid, 11);
	assert_int_equal(m->m.stuck[0]->age_ns, 9 * RIG_SECOND);
	hr_now_message_free(m);
	rig_tick(&r, r.now + 3 * RIG_SECOND);
	hr_live_free(before);
	before = after;
	after = rig_picture(&r, NULL, 0);
	assert_int_equal(hr_now_compare(&before->m, &after->m, &m), 0);
	assert_int_equal(m->m.n_stuck, 2);
	assert_string_equal(m->m.stuck[0]->op, "fetch"); /* the oldest first */
	assert_string_equal(m->m.stuck[1]->op, "wait");
	assert_int_equal(m->m.stuck[1]->rank_plus1, 2);
	hr_now_message_free(m);
	hr_live_free(before);
	hr_live_free(after);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_step_hangs_until_it_ends),
	    cmocka_unit_test(a_wait_shows_the_worker),
	    cmocka_unit_test(a_rank_that_waits_for_data_is_shown_first),
	    cmocka_unit_test(marks_without_sense_are_ignored),
	    cmocka_unit_test(the_fleet_gets_what_hangs_for_5_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
