/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_waits.c - the named queries about waits for input, against sums over the lists that the store was made from
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/query/train_answer.h"

/* ---- waits -------------------------------------------------------------------------- */

#define TO_THE_END (1000000 * TRAIN_MS)

/* From the first to the last region of a training thread. */
static uint64_t span_of(enum train_task task)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < job->n_regions; i++) {
		const struct hr_region *g = &job->regions[i];

		if (g->domain != task)
			continue;
		first = g->start_ns < first ? g->start_ns : first;
		last = g->start_ns + g->dur_ns > last ? g->start_ns + g->dur_ns : last;
	}
	return last - first;
}

/* Writes that outlast a checkpoint reach into the next wait. */
static double io_in(const struct answer *r)
{
	return answer_number(r, "read_s") + answer_number(r, "write_s");
}

static void waits_of_ranks(void **state)
{
	struct train_waited io = train_waited(job, TRAIN_0, 0, TO_THE_END);
	struct train_waited own = train_waited(job, TRAIN_1, 0, TO_THE_END);
	struct answer r = answer_ask("input-wait", NULL, NULL, NULL);
	uint64_t wait = train_parts(job, TRAIN_0, 0, TO_THE_END).wait;

	(void)state;
	assert_true(answer_next(&r));
	answer_text(&r, "rank", "0");
	answer_near(&r, "waits", 120 + 7 * 8);
	answer_ns(&r, "wait_s", wait);
	answer_ns(&r, "loop_s", span_of(TRAIN_0));
	answer_near(&r, "wait_percent", 100.0 * (double)wait / (double)span_of(TRAIN_0));
	answer_lengths(&r, TRAIN_0, HR_REGION_INPUT_WAIT);
	assert_float_equal(io_in(&r), (double)(io.own_ns + io.others_ns) / 1e9, 1e-6);
	assert_float_equal(answer_number(&r, "unknown_s") + answer_number(&r, "runtime_s"),
			   (double)(wait - io.own_ns - io.others_ns) / 1e9, 1e-6);
	answer_text(&r, "mostly", "unknown");
	answer_text(&r, "workers", "");

	/* Its reads of 16 KiB are the training thread's own. */
	assert_true(answer_next(&r));
	answer_text(&r, "rank", "1");
	assert_float_equal(io_in(&r), (double)own.own_ns / 1e9, 1e-6);
	answer_text(&r, "mostly", "read");

	assert_true(answer_next(&r));
	answer_text(&r, "rank", "");
	answer_near(&r, "waits", 1);
	answer_ns(&r, "wait_s", 500 * TRAIN_MS);
	assert_false(answer_next(&r));
}

/* The longest tenth of each rank's waits, and what overlaps with them. */
static size_t slow_waits(const struct hr_region **ret)
{
	static const enum train_task tasks[] = {TRAIN_0, TRAIN_1, TRAIN_NONE};
	static uint64_t list[TRAIN_REGIONS];
	size_t n = 0;

	for (unsigned t = 0; t < 3; t++) {
		size_t n_all = 0;
		uint64_t slow;

		for (size_t i = 0; i < job->n_regions; i++)
			if (job->regions[i].domain == tasks[t] && job->regions[i].count == 1 &&
			    job->regions[i].kind == HR_REGION_INPUT_WAIT)
				list[n_all++] = job->regions[i].dur_ns;
		slow = train_at_share(list, n_all, 90);
		for (size_t i = 0; i < job->n_regions; i++)
			if (job->regions[i].domain == tasks[t] && job->regions[i].count == 1 &&
			    job->regions[i].kind == HR_REGION_INPUT_WAIT &&
			    job->regions[i].dur_ns >= slow)
				ret[n++] = &job->regions[i];
	}
	return n;
}

struct blame {
	uint64_t both_ns, ops, bytes, waits, all_ns, idle_ns, made_ns, made_waits;
};

static struct blame blame(uint32_t file, int task)
{
	static const struct hr_region *waits[TRAIN_REGIONS];
	size_t n = slow_waits(waits);
	struct blame b = {0};

	for (size_t i = 0; i < n; i++) {
		uint64_t from = waits[i]->start_ns, to = from + waits[i]->dur_ns, before = b.ops;
		struct train_made made;
		unsigned set = train_rank(waits[i]->domain);

		b.all_ns += to - from;
		made = train_made(job, set, from, to);
		b.made_ns += made.made_ns - made.busy_ns;
		b.made_waits += made.made_ns > made.busy_ns;
		b.idle_ns += to - from - train_between(job, set, from, to).busy_ns -
			     (made.made_ns - made.busy_ns);
		for (size_t k = 0; k < job->n_events; k++) {
			const struct hr_event *e = &job->events[k];
			uint64_t start = e->start_ns, end = start + e->dur_ns;

			if (!(set >> e->task & 1) || e->file != file || start >= to ||
			    end <= from || end == start || (task >= 0 && (int)e->task != task))
				continue;
			b.both_ns += (end < to ? end : to) - (start > from ? start : from);
			b.bytes += (uint64_t)e->ret;
			b.ops++;
		}
		b.waits += b.ops > before;
	}
	return b;
}

static void is_blamed(const struct answer *r, const struct blame *b)
{
	answer_ns(r, "waited_s", b->both_ns);
	answer_near(r, "percent", 100.0 * (double)b->both_ns / (double)b->all_ns);
	answer_near(r, "ops", (double)b->ops);
	answer_near(r, "bytes", (double)b->bytes);
	answer_near(r, "waits", (double)b->waits);
}

/* A worker's fetches hold its operations; the process of rank 1 has operations alone. */
static void workers_are_blamed(uint64_t idle_ns)
{
	struct answer r = answer_ask("blame", "by=worker", "top=100", NULL);
	struct blame io = blame(TRAIN_DATA, TRAIN_WORKER_1);
	static const struct hr_region *waits[TRAIN_REGIONS];
	size_t n_waits = slow_waits(waits);
	uint64_t made = 0;
	unsigned n = 0;

	for (size_t i = 0; i < n_waits; i++)
		if (waits[i]->domain == TRAIN_0)
			made += train_made(job, 1u << TRAIN_WORKER_1, waits[i]->start_ns,
					   waits[i]->start_ns + waits[i]->dur_ns)
				    .made_ns;
	assert_true(made > io.both_ns && io.both_ns > 0);
	for (; answer_next(&r); n++) {
		if (strcmp(answer_cell(&r, "what"), "rank 0 worker 1") == 0) {
			answer_ns(&r, "waited_s", made);
			answer_near(&r, "ops", (double)io.ops);
			answer_near(&r, "bytes", (double)io.bytes);
		} else if (strcmp(answer_cell(&r, "what"), "(no I/O, no worker made a batch)") ==
			   0) {
			answer_ns(&r, "waited_s", idle_ns);
		}
		assert_true(answer_cell(&r, "what")[0] != '\0');
	}
	assert_int_equal(n, 6); /* two workers, two ranks, none, nothing */
}

static void folders_are_blamed(void)
{
	struct answer r = answer_ask("blame", "by=folder", NULL, NULL);
	struct blame data = blame(TRAIN_DATA, -1);
	bool found = false;
	unsigned n = 0;

	for (; answer_next(&r); n++) {
		if (strcmp(answer_cell(&r, "what"), "/data/train") != 0)
			continue;
		is_blamed(&r, &data);
		found = true;
	}
	assert_true(found);
	assert_int_equal(n, 4);
}

static void slow_waits_are_blamed(void **state)
{
	struct blame data = blame(TRAIN_DATA, -1), scratch = blame(TRAIN_SCRATCH, -1);
	struct answer r = answer_ask("blame", "by=mount", NULL, NULL);
	unsigned n = 0;

	(void)state;
	for (; answer_next(&r); n++) {
		if (strcmp(answer_cell(&r, "what"), "/data") == 0) {
			is_blamed(&r, &data);
		} else if (strcmp(answer_cell(&r, "what"), "/scratch") == 0) {
			is_blamed(&r, &scratch);
		} else if (strcmp(answer_cell(&r, "what"), "(no I/O: a worker made a batch)") ==
			   0) {
			answer_near(&r, "waits", (double)data.made_waits);
			answer_ns(&r, "waited_s", data.made_ns);
		} else {
			answer_text(&r, "what", "(no I/O, no worker made a batch)");
			answer_ns(&r, "waited_s", data.idle_ns);
		}
	}
	assert_int_equal(n, 4);
	assert_true(data.made_ns > 0 && data.idle_ns > 0);
	workers_are_blamed(data.idle_ns);
	folders_are_blamed();
	r = answer_ask("blame", "by=wait", "longer=0.004", NULL);
	for (n = 0; answer_next(&r); n++) {
		assert_true(answer_number(&r, "waited_s") >= 0.004);
		assert_non_null(strstr(answer_cell(&r, "what"), " at "));
	}
	for (size_t i = 0; i < job->n_regions; i++)
		n -= job->regions[i].kind == HR_REGION_INPUT_WAIT && job->regions[i].count == 1 &&
		     job->regions[i].dur_ns >= 4 * TRAIN_MS;
	assert_int_equal(n, 0);
}

static void waits_are_in_the_summary(void **state)
{
	uint64_t wait = train_parts(job, TRAIN_0, 0, TO_THE_END).wait +
			train_parts(job, TRAIN_1, 0, TO_THE_END).wait +
			train_parts(job, TRAIN_NONE, 0, TO_THE_END).wait;
	struct answer r = answer_ask("summary", NULL, NULL, NULL);
	bool found = false;

	(void)state;
	while (answer_next(&r)) {
		if (strcmp(answer_cell(&r, "what"), "input_wait") != 0)
			continue;
		answer_ns(&r, "time_s", wait);
		answer_near(&r, "ops", 120 + 60 + 7 * (8 + 4) + 1);
		found = true;
	}
	assert_true(found);
}

static void what_is_not_known_is_said(void **state)
{
	(void)state;
	assert_int_equal(answer_notes(&fix, "input-wait"), 0);
	answer_lacks("input-wait",
		     "no waits for input were recorded of job 9: PyTorch reports them under");
	answer_lacks("blame",
		     "no waits for input were recorded of job 9: PyTorch reports them under");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(waits_of_ranks),
	    cmocka_unit_test(slow_waits_are_blamed),
	    cmocka_unit_test(waits_are_in_the_summary),
	    cmocka_unit_test(what_is_not_known_is_said),
	};

	return cmocka_run_group_tests(tests, train_setup, train_teardown);
}
