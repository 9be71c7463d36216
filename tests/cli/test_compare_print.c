/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare_print.c - all answers of `headrace compare` about trainings, against
 * tests/cli/compare.txt
 *
 * To accept what the program prints now: test_compare_print print > tests/cli/compare.txt
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "tests/compare/made_runs.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define GATES 6u

static void add(struct made_side *s, const char *measure, int64_t rank, double value)
{
	made_side_add(
	    s, (struct hr_measure){.measure = measure, .rank = rank, .piece = -1, .value = value});
}

static void nothing_differs(struct made_side *s, bool is_b)
{
	made_side_part(s, 0, "train", "wait_read", 3);
}

/* Rank 1 computes for longer, for which rank 0 waits; storage is slower; saves are larger. */
static void slower(struct made_side *s, bool is_b)
{
	add(s, "processes", 1, 1);
	add(s, "steps", 1, 100);
	made_side_part(s, 1, "start", "imports", 2);
	made_side_part(s, 1, "train", "compute", is_b ? 10 : 8);
	made_side_part(s, 0, "train", "stall", is_b ? 2 : 0.01);
	made_side_part(s, 0, "train", "wait_read", is_b ? 7 : 3);
	made_side_reads(s, "img", 100, 1000, 65536, is_b ? 0.014 : 0.006);
	add(s, "checkpoints", 0, 5);
	add(s, "checkpoint_bytes", 0, is_b ? 1e9 : 5e8);
	made_side_part(s, 0, "train", "checkpoint", is_b ? 2 : 1);
}

/* Half as many steps, with other settings; a rank more. */
static void other_work(struct made_side *s, bool is_b)
{
	made_side_part(s, 0, "train", "wait_cpu", is_b ? 1 : 4);
	made_side_add(s, (struct hr_measure){.measure = "setting",
					     .name = "num_workers",
					     .rank = -1,
					     .piece = -1,
					     .value = is_b ? 8 : 2});
	if (!is_b)
		return;
	for (unsigned i = 0; i < MADE_RUNS; i++)
		s->made[i].list[1].value = 50;
	add(s, "processes", 3, 1);
	made_side_part(s, 3, "train", "compute", 8);
}

static void print_case(FILE *to, const char *name, void (*fill)(struct made_side *, bool))
{
	static const char *const conditions[GATES] = {"wall > +5%",	  "wall < -5%",
						      "input_wait > 1s",  "loop > +50%",
						      "checkpoint > +1%", "bytes_read > +1%"};
	static struct made_side sides[HR_COMPARE_SIDES];
	struct hr_compare_side both[HR_COMPARE_SIDES];
	struct hr_compare_runs *runs = calloc(HR_COMPARE_SIDES, sizeof(*runs));
	struct hr_gate gates[GATES];
	struct hr_comparison c;
	struct hr_compare_answer answer = {&c, runs, gates, 0};

	assert_non_null(runs);
	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		made_side_init(&sides[i]);
		fill(&sides[i], i == HR_COMPARE_B);
		both[i] = made_side(&sides[i]);
		runs[i].n = both[i].n;
		for (size_t k = 0; k < both[i].n; k++) {
			runs[i].runs[k] = both[i].runs[k];
			runs[i].runs[k].store = i == HR_COMPARE_A ? "before" : "after";
			runs[i].runs[k].job = "7";
		}
		runs[i].operand = i == HR_COMPARE_A ? "before" : "after";
	}
	assert_int_equal(hr_compare(both, &c), 0);
	for (unsigned i = 0; i < GATES; i++) {
		assert_true(hr_gate_parse(conditions[i], &gates[answer.n_gates]));
		hr_gate_check(&gates[answer.n_gates++], &c);
	}
	fprintf(to, "== %s, text\n", name);
	hr_compare_text(&answer, to);
	fprintf(to, "== %s, JSON\n", name);
	hr_compare_json(&answer, to);
	fprintf(to, "== %s, Markdown\n", name);
	hr_compare_markdown(&answer, to);
	fprintf(to, "== %s, JUnit\n", name);
	hr_compare_junit(&answer, to);
	hr_comparison_done(&c);
	free(runs);
}

static void print_all(FILE *to)
{
	print_case(to, "nothing differs", nothing_differs);
	print_case(to, "slower", slower);
	print_case(to, "other work", other_work);
}

static void all_answers(void **state)
{
	fixture_compare(HR_COMPARED, print_all);
}

/* Six kinds of files with different times, and six ranks whose own times changed by up to 4 s. */
static void many(struct made_side *s, bool is_b)
{
	static const char *const kinds[] = {"k0", "k1", "k2", "k3", "k4", "k5"};
	static const double seconds[] = {3, 6, 1, 5, 2, 4}, more[] = {0, 0.5, -3, 1, 2, -4};

	for (int i = 0; i < 6; i++) {
		made_side_reads(s, kinds[i], 1, 10, 1024, seconds[i] / 10);
		if (i == 0)
			continue; /* made_side_init has it */
		add(s, "processes", i, 1);
		made_side_part(s, i, "train", "compute", is_b ? 8 + more[i] : 8);
	}
}

/* The text has the largest ones only, and the largest one first. */
static void largest_first(void **state)
{
	static const char *const words[] = {"ranks, without", "rank 5 ", "rank 2 ", "rank 4 ",
					    "rank 3 ",	      "files (", "\nk1 ",   "\nk3 ",
					    "\nk5 ",	      "\nk0 ",	 "\nk4 "};
	static const char *const left_out[] = {"rank 0 ", "rank 1 ", "\nk2 "};
	char *text = NULL, *end;
	size_t n;
	FILE *to = open_memstream(&text, &n);
	const char *at;

	assert_non_null(to);
	print_case(to, "many", many);
	fclose(to);
	end = strstr(text, "== many, JSON");
	assert_non_null(end);
	*end = '\0';
	at = text;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words) && at != NULL; i++) {
		at = strstr(at, words[i]);
		if (at == NULL)
			fail_msg("no '%s' at its place in: %s", words[i], text);
	}
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		assert_null(strstr(text, left_out[i]));
	free(text);
}

/* A condition of --fail-on holds for a change that is larger than its limit, and than the noise. */
static void conditions_need_more_than_noise(void **state)
{
	static const struct {
		const char *text;
		double a, b, noise;
		bool holds;
	} cases[] = {{"wall > +5%", 100, 110, 5, true},	  {"wall > +5%", 100, 110, 11, false},
		     {"wall > +20%", 100, 110, 5, false}, {"wall < -5%", 100, 90, 5, true},
		     {"wall < -5%", 100, 90, 10, false},  {"wall > 2s", 100, 103, 2, true},
		     {"wall > 2s", 100, 103, 4, false},	  {"wall > 0%", 0, 1, 0, true}};
	struct hr_comparison *c = calloc(1, sizeof(*c));
	struct hr_gate g;

	assert_non_null(c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(hr_gate_parse(cases[i].text, &g));
		c->quantities[g.quantity] = (struct hr_difference){
		    .a = cases[i].a, .b = cases[i].b, .noise = cases[i].noise};
		hr_gate_check(&g, c);
		if (g.holds != cases[i].holds)
			fail_msg("%s: case %zu", cases[i].text, i);
	}
	free(c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_answers),
					   cmocka_unit_test(largest_first),
					   cmocka_unit_test(conditions_need_more_than_noise)};

	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	print_all(stdout);
	return 0;
}
