/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shown.c - tables of named queries for people, against tests/query/shown.txt
 *
 * Each part of the file begins with the query and the widths at which it looks so. To accept what
 * the program prints now: query_shown_test print > tests/query/shown.txt
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "query/shown.h"
#include "query/duckdb/output.h"
#include "tests/query/fixture.h"
#include "tests/query/train_store.h"

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
	fixture_remove(store);
	store = fixture_make_probed();
	fixture_open(&f, store, NULL);
	print_widths(to, &f, "probed", "coverage", NULL, plain);
	print_widths(to, &f, "probed", "coverage", "by=process", plain);
	print_widths(to, &f, "probed", "coverage", "top=1", plain);
	fixture_close(&f);
	fixture_remove(store);
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

static void tables_look_as_expected(void **state)
{
	char *is, *should;
	size_t bytes, n;
	FILE *to = open_memstream(&is, &bytes), *from = fopen(HR_SHOWN, "re");

	(void)state;
	print_all(to);
	fclose(to);
	assert_non_null(from);
	should = calloc(1, 1 << 20);
	n = fread(should, 1, (1 << 20) - 1, from);
	fclose(from);
	for (size_t i = 0, line = 0; i <= n; i++) {
		if (is[i] != should[i])
			fail_msg("%s, from line %zu:\n--- is\n%.2000s--- should be\n%.2000s---",
				 HR_SHOWN, line + 1, is + i, should + i);
		line += is[i] == '\n';
	}
	free(should);
	free(is);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tables_look_as_expected)};

	(void)argv;
	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	print_all(stdout);
	return 0;
}
