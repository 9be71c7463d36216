/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_waits.c - the named queries about waits for input, against sums over the lists that the store was made from
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/train_answer.h"
#include "tests/unit.h"

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

/* A wait within another one counts for nothing. */
static bool is_wait_of(const struct hr_region *g, enum train_task task)
{
	return g->domain == task && g->kind == HR_REGION_INPUT_WAIT && g->count == 1 &&
	       g->depth != 2;
}

/* The longest tenth of each rank's waits. */
static size_t slow_waits(const struct hr_region **ret)
{
	static const enum train_task tasks[] = {TRAIN_0, TRAIN_1, TRAIN_NONE};
	static uint64_t list[TRAIN_REGIONS];
	size_t n = 0;

	for (unsigned t = 0; t < 3; t++) {
		size_t n_all = 0;
		uint64_t slow;

		for (size_t i = 0; i < job->n_regions; i++)
			if (is_wait_of(&job->regions[i], tasks[t]))
				list[n_all++] = job->regions[i].dur_ns;
		slow = train_at_share(list, n_all, 90);
		for (size_t i = 0; i < job->n_regions; i++)
			if (is_wait_of(&job->regions[i], tasks[t]) &&
			    job->regions[i].dur_ns >= slow)
				ret[n++] = &job->regions[i];
	}
	return n;
}

struct blame {
	double ns;
	uint64_t ops, bytes, waits, all_ns, io_ns;
};

/* Threads whose operations explain the waits of a thread: these waits do not name a batch. */
static unsigned makers(enum train_task task)
{
	return 1u << task | (task == TRAIN_0 ? 1u << TRAIN_0_OTHER : 0);
}

/* The length of the part of an operation that lies in [from, to), if the operation is of these threads. */
static uint64_t part_in(const struct hr_event *e, unsigned set, uint64_t from, uint64_t to)
{
	uint64_t start = e->start_ns, end = start + e->dur_ns;

	if (!(set >> e->task & 1) || start >= to || end <= from || e->file == TRAIN_RUNTIME)
		return 0;
	return (end < to ? end : to) - (start > from ? start : from);
}

/* Operations that are under way at the same time share the time of the wait. */
static struct blame blame(uint32_t file)
{
	static const struct hr_region *waits[TRAIN_REGIONS];
	size_t n = slow_waits(waits);
	struct blame b = {0};

	for (size_t i = 0; i < n; i++) {
		uint64_t from = waits[i]->start_ns, to = from + waits[i]->dur_ns, before = b.ops;
		enum train_task task = (enum train_task)waits[i]->domain;
		uint64_t all = 0, mine = 0;

		b.all_ns += to - from;
		for (size_t k = 0; k < job->n_events; k++) {
			const struct hr_event *e = &job->events[k];
			uint64_t both = part_in(e, makers(task), from, to);

			all += both;
			if (both == 0 || e->file != file)
				continue;
			mine += both;
			b.bytes += (uint64_t)e->ret;
			b.ops++;
		}
		b.io_ns += all < to - from ? all : to - from;
		b.ns += all < to - from ? (double)mine
					: (double)(to - from) * (double)mine / (double)all;
		b.waits += b.ops > before;
	}
	return b;
}

static void is_blamed(const struct answer *r, const struct blame *b)
{
	assert_float_equal(answer_number(r, "waited_s"), b->ns / 1e9, 1e-6);
	assert_float_equal(answer_number(r, "percent"), 100.0 * b->ns / (double)b->all_ns, 1e-3);
	answer_near(r, "ops", (double)b->ops);
	answer_near(r, "bytes", (double)b->bytes);
	answer_near(r, "waits", (double)b->waits);
}

/* No wait names a batch: each thread waits for itself. */
static void workers_are_blamed(uint64_t all_ns)
{
	struct answer r = answer_ask("blame", "by=worker", NULL, NULL);
	double sum = 0;
	unsigned n = 0;

	for (; answer_next(&r); n++) {
		assert_null(strstr(answer_cell(&r, "what"), "worker"));
		sum += answer_number(&r, "waited_s");
	}
	assert_int_equal(n, 3);
	assert_float_equal(sum, (double)all_ns / 1e9, 1e-9);
}

static void folders_are_blamed(const struct blame *data)
{
	struct answer r = answer_ask("blame", "by=folder", NULL, NULL);
	bool found = false;
	unsigned n = 0;

	for (; answer_next(&r); n++) {
		if (strcmp(answer_cell(&r, "what"), "/data/train") != 0)
			continue;
		is_blamed(&r, data);
		found = true;
	}
	assert_true(found);
	assert_int_equal(n, 3);
}

static void slow_waits_are_blamed(void **state)
{
	struct blame data = blame(TRAIN_DATA), scratch = blame(TRAIN_SCRATCH);
	struct answer r = answer_ask("blame", "by=mount", NULL, NULL);
	unsigned n = 0;

	for (; answer_next(&r); n++) {
		if (strcmp(answer_cell(&r, "what"), "/data") == 0) {
			is_blamed(&r, &data);
		} else if (strcmp(answer_cell(&r, "what"), "/scratch") == 0) {
			is_blamed(&r, &scratch);
		} else {
			answer_text(&r, "what", "(not known)");
			assert_float_equal(answer_number(&r, "waited_s"),
					   (double)(data.all_ns - data.io_ns) / 1e9, 1e-6);
		}
	}
	assert_int_equal(n, 3);
	workers_are_blamed(data.all_ns);
	folders_are_blamed(&data);
	r = answer_ask("blame", "by=wait", "longer=0.004", NULL);
	for (n = 0; answer_next(&r); n++) {
		assert_true(answer_number(&r, "waited_s") >= 0.004);
		assert_non_null(strstr(answer_cell(&r, "what"), " at "));
	}
	for (size_t i = 0; i < job->n_regions; i++)
		n -= is_wait_of(&job->regions[i], (enum train_task)job->regions[i].domain) &&
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
	assert_int_equal(answer_notes(&fix, "input-wait"), 0);
	answer_lacks("input-wait",
		     "no waits for input were recorded of job 9\nhint: PyTorch reports them under");
	answer_lacks("blame",
		     "no waits for input were recorded of job 9\nhint: PyTorch reports them under");
}

/* ---- table functions of the report -------------------------------------------------- */

/* The rows of two statements are the same. */
static void expect_same(const char *one, const char *other)
{
	char *sql;

	assert_true(asprintf(&sql,
			     "WITH one AS MATERIALIZED (%s), other AS MATERIALIZED (%s) "
			     "SELECT (SELECT count(*) FROM one) > 0, "
			     "(SELECT count(*) FROM (FROM one EXCEPT ALL FROM other)), "
			     "(SELECT count(*) FROM (FROM other EXCEPT ALL FROM one))",
			     one, other) > 0);
	fixture_expect(&fix, sql, "true,0,0\n");
	free(sql);
}

static void refuses(const char *sql, const char *why)
{
	char *error = fixture_refused(&fix, sql, -EBADMSG);

	assert_string_equal(error, why);
	free(error);
}

static void sums_are_those_of_parts(void **state)
{
	expect_same(
	    "SELECT job, attempt, phase, step, part, start_ns, ns FROM hr_part_sums() WHERE step "
	    "IS NOT NULL",
	    "SELECT job, attempt, phase, step, part, min(start_ns), sum(ns)::BIGINT FROM parts "
	    "WHERE step IS NOT NULL GROUP BY ALL");
	expect_same(
	    "SELECT node, proc, rank, part, start_ns, ns FROM hr_part_sums() WHERE step IS NULL",
	    "SELECT node, proc, rank, part, min(start_ns), sum(ns)::BIGINT FROM parts GROUP BY "
	    "ALL");
	expect_same("SELECT node, proc, rank, part, start_ns, ns FROM hr_part_sums(pieces := '7') "
		    "WHERE step IS NULL",
		    "SELECT p.node, proc, rank, part, min(p.start_ns), sum(ns)::BIGINT "
		    "FROM parts p JOIN jobs j USING (cluster, job, attempt) "
		    "GROUP BY p.node, proc, rank, part, "
		    "(p.start_ns - j.start_ns) // ((j.end_ns - j.start_ns) // 7)");
	refuses("FROM hr_part_sums(pieces := '0')",
		"hr_part_sums: `pieces` must be a whole number from 1 to 100000");
}

static void longest_wait_is_found(void **state)
{
	expect_same("FROM hr_waits(longest := 'true')",
		    "FROM waits WHERE (proc, start_ns) = "
		    "(SELECT (proc, start_ns) FROM waits ORDER BY dur_ns DESC, start_ns LIMIT 1)");
	expect_same("FROM hr_waits(longest := 'false')", "FROM waits");
	refuses("FROM hr_waits(longest := '1')", "hr_waits: `longest` must be true or false");
}

static void few_regions_are_chosen(void **state)
{
	expect_same("FROM hr_regions_of(what := 'checkpoints')",
		    "FROM regions WHERE kind = 'checkpoint'");
	expect_same("FROM hr_regions_of(what := 'longest_wait')",
		    "SELECT r.* FROM regions r JOIN (SELECT node, any_value(start_ns) AS begun, "
		    "any_value(dur_ns) AS ns "
		    "FROM hr_waits(longest := 'true') GROUP BY node) w ON r.node = w.node "
		    "AND r.start_ns < begun + 2 * ns AND r.start_ns + r.dur_ns > begun - ns // 2");
	refuses("FROM hr_regions_of()",
		"hr_regions_of: `what` must be checkpoints or longest_wait");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(waits_of_ranks),		cmocka_unit_test(slow_waits_are_blamed),
	    cmocka_unit_test(waits_are_in_the_summary), cmocka_unit_test(what_is_not_known_is_said),
	    cmocka_unit_test(sums_are_those_of_parts),	cmocka_unit_test(longest_wait_is_found),
	    cmocka_unit_test(few_regions_are_chosen),
	};

	return cmocka_run_group_tests(tests, train_setup, train_teardown);
}
