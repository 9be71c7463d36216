/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wide.c - all tables and all named queries of a job with every operation, against
 * tests/query/wide.txt
 *
 * Of a table, the first rows, four sums of each column, and a hash of all rows (DuckDB's). Of a
 * query, the answer with the default arguments, with each word that an argument can have, and for
 * one rank. To accept what the program prints now: query_wide_test print > tests/query/wide.txt
 */
#include <stdlib.h>
#include <string.h>

#include "query/named.h"
#include "tests/query/fixture.h"
#include "tests/query/wide_store.h"
#include "tests/unit.h"

#define ROWS_MOST  16u /* of an answer */
#define TABLE_ROWS 3u
#define FILE_NAME  "/data/train/shard-00100.tar"

static void print_answer(struct fixture *f, FILE *to, const char *sql)
{
	char *text = fixture_ask(f, sql);

	fputs(text, to);
	free(text);
}

static void print_table(struct fixture *f, FILE *to, const char *name)
{
	/* The stored size depends on the version of zstd; the others, on when the test ran. */
	const char *columns = strcmp(name, "nodes") == 0
				  ? "* EXCLUDE (stored_bytes, heard_ns, silent_ns, closed_ns)"
				  : "*";
	static const char *const sums[] = {"count(COLUMNS(*))", "count(DISTINCT COLUMNS(*))",
					   "min(COLUMNS(*))", "max(COLUMNS(*))"};
	char sql[256];

	fprintf(to, "-- %s\n", name);
	snprintf(sql, sizeof(sql), "SELECT %s FROM hr_%s() ORDER BY ALL LIMIT %u", columns, name,
		 TABLE_ROWS);
	print_answer(f, to, sql);
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		snprintf(sql, sizeof(sql), "SELECT %s FROM (SELECT %s FROM hr_%s())", sums[i],
			 columns, name);
		print_answer(f, to, sql);
	}
	snprintf(sql, sizeof(sql), "SELECT sum(hash(t)::HUGEINT) FROM (SELECT %s FROM hr_%s()) t",
		 columns, name);
	print_answer(f, to, sql);
}

static void print_query(struct fixture *f, FILE *to, const struct hr_named *q, const char *word)
{
	bool file = strcmp(q->name, "file") == 0;

	fixture_print(f, to, q->name, file ? FILE_NAME : word, file ? word : NULL, ROWS_MOST);
}

/* With each word that an argument can have (scope=data, scope=runtime...), and for rank 1. */
static void print_variants(struct fixture *f, FILE *to, const struct hr_named *q)
{
	struct hr_named_args args;
	char word[64];

	assert_int_equal(hr_named_args_declare(q, &args), 0);
	for (size_t i = 0; i < args.n; i++) {
		const char *at = args.types[i];

		if (strcmp(args.list[i].name, "rank") == 0)
			print_query(f, to, q, "rank=1");
		if (strchr(at, '|') == NULL)
			continue;
		for (size_t n; *at != '\0'; at += n + (at[n] == '|')) {
			n = strcspn(at, "|");
			snprintf(word, sizeof(word), "%s=%.*s", args.list[i].name, (int)n, at);
			print_query(f, to, q, word);
		}
	}
	hr_named_args_done(&args);
}

static void print_all(FILE *to)
{
	char *store = wide_make();
	const char *name;
	struct fixture f;

	fixture_open(&f, store, NULL);
	for (unsigned i = 0; (name = hr_query_table_name(i)) != NULL; i++)
		print_table(&f, to, name);
	for (const struct hr_named *q = hr_named_list; q->name != NULL; q++) {
		print_query(&f, to, q, NULL);
		print_variants(&f, to, q);
	}
	fixture_close(&f);
	build_remove(store);
}

static void all_answers(void **state)
{
	fixture_compare(HR_WIDE, print_all);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_answers)};

	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	print_all(stdout);
	return 0;
}
