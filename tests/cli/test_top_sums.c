/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of `headrace top`: of the whole job, and of the time between two pictures of it. */

#include <string.h>

#include "cli/top/top.h"
#include "common/ops.h"
#include "tests/unit.h"

/* A job with a process that reads: `count` times, for 2^bin ns each. */
struct picture {
	uint64_t hist[4];
	Headrace__LiveRow row, *rows[1];
	Headrace__LiveProcess process, *processes[1];
	Headrace__LiveJob job;
};

static Headrace__LiveJob *picture_make(struct picture *p, uint64_t boot_ns, uint64_t short_ones,
				       uint64_t long_ones)
{
	headrace__live_row__init(&p->row);
	headrace__live_process__init(&p->process);
	headrace__live_job__init(&p->job);
	memcpy(p->hist, (uint64_t[]){10, short_ones, 20, long_ones}, sizeof(p->hist));
	p->process.proc = p->row.proc = 1;
	p->process.pid = 100;
	p->process.rank_plus1 = 1;
	p->row.op = HR_OP_read;
	p->row.count = short_ones + long_ones;
	p->row.bytes = 100 * p->row.count;
	p->row.errors = long_ones;
	p->row.dur_ns = (short_ones << 10) + (long_ones << 20);
	p->row.max_dur_ns = long_ones ? 1 << 20 : 1 << 10;
	p->row.dur_hist = p->hist;
	p->row.n_dur_hist = 4;
	p->rows[0] = &p->row;
	p->processes[0] = &p->process;
	p->job.boot_ns = boot_ns;
	p->job.rows = p->rows;
	p->job.processes = p->processes;
	p->job.n_rows = p->job.n_processes = 1;
	return &p->job;
}

static void between_two_pictures(void **state)
{
	struct hr_top_table t;
	struct picture a, b;

	assert_int_equal(hr_top_sums(picture_make(&a, 1000, 1000, 50),
				     picture_make(&b, 3000, 1090, 60), HR_TOP_RANK, HR_TOP_TIME,
				     &t),
			 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.interval_ns, 2000);
	for (unsigned i = 0; i < 2; i++) {
		const struct hr_top_sum *all = i ? &t.all : &t.rows[0].all;
		const struct hr_top_sum *now = i ? &t.now : &t.rows[0].now;

		assert_int_equal(all->ops, 1150);
		assert_int_equal(all->hist[10], 1090);
		assert_int_equal(all->hist[20], 60);
		assert_int_equal(now->ops, 100);
		assert_int_equal(now->bytes, 10000);
		assert_int_equal(now->errors, 10);
		assert_int_equal(now->dur_ns, (90 << 10) + (10 << 20));
		assert_int_equal(now->hist[10], 90);
		assert_int_equal(now->hist[20], 10);
		assert_true(hr_top_quantile(now, 0.5) < 4096);	  /* most are short, */
		assert_true(hr_top_quantile(now, 0.99) > 500000); /* but not the slowest */
	}
	hr_top_table_done(&t);
}

static void without_an_earlier_one(void **state)
{
	struct hr_top_table t;
	struct picture b;

	assert_int_equal(
	    hr_top_sums(NULL, picture_make(&b, 3000, 7, 0), HR_TOP_RANK, HR_TOP_TIME, &t), 0);
	assert_int_equal(t.now.ops, 7);
	assert_int_equal(t.now.hist[10], 7);
	hr_top_table_done(&t);
}

/* A file that was closed and opened again has a new record: all of it is new. */
static void a_new_record_of_a_file(void **state)
{
	Headrace__LiveUse old = HEADRACE__LIVE_USE__INIT, now = HEADRACE__LIVE_USE__INIT;
	Headrace__LiveUse *before[] = {&old}, *after[] = {&now};
	struct hr_top_table t;
	struct picture a, b;

	old.proc = now.proc = 1;
	old.file = now.file = 7;
	old.ops = 50;
	old.bytes_read = 1000;
	now.ops = 4;
	now.bytes_read = 5000;
	picture_make(&a, 1000, 1, 0)->uses = before;
	picture_make(&b, 3000, 1, 0)->uses = after;
	a.job.n_uses = b.job.n_uses = 1;
	assert_int_equal(hr_top_sums(&a.job, &b.job, HR_TOP_FILE, HR_TOP_TIME, &t), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.rows[0].now.ops, 4);
	assert_int_equal(t.rows[0].now.bytes, 5000);
	hr_top_table_done(&t);
}

/* A training loop that has ended waits no more: the share is that of those that run. */
static void processes_that_ended_do_not_wait(void **state)
{
	Headrace__LiveProcess ended = HEADRACE__LIVE_PROCESS__INIT;
	Headrace__LiveProcess *before[2], *after[2];
	struct hr_top_table t;
	struct picture a, b;

	ended.proc = 2;
	ended.pid = 101;
	ended.rank_plus1 = 2;
	ended.end_ns = 900;
	ended.wait_ns = 300;
	ended.steps = 7;
	picture_make(&a, 1000, 1, 0)->processes = before;
	picture_make(&b, 3000, 1, 0)->processes = after;
	a.job.n_processes = b.job.n_processes = 2;
	before[0] = &a.process;
	after[0] = &b.process;
	before[1] = after[1] = &ended;
	a.process.steps = 1;
	b.process.steps = 2;
	b.process.wait_ns = 500;
	assert_int_equal(hr_top_sums(&a.job, &b.job, HR_TOP_RANK, HR_TOP_TIME, &t), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.all.wait_ns, 800);
	assert_int_equal(t.now.wait_ns, 500);
	assert_int_equal(t.waiters, 1);
	assert_true(hr_top_wait(&t.now, t.waiters, t.interval_ns) == 0.25);
	hr_top_table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(between_two_pictures),
					   cmocka_unit_test(without_an_earlier_one),
					   cmocka_unit_test(a_new_record_of_a_file),
					   cmocka_unit_test(processes_that_ended_do_not_wait)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
