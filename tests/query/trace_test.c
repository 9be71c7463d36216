/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_test.c - the named query trace, against the lists that the store was made from
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/query/train_answer.h"

#define KINDS  16u
#define LONGER UINT64_C(2000000)

/* What is said of a category: events, those that begin a line, that end it; microseconds. */
struct sums {
	const char *cat;
	unsigned whole, begun, ended, open;
	double us;
};

static struct sums *of(struct sums *all, const char *cat)
{
	for (unsigned i = 0; i < KINDS; i++) {
		if (all[i].cat == NULL)
			all[i].cat = strdup(cat);
		if (strcmp(all[i].cat, cat) == 0)
			return &all[i];
	}
	fail_msg("too many categories");
	return NULL;
}

static bool is_line(uint32_t kind)
{
	return kind == HR_REGION_STEP || kind == HR_REGION_EPOCH || kind == HR_REGION_SPAN;
}

/* Of the lists; `procs` gets a bit for each process that is in it. */
static void should_be(struct sums *all, unsigned *procs)
{
	static const unsigned proc_of[TRAIN_TASKS] = {1, 1, 2, 3, 4, 5, 6};

	for (size_t i = 0; i < job->n_regions; i++) {
		const struct hr_region *g = &job->regions[i];
		struct sums *s = of(all, hr_region_kind_name(g->kind));
		uint64_t each_ns = g->dur_ns / g->count;

		*(is_line(g->kind) ? &s->begun : &s->whole) += 1;
		s->open += g->open;
		s->us += (double)each_ns / 1e3;
		*procs |= 1u << proc_of[g->domain];
	}
	for (size_t i = 0; i < job->n_events; i++) {
		const struct hr_event *e = &job->events[i];
		struct sums *s = of(all, "io");

		if (e->file == TRAIN_RUNTIME || e->dur_ns <= LONGER)
			continue;
		s->whole++;
		s->us += (double)e->dur_ns / 1e3;
		*procs |= 1u << proc_of[e->task];
	}
}

/* Of the answer, which is in the order of time; the number of processes that have a name. */
static unsigned is(struct sums *all, char *rank)
{
	struct answer r = answer_ask("trace", (char[]){"longer=0.002"}, rank, NULL);
	double last = -INFINITY;
	unsigned named = 0;

	while (answer_next(&r)) {
		const char *ph = answer_cell(&r, "ph");
		struct sums *s;
		double ts;

		if (strcmp(ph, "M") == 0) {
			assert_true(isinf(last)); /* they come first */
			answer_near(&r, "pid", ++named);
			continue;
		}
		s = of(all, answer_cell(&r, "cat"));
		ts = answer_number(&r, "ts");
		if (ts < last)
			fail_msg("%.3f after %.3f", ts, last);
		last = ts;
		assert_in_range(answer_number(&r, "pid"), 1, named);
		s->open += strstr(answer_cell(&r, "args"), "open:true") != NULL;
		s->us += ph[0] == 'X' ? answer_number(&r, "dur") : ph[0] == 'b' ? -ts : ts;
		*(ph[0] == 'X' ? &s->whole : ph[0] == 'b' ? &s->begun : &s->ended) += 1;
	}
	return named;
}

static void all_regions_and_long_operations(void **state)
{
	struct sums should[KINDS] = {0}, found[KINDS] = {0};
	unsigned procs = 0, io = 0, opens = 0;

	(void)state;
	should_be(should, &procs);
	assert_int_equal(is(found, NULL), (unsigned)__builtin_popcount(procs));
	for (unsigned i = 0; i < KINDS && should[i].cat != NULL; i++) {
		const struct sums *a = &should[i], *b = of(found, a->cat);

		if (a->whole != b->whole || a->begun != b->begun || b->ended != b->begun ||
		    a->open != b->open || fabs(a->us - b->us) > 1e-6 * a->us)
			fail_msg("%s: %u %u %u %u %.3f, should be %u %u %u %u %.3f", a->cat,
				 b->whole, b->begun, b->ended, b->open, b->us, a->whole, a->begun,
				 a->begun, a->open, a->us);
		io += strcmp(a->cat, "io") == 0 ? a->whole : 0;
		opens += a->open;
	}
	assert_true(io > 10 && io < job->n_events && opens > 0);
	for (unsigned i = 0; i < KINDS; i++) {
		free((char *)should[i].cat);
		free((char *)found[i].cat);
	}
}

static void of_one_rank(void **state)
{
	struct answer r = answer_ask("trace", (char[]){"rank=1"}, NULL, NULL);

	(void)state;
	assert_true(answer_next(&r));
	answer_text(&r, "name", "process_name");
	assert_int_equal(strncmp(answer_cell(&r, "args"), "{name:rank 1 (", 14), 0);
	while (answer_next(&r))
		answer_text(&r, "pid", "1");
}

/* A process has one line for its steps and one for its epochs; no two processes have the same. */
static void lines_are_apart(void **state)
{
	struct answer r = answer_ask("trace", NULL, NULL, NULL);
	struct {
		char cat[16], pid[16];
		bool used;
	} lines[1024] = {0};

	(void)state;
	while (answer_next(&r)) {
		const char *cat = answer_cell(&r, "cat"), *pid = answer_cell(&r, "pid");
		size_t id;

		if (strcmp(answer_cell(&r, "ph"), "b") != 0) {
			continue;
		}
		id = (size_t)answer_number(&r, "id");
		assert_in_range(id, 1, 1023);
		if (lines[id].used &&
		    (strcmp(lines[id].cat, cat) != 0 || strcmp(lines[id].pid, pid) != 0))
			fail_msg("line %zu: %s of %s and %s of %s", id, lines[id].cat,
				 lines[id].pid, cat, pid);
		lines[id].used = true;
		snprintf(lines[id].cat, sizeof(lines[id].cat), "%s", cat);
		snprintf(lines[id].pid, sizeof(lines[id].pid), "%s", pid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_regions_and_long_operations),
	    cmocka_unit_test(of_one_rank),
	    cmocka_unit_test(lines_are_apart),
	};

	return cmocka_run_group_tests(tests, train_setup, train_teardown);
}
