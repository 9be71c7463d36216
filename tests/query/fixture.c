/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fnv.h"
#include "query/named.h"
#include "query/duckdb/output.h"
#include "tests/store/build.h"
#include "tests/unit.h"

void fixture_open_job(struct fixture *f, const char *store, const char *job,
		      const struct hr_query_options *options)
{
	const struct hr_catalog_filter filter = {.job = job};
	struct hr_query_options defaults = {.threads = 2};
	char *error = NULL;
	int r = hr_duckdb_load(&error);

	if (r < 0) {
		print_message("skipped: %s\n", error);
		exit(77);
	}
	assert_int_equal(hr_catalog_open(&store, 1, &filter, &f->catalog, &error), 0);
	r = hr_query_new(f->catalog, options != NULL ? options : &defaults, &f->q, &error);
	if (r < 0)
		fail_msg("hr_query_new: %d %s", r, error != NULL ? error : "");
}

void fixture_open(struct fixture *f, const char *store, const struct hr_query_options *options)
{
	fixture_open_job(f, store, NULL, options);
}

void fixture_close(struct fixture *f)
{
	hr_query_free(f->q);
	hr_catalog_free(f->catalog);
}

struct fixture fix;

int fixture_setup_store(void **state)
{
	*state = fixture_make();
	return 0;
}

int fixture_teardown_store(void **state)
{
	build_remove(*state);
	return 0;
}

int fixture_setup(void **state)
{
	fixture_setup_store(state);
	fixture_open(&fix, *state, NULL);
	return 0;
}

int fixture_teardown(void **state)
{
	fixture_close(&fix);
	return fixture_teardown_store(state);
}

static int run_csv(struct fixture *f, const char *sql, char **ret_text, char **ret_error)
{
	size_t bytes;
	FILE *to = open_memstream(ret_text, &bytes);
	struct hr_output *out;
	struct hr_query_sink sink;
	int r;

	assert_non_null(to);
	assert_int_equal(hr_output_new(HR_OUTPUT_CSV, to, 0, NULL, &out), 0);
	sink = hr_output_sink(out);
	r = hr_query_run(f->q, sql, NULL, 0, &sink, ret_error);
	hr_output_free(out);
	fclose(to);
	return r;
}

char *fixture_ask(struct fixture *f, const char *sql)
{
	char *text, *error = NULL, *to, *from;
	int r = run_csv(f, sql, &text, &error);

	if (r < 0)
		fail_msg("%s: %d %s", sql, r, error != NULL ? error : "");
	from = strstr(text, "\r\n");
	assert_non_null(from);
	for (to = text, from += 2; *from != '\0'; from++) {
		if (*from != '\r')
			*to++ = *from;
	}
	*to = '\0';
	return text;
}

char *fixture_named(struct fixture *f, const char *name, char *a, char *b, char *c)
{
	char *words[] = {a, b, c}, *text, *error = NULL, *to, *from;
	size_t bytes, n = a == NULL ? 0 : b == NULL ? 1 : c == NULL ? 2 : 3;
	const struct hr_named *q = hr_named_find(name);
	FILE *file = open_memstream(&text, &bytes);
	struct hr_named_args args;
	struct hr_query_sink sink;
	struct hr_output *out;

	assert_non_null(q);
	if (hr_named_args_init(q, words, n, &args, &error) < 0)
		fail_msg("%s: %s", name, error);
	assert_int_equal(hr_output_new(HR_OUTPUT_CSV, file, 0, NULL, &out), 0);
	sink = hr_output_sink(out);
	if (hr_query_run(f->q, q->sql, args.list, args.n, &sink, &error) < 0)
		fail_msg("%s: %s", name, error);
	hr_named_args_done(&args);
	hr_output_free(out);
	fclose(file);
	for (to = from = text; *from != '\0'; from++) {
		if (*from != '\r')
			*to++ = *from;
	}
	*to = '\0';
	return text;
}

/* Prints a number with at most 9 digits, or 9 decimals if it is less than 1. */
static void print_number(FILE *to, double number)
{
	char text[32];
	size_t n;

	if (number >= 1) {
		fprintf(to, "%.9g", number);
		return;
	}
	n = (size_t)snprintf(text, sizeof(text), "%.9f", number);
	while (text[n - 1] == '0')
		n--;
	fprintf(to, "%.*s", (int)(text[n - 1] == '.' ? n - 1 : n), text);
}

/*
 * Prints a line of CSV. Long numbers are rounded: how DuckDB divides the work decides the order in
 * which it adds them.
 */
static void print_rounded(FILE *to, const char *line)
{
	static const char digits[] = "0123456789";

	while (*line != '\n') {
		size_t whole = strspn(line, digits), n = whole;

		if (n > 0 && line[n] == '.')
			n += 1 + strspn(line + n + 1, digits);
		if (n > whole && n > 10)
			print_number(to, strtod(line, NULL));
		else
			fwrite(line, 1, n > 0 ? n : 1, to);
		line += n > 0 ? n : 1;
	}
	fputc('\n', to);
}

void fixture_print(struct fixture *f, FILE *to, const char *name, const char *a, const char *b,
		   unsigned most)
{
	char *text = fixture_named(f, name, (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL);
	char *rest;
	size_t bytes;
	FILE *more = open_memstream(&rest, &bytes);
	unsigned rows = 0;

	fprintf(to, "-- %s%s%s%s%s\n", name, a != NULL ? " " : "", a != NULL ? a : "",
		b != NULL ? " " : "", b != NULL ? b : "");
	for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
		print_rounded(rows++ <= most ? to : more, line);
	fclose(more);
	if (rows > most + 1)
		fprintf(to, "and %u more rows, with the hash %08x\n", rows - most - 1,
			(unsigned)hr_fnv(HR_FNV_BASIS, rest, bytes));
	free(rest);
	free(text);
}

void fixture_same(const char *path, const char *is)
{
	FILE *from = fopen(path, "re");
	char *should = calloc(1, 1 << 20);
	size_t n;

	assert_non_null(from);
	assert_non_null(should);
	n = fread(should, 1, (1 << 20) - 1, from);
	fclose(from);
	for (size_t i = 0, line = 0, begin = 0; i <= n; i++) {
		if (is[i] != should[i])
			fail_msg("%s, from line %zu:\n--- is\n%.2000s--- should be\n%.2000s---\n"
				 "To accept what is, see the comment at the top of the test.",
				 path, line + 1, is + begin, should + begin);
		line += is[i] == '\n';
		begin = is[i] == '\n' ? i + 1 : begin;
	}
	free(should);
}

void fixture_compare(const char *path, void (*print)(FILE *to))
{
	char *is;
	size_t bytes;
	FILE *to = open_memstream(&is, &bytes);

	print(to);
	fclose(to);
	fixture_same(path, is);
	free(is);
}

char *fixture_refused(struct fixture *f, const char *sql, int error)
{
	char *text, *said = NULL;
	int r = run_csv(f, sql, &text, &said);

	if (r != error)
		fail_msg("%s: %d instead of %d: %s", sql, r, error, said != NULL ? said : text);
	free(text);
	assert_non_null(said);
	return said;
}

void fixture_expect(struct fixture *f, const char *sql, const char *expected)
{
	char *text = fixture_ask(f, sql);

	if (strcmp(text, expected) != 0)
		fail_msg("%s\n--- is\n%s--- should be\n%s---", sql, text, expected);
	free(text);
}
