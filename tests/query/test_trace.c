/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trace.c - the named query trace, against the lists that the store was made from
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

/* What a category has: slices of threads, slices that begin and end on lines of their own, moments; microseconds of slices. */
struct sums {
	const char *cat;
	unsigned whole, begun, ended, moments, open;
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

/* What is drawn of the lists: slices, and moments of a thread. */
struct slice {
	const char *cat;
	uint64_t from, to;
	uint32_t task;
	bool moment, line, open;
};

static struct slice slices[TRAIN_EVENTS + TRAIN_REGIONS];
static size_t n_slices;

static void list_slices(void)
{
	n_slices = 0;
	for (size_t i = 0; i < job->n_regions; i++) {
		const struct hr_region *g = &job->regions[i];
		bool line = g->kind == HR_REGION_STEP || g->kind == HR_REGION_EPOCH ||
			    g->kind == HR_REGION_SPAN;

		slices[n_slices++] = (struct slice){hr_region_kind_name(g->kind),
						    g->start_ns,
						    g->start_ns + g->dur_ns,
						    g->domain,
						    g->count > 1,
						    line,
						    g->open};
	}
	for (size_t i = 0; i < job->n_events; i++) {
		const struct hr_event *e = &job->events[i];

		if (e->file != TRAIN_RUNTIME && e->dur_ns > LONGER)
			slices[n_slices++] = (struct slice){.cat = "io",
							    .from = e->start_ns,
							    .to = e->start_ns + e->dur_ns,
							    .task = e->task};
	}
}

/* Whether some slice of the same line begins in this one and ends after it, or the other way round. */
static bool crosses(const struct slice *s)
{
	for (size_t i = 0; i < n_slices; i++) {
		const struct slice *o = &slices[i];

		if (o->task != s->task || o->moment || o->line != s->line ||
		    (s->line && strcmp(o->cat, s->cat) != 0))
			continue;
		if ((o->from < s->from && s->from < o->to && o->to < s->to) ||
		    (s->from < o->from && o->from < s->to && s->to < o->to))
			return true;
	}
	return false;
}

/* Of the lists; `procs` gets a bit for each process that is in it. */
static void should_be(struct sums *all, unsigned *procs)
{
	static const unsigned proc_of[TRAIN_TASKS] = {1, 1, 2, 3, 4, 5, 6};

	list_slices();
	for (size_t i = 0; i < n_slices; i++) {
		const struct slice *s = &slices[i];
		struct sums *sum = of(all, s->cat);

		*procs |= 1u << proc_of[s->task];
		sum->open += s->open;
		if (s->moment) {
			sum->moments++;
			continue;
		}
		*(s->line || crosses(s) ? &sum->begun : &sum->whole) += 1;
		sum->us += (double)(s->to - s->from) / 1e3;
	}
}

static void add(struct sums *s, char ph, double ts, const struct answer *r)
{
	if (ph == 'X') {
		s->whole++;
		s->us += answer_number(r, "dur");
	} else if (ph == 'i') {
		s->moments++;
	} else {
		*(ph == 'b' ? &s->begun : &s->ended) += 1;
		s->us += ph == 'b' ? -ts : ts;
	}
}

/* Of the answer, which is in the order of time; the number of processes that have a name. */
static unsigned is(struct sums *all, char *rank)
{
	struct answer r = answer_ask("trace", (char[]){"longer=0.002"}, rank, NULL);
	double last = -INFINITY;
	unsigned named = 0, threads = 0;

	while (answer_next(&r)) {
		const char *ph = answer_cell(&r, "ph");
		struct sums *s;
		double ts;

		if (strcmp(ph, "M") == 0) {
			assert_true(isinf(last)); /* they come first */
			if (strcmp(answer_cell(&r, "name"), "process_name") == 0)
				answer_near(&r, "pid", ++named);
			else
				threads++;
			continue;
		}
		s = of(all, answer_cell(&r, "cat"));
		ts = answer_number(&r, "ts");
		if (ts < last)
			fail_msg("%.3f after %.3f", ts, last);
		last = ts;
		assert_in_range(answer_number(&r, "pid"), 1, named);
		s->open += strstr(answer_cell(&r, "args"), "open:true") != NULL;
		add(s, ph[0], ts, &r);
	}
	assert_true(threads >= named);
	return named;
}

static void all_regions_and_long_operations(void **state)
{
	struct sums should[KINDS] = {0}, found[KINDS] = {0};
	unsigned procs = 0, apart = 0, opens = 0, moments = 0;

	(void)state;
	should_be(should, &procs);
	assert_int_equal(is(found, NULL), (unsigned)__builtin_popcount(procs));
	for (unsigned i = 0; i < KINDS && should[i].cat != NULL; i++) {
		const struct sums *a = &should[i], *b = of(found, a->cat);

		if (a->whole != b->whole || a->begun != b->begun || b->ended != b->begun ||
		    a->moments != b->moments || a->open != b->open ||
		    fabs(a->us - b->us) > 1e-6 * a->us)
			fail_msg("%s: %u %u %u %u %u %.3f, should be %u %u %u %u %u %.3f", a->cat,
				 b->whole, b->begun, b->ended, b->moments, b->open, b->us, a->whole,
				 a->begun, a->begun, a->moments, a->open, a->us);
		apart += strcmp(a->cat, "io") == 0 ? a->begun : 0;
		moments += a->moments;
		opens += a->open;
	}
	assert_true(apart > 0 && moments > 0 && opens > 0);
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
	assert_true(answer_next(&r));
	answer_text(&r, "name", "thread_name");
	while (answer_next(&r))
		answer_text(&r, "pid", "1");
}

/* The slices that a viewer draws in one row, which must nest: a thread's, or those of a line. */
struct row {
	char key[64], cat[16];
	int64_t ends[64];
	unsigned depth;
};

static struct row rows[1024];
static unsigned n_rows;

static struct row *row_of(const struct answer *r, bool thread)
{
	char key[64];

	snprintf(key, sizeof(key), "%s %s", answer_cell(r, "pid"),
		 answer_cell(r, thread ? "tid" : "id2"));
	for (unsigned i = 0; i < n_rows; i++)
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	assert_in_range(n_rows, 0, 1023);
	memcpy(rows[n_rows].key, key, sizeof(key));
	return &rows[n_rows++];
}

static int64_t nanoseconds(const struct answer *r, const char *column)
{
	return llround(answer_number(r, column) * 1e3);
}

static void slices_nest(void **state)
{
	struct answer r = answer_ask("trace", (char[]){"longer=0.000001"}, NULL, NULL);

	(void)state;
	n_rows = 0;
	memset(rows, 0, sizeof(rows));
	while (answer_next(&r)) {
		char ph = answer_cell(&r, "ph")[0];
		struct row *row;

		if (ph == 'M' || ph == 'i')
			continue;
		row = row_of(&r, ph == 'X');
		if (ph == 'X') {
			int64_t from = nanoseconds(&r, "ts"), to = from + nanoseconds(&r, "dur");

			while (row->depth > 0 && row->ends[row->depth - 1] <= from)
				row->depth--;
			if (row->depth > 0 && row->ends[row->depth - 1] < to)
				fail_msg("a slice of %s ends after the one around it", row->key);
			assert_in_range(row->depth, 0, 63);
			row->ends[row->depth++] = to;
			continue;
		}
		if (row->cat[0] == '\0') /* a line has slices of one kind */
			snprintf(row->cat, sizeof(row->cat), "%s", answer_cell(&r, "cat"));
		answer_text(&r, "cat", row->cat);
		row->depth += ph == 'b' ? 1u : -1u;
		assert_in_range(row->depth, 0, 1);
	}
	assert_in_range(n_rows, 10, 1023);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_regions_and_long_operations),
	    cmocka_unit_test(of_one_rank),
	    cmocka_unit_test(slices_nest),
	};

	return cmocka_run_group_tests(tests, train_setup, train_teardown);
}
