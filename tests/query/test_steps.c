/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_steps.c - the named queries steps and epochs, against sums over the lists that the store was made from
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/train_answer.h"
#include "tests/unit.h"

static const char *const ranks[] = {[TRAIN_0] = "0", [TRAIN_1] = "1", [TRAIN_NONE] = ""};

static void are_parts(const struct answer *r, const struct train_parts *p)
{
	answer_ns(r, "dur_s", p->dur);
	answer_ns(r, "input_wait_s", p->wait);
	answer_ns(r, "checkpoint_s", p->checkpoint);
	answer_ns(r, "optimizer_s", p->optimizer);
	answer_ns(r, "own_io_s", p->own);
	answer_ns(r, "compute_s", p->dur - p->wait - p->checkpoint - p->optimizer - p->own);
	answer_ns(r, "unoverlapped_io_s", p->unoverlapped);
}

static void are_sums(const struct answer *r, const struct train_sums *s)
{
	answer_near(r, "ops", (double)s->ops);
	answer_near(r, "bytes_read", (double)s->bytes_read);
	answer_near(r, "bytes_written", (double)s->bytes_written);
	answer_ns(r, "op_s", s->io_ns);
	answer_ns(r, "io_s", s->busy_ns);
}

static void each_step(void **state)
{
	struct answer r = answer_ask("steps", "by=step", NULL, NULL);
	size_t n = 0, i = 0;

	for (; answer_next(&r); n++, i++) {
		const struct hr_region *g;
		struct train_sums sums;
		struct train_parts parts;

		while (i < job->n_regions && job->regions[i].kind != HR_REGION_STEP)
			i++;
		assert_true(i < job->n_regions);
		g = &job->regions[i]; /* the list, too, has ranks one after the other */
		answer_text(&r, "rank", ranks[g->domain]);
		answer_near(&r, "time_s", round((double)g->start_ns / 1e3) / 1e6);
		answer_near(&r, "steps", (double)g->count);
		answer_near(&r, "open", g->open);
		if (g->step != HR_REGION_UNKNOWN)
			answer_near(&r, "step", (double)g->step);
		else
			answer_text(&r, "step", "");
		if (g->count > 1) {
			answer_text(&r, "ops", "");
			answer_text(&r, "unoverlapped_io_s", "");
			continue;
		}
		sums =
		    train_between(job, train_rank(g->domain), g->start_ns, g->start_ns + g->dur_ns);
		parts = train_parts(job, g->domain, g->start_ns, g->dur_ns);
		are_sums(&r, &sums);
		are_parts(&r, &parts);
	}
	assert_int_equal(n, 120 + 60 + 1 + 2);
}

static void steps_of_ranks(void **state)
{
	static const enum train_task tasks[] = {TRAIN_0, TRAIN_1, TRAIN_NONE};
	static const unsigned steps[] = {120, 65, 2}, open[] = {0, 0, 1};
	struct answer r = answer_ask("steps", NULL, NULL, NULL);

	for (unsigned i = 0; i < 3; i++) {
		struct train_sums sums = {0};
		struct train_parts all = {0};

		assert_true(answer_next(&r));
		for (size_t k = 0; k < job->n_regions; k++) {
			const struct hr_region *g = &job->regions[k];
			struct train_sums s;
			struct train_parts p;

			if (g->domain != tasks[i] || g->kind != HR_REGION_STEP)
				continue;
			p = train_parts(job, g->domain, g->start_ns, g->dur_ns);
			s = train_between(job, train_rank(g->domain), g->start_ns,
					  g->start_ns + g->dur_ns);
			all.dur += p.dur;
			all.wait += p.wait;
			all.checkpoint += p.checkpoint;
			all.optimizer += p.optimizer;
			all.own += p.own;
			all.unoverlapped += p.unoverlapped;
			sums.ops += s.ops;
			sums.io_ns += s.io_ns;
			sums.busy_ns += s.busy_ns;
			sums.bytes_read += s.bytes_read;
			sums.bytes_written += s.bytes_written;
		}
		answer_text(&r, "rank", ranks[tasks[i]]);
		answer_text(&r, "step", "");
		answer_near(&r, "steps", steps[i]);
		answer_near(&r, "open", open[i]);
		are_parts(&r, &all);
		are_sums(&r, &sums);
		answer_lengths(&r, tasks[i], HR_REGION_STEP);
	}
	assert_false(answer_next(&r));
	r = answer_ask("steps", "rank=1", NULL, NULL);
	assert_true(answer_next(&r));
	answer_near(&r, "steps", 65);
	assert_false(answer_next(&r));
}

static void epochs_of_ranks(void **state)
{
	struct answer r = answer_ask("epochs", NULL, NULL, NULL);
	size_t n = 0, i = 0;

	for (; answer_next(&r); n++, i++) {
		const struct hr_region *g;
		struct train_sums sums;
		struct train_parts parts;

		while (i < job->n_regions && job->regions[i].kind != HR_REGION_EPOCH)
			i++;
		assert_true(i < job->n_regions);
		g = &job->regions[i];
		sums =
		    train_between(job, train_rank(g->domain), g->start_ns, g->start_ns + g->dur_ns);
		parts = train_parts(job, g->domain, g->start_ns, g->dur_ns);
		answer_text(&r, "rank", ranks[g->domain]);
		answer_near(&r, "epoch", (double)g->epoch);
		answer_near(&r, "steps", 40);
		answer_ns(&r, "dur_s", g->dur_ns);
		answer_ns(&r, "input_wait_s", parts.wait);
		answer_near(&r, "input_wait_percent",
			    100.0 * (double)parts.wait / (double)g->dur_ns);
		answer_ns(&r, "unoverlapped_io_s", parts.unoverlapped);
		answer_ns(&r, "io_s", sums.busy_ns);
		answer_near(&r, "bytes_read", (double)sums.bytes_read);
	}
	assert_int_equal(n, 3 + 1);
}

static void what_is_not_known_is_said(void **state)
{
	assert_int_equal(answer_notes(&fix, "steps"), 2);
	assert_string_equal(answer_said[0], "job t: no steps of rank 2");
	assert_string_equal(answer_said[1],
			    "job t: 5 short steps were added up: their I/O is unknown");
	answer_lacks(
	    "steps",
	    "no steps were recorded of job 9\nhint: PyTorch reports them under headrace run");
	answer_lacks(
	    "epochs",
	    "no epochs were recorded of job 9\nhint: PyTorch reports them under headrace run");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_step),
	    cmocka_unit_test(steps_of_ranks),
	    cmocka_unit_test(epochs_of_ranks),
	    cmocka_unit_test(what_is_not_known_is_said),
	};

	return cmocka_run_group_tests(tests, train_setup, train_teardown);
}
