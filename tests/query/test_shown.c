/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shown.c - tables of named queries for people, against tests/query/shown.txt, and all columns
 * of their answers, with each argument, against tests/query/answers.txt
 *
 * Each part of shown.txt begins with the query and the widths at which it looks so. To accept what
 * the program prints now: query_shown_test print > tests/query/shown.txt, and
 * query_shown_test answers > tests/query/answers.txt
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query/shown.h"
#include "query/duckdb/output.h"
#include "tests/query/fixture.h"
#include "tests/query/train_store.h"
#include "tests/unit.h"

static const unsigned widths[] = {80, 120, 200, 0};
#define WIDTHS (sizeof(widths) / sizeof(widths[0]))

static char *shown(struct fixture *f, const char *name, char *word,
		   const struct hr_shown_style *style)
{
	const struct hr_named *q = hr_named_find(name);
	char *text, *error = NULL;
	struct hr_named_args args;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	uint64_t rows;

	assert_non_null(q);
	assert_true(hr_shown_has(q));
	if (hr_named_args_init(q, &word, word != NULL, &args, &error) < 0 ||
	    hr_shown_answer(f->q, &args, style, to, &rows, &error) < 0)
		fail_msg("%s: %s", name, error);
	hr_named_args_done(&args);
	fclose(to);
	return text;
}

/* Prints a query at all widths; those that look the same, once. */
static void print_widths(FILE *to, struct fixture *f, const char *store, const char *name,
			 char *word, struct hr_shown_style style)
{
	char *texts[WIDTHS];

	for (size_t i = 0; i < WIDTHS; i++) {
		style.width = widths[i];
		texts[i] = shown(f, name, word, &style);
	}
	for (size_t i = 0; i < WIDTHS; i++) {
		if (texts[i] == NULL)
			continue;
		fprintf(to, "== %s: %s%s%s%s%s%s%s, ", store, name, word != NULL ? " " : "",
			word != NULL ? word : "", style.all_columns ? " --all-columns" : "",
			style.raw ? " --raw" : "", style.folder != NULL ? " in " : "",
			style.folder != NULL ? style.folder : "");
		for (size_t k = i; k < WIDTHS; k++) {
			if (texts[k] == NULL || strcmp(texts[i], texts[k]) != 0)
				continue;
			if (widths[k] == 0)
				fprintf(to, "%spiped", k > i ? " " : "");
			else
				fprintf(to, "%s%u", k > i ? " " : "", widths[k]);
			if (k > i) {
				free(texts[k]);
				texts[k] = NULL;
			}
		}
		fprintf(to, "\n%s\n", texts[i]);
		free(texts[i]);
	}
}

static void print_all(FILE *to)
{
	static const char *const small[] = {"jobs", "losses", "nodes", "summary", "timeline"};
	static const char *const train[] = {"blame",	   "epochs",  "files",	"input-wait",
					    "io-time",	   "mounts",  "ops",	"patterns",
					    "ranks",	   "sizes",   "slow",	"steps",
					    "checkpoints", "what-if", "workers"};
	const struct hr_shown_style plain = {0}, raw = {.raw = true}, all = {.all_columns = true},
				    colour = {.colour = true}, folder = {.folder = "/data"};
	struct train *t = train_new();
	struct fixture f;
	char *store = fixture_make();

	fixture_open(&f, store, NULL);
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		print_widths(to, &f, "small", small[i], NULL, plain);
	print_widths(to, &f, "small", "input-wait", NULL, plain); /* no rows */
	print_widths(to, &f, "small", "files", NULL, plain);
	print_widths(to, &f, "small", "files", NULL, folder);
	print_widths(to, &f, "small", "file", "/data/a", plain);
	fixture_close(&f);
	build_remove(store);
	store = fixture_make_probed();
	fixture_open(&f, store, NULL);
	print_widths(to, &f, "probed", "coverage", NULL, plain);
	print_widths(to, &f, "probed", "coverage", "by=process", plain);
	print_widths(to, &f, "probed", "coverage", "top=1", plain);
	fixture_close(&f);
	build_remove(store);
	fixture_open(&f, t->store, NULL);
	for (size_t i = 0; i < sizeof(train) / sizeof(train[0]); i++)
		print_widths(to, &f, "train", train[i], NULL, plain);
	print_widths(to, &f, "train", "diagnose", NULL, plain);
	print_widths(to, &f, "train", "input-wait", "rank=0", plain);
	print_widths(to, &f, "train", "input-wait", NULL, colour);
	print_widths(to, &f, "train", "blame", "by=wait", plain);
	print_widths(to, &f, "train", "blame", "by=wait", all);
	print_widths(to, &f, "train", "ops", NULL, raw);
	print_widths(to, &f, "train", "ranks", NULL, all);
	fixture_close(&f);
	train_free(t);
}

#define ROWS_MOST 12u /* of an answer; of the other rows, the number */

static void print_answers(FILE *to)
{
	static const char *const small[][3] = {{"blame"},
					       {"checkpoints"},
					       {"epochs"},
					       {"input-wait"},
					       {"io-time", "scope=runtime"},
					       {"jobs"},
					       {"losses"},
					       {"measures"},
					       {"mounts", "scope=all"},
					       {"ops", "scope=all"},
					       {"patterns", "scope=all"},
					       {"ranks", "scope=all"},
					       {"sizes", "scope=all"},
					       {"slow", "scope=all", "op=open64"},
					       {"steps"},
					       {"summary"},
					       {"timeline", "scope=all"},
					       {"workers", "scope=all"},
					       {"files", "scope=all"}};
	static const char *const probed[][3] = {{"coverage"},
						{"coverage", "by=process"},
						{"coverage", "by=job", "scope=all"},
						{"coverage", "top=1", "scope=runtime"}};
	static const char *const train[][3] = {{"blame"},
					       {"blame", "by=folder"},
					       {"blame", "by=mount", "scope=all"},
					       {"blame", "by=op", "rank=0"},
					       {"blame", "by=worker", "longer=0.001"},
					       {"blame", "by=wait", "top=3"},
					       {"blame", "by=line"},
					       {"checkpoints"},
					       {"checkpoints", "least=1"},
					       {"checkpoints", "least=1", "gap=0.001"},
					       {"checkpoints", "name=save"},
					       {"diagnose"},
					       {"diagnose", "rank=0", "top=1"},
					       {"diagnose", "from=0.5", "to=1.5"},
					       {"diagnosis"},
					       {"epochs"},
					       {"epochs", "rank=0", "scope=all"},
					       {"file", "/data/train/img-001.jpg", "top=3"},
					       {"input-wait"},
					       {"input-wait", "by=loader"},
					       {"input-wait", "rank=1"},
					       {"io-time"},
					       {"io-time", "scope=all"},
					       {"measures"},
					       {"mounts"},
					       {"ops"},
					       {"ops", "mount=/scratch"},
					       {"ranks"},
					       {"slow", "top=3"},
					       {"slow", "class=write", "top=3"},
					       {"slow", "rank=1", "top=2"},
					       {"slow", "scope=runtime", "top=2"},
					       {"steps"},
					       {"steps", "by=step", "rank=0"},
					       {"steps", "scope=all"},
					       {"summary"},
					       {"timeline"},
					       {"timeline", "step=0.5", "scope=all"},
					       {"what-if"},
					       {"workers"},
					       {"workers", "rank=0", "scope=all"}};
	struct train *t = train_new();
	struct fixture f;
	char *store = fixture_make();

	fputs("== small\n", to);
	fixture_open(&f, store, NULL);
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		fixture_print(&f, to, small[i][0], small[i][1], small[i][2], ROWS_MOST);
	fixture_close(&f);
	build_remove(store);
	store = fixture_make_probed();
	fputs("== probed\n", to);
	fixture_open(&f, store, NULL);
	for (size_t i = 0; i < sizeof(probed) / sizeof(probed[0]); i++)
		fixture_print(&f, to, probed[i][0], probed[i][1], probed[i][2], ROWS_MOST);
	fixture_close(&f);
	build_remove(store);
	fputs("== train\n", to);
	fixture_open(&f, t->store, NULL);
	for (size_t i = 0; i < sizeof(train) / sizeof(train[0]); i++)
		fixture_print(&f, to, train[i][0], train[i][1], train[i][2], ROWS_MOST);
	fixture_close(&f);
	train_free(t);
}

static void tables_look_as_expected(void **state)
{
	fixture_compare(HR_SHOWN, print_all);
}

static void answers_are_as_expected(void **state)
{
	fixture_compare(HR_ANSWERS, print_answers);
}

/* Without this column, rows of one rank would look alike. */
static void rows_of_several_attempts_say_which(void **state)
{
	static const char expected[] = "attempt  rank  workers  ";
	const struct hr_shown_style plain = {0};
	char *store = fixture_make_runs(), *text;
	struct fixture f;

	fixture_open(&f, store, NULL);
	text = shown(&f, "ranks", NULL, &plain);
	if (strncmp(text, expected, sizeof(expected) - 1) != 0)
		fail_msg("%s", text);
	free(text);
	fixture_close(&f);
	build_remove(store);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tables_look_as_expected),
					   cmocka_unit_test(answers_are_as_expected),
					   cmocka_unit_test(rows_of_several_attempts_say_which)};

	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	if (strcmp(argv[1], "answers") == 0)
		print_answers(stdout);
	else
		print_all(stdout);
	return 0;
}
