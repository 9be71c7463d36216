/* SPDX-License-Identifier: Apache-2.0 */
#include "query/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "query/duckdb/output.h"
#include "common/text.h"

#define SHOWN_LINE "-- shown: "
#define FOLD_LINE  "-- fold: "
#define ROW_COLUMN "hr_row" /* added by hr_query_keep */
#define TOP_ARG	   "top"

#define VERDICT_LINES 12

bool hr_shown_has(const struct hr_named *q)
{
	return hr_named_line(q, SHOWN_LINE) != NULL;
}

/* ---- one row of an answer with VARCHAR columns ---- */

struct one_row {
	unsigned n;
	char **names, **texts; /* `texts`: "" for NULL */
};

static void one_row_done(struct one_row *row)
{
	for (unsigned i = 0; i < row->n; i++) {
		free(row->names[i]);
		free(row->texts[i]);
	}
	free(row->names);
	free(row->texts);
	*row = (struct one_row){0};
}

static int one_row_begin(void *self, duckdb_result *result, char **ret_error)
{
	struct one_row *row = self;
	idx_t n = hr_duckdb.column_count(result);

	(void)ret_error;
	row->names = calloc(n, sizeof(*row->names));
	row->texts = calloc(n, sizeof(*row->texts));
	if (row->names == NULL || row->texts == NULL)
		return -ENOMEM;
	for (row->n = 0; row->n < n; row->n++) {
		row->names[row->n] = strdup(hr_duckdb.column_name(result, row->n));
		if (row->names[row->n] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int one_row_chunk_in(void *self, duckdb_data_chunk chunk)
{
	static const struct hr_shape shape = {.type = DUCKDB_TYPE_VARCHAR};
	struct one_row *row = self;

	for (unsigned i = 0; i < row->n && hr_duckdb.data_chunk_get_size(chunk) > 0; i++) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);
		struct hr_buffer text = {0};

		if (!hr_value_is_null(v, 0))
			hr_value_text(&text, &shape, v, 0);
		hr_buffer_add(&text, "", 1);
		if (text.failed)
			return -ENOMEM;
		free(row->texts[i]);
		row->texts[i] = text.data;
	}
	return 0;
}

static int ask_one_row(struct hr_query *q, const char *sql, struct one_row *ret, char **ret_error)
{
	const struct hr_query_sink sink = {one_row_begin, one_row_chunk_in, NULL, ret};

	return hr_query_run(q, sql, NULL, 0, &sink, ret_error);
}

/* ---- rows ---- */

struct rows_plan {
	uint64_t all, shown;
	char *foot; /* a line about the rows that are not shown; NULL: all are shown */
};

static const struct hr_query_arg *top_arg(const struct hr_named_args *args, bool *ret_given)
{
	*ret_given = false;
	for (size_t i = 0; i < args->n; i++) {
		if (strcmp(args->list[i].name, TOP_ARG) != 0)
			continue;
		*ret_given = args->given[i];
		return &args->list[i];
	}
	return NULL;
}

/* Counts all rows, and the last rows that each have less than 1 % of the sum of column `fold`. */
static int count_rows(struct hr_query *q, const char *fold, struct one_row *ret, char **ret_error)
{
	char *sql;
	int r;

	if (fold == NULL)
		return ask_one_row(q, "SELECT count(*)::VARCHAR, '0', '' FROM answer", ret,
				   ret_error);
	if (asprintf(&sql,
		     "SELECT (SELECT count(*) FROM answer)::VARCHAR, count(*)::VARCHAR, "
		     "hr_duration(1e9 * sum(\"%1$s\")) FROM answer WHERE " ROW_COLUMN
		     " > (SELECT coalesce(max(" ROW_COLUMN ") FILTER (\"%1$s\" >= 0.01 * "
		     "(SELECT sum(\"%1$s\") FROM answer)), 0) FROM answer)",
		     fold) < 0)
		return -ENOMEM;
	r = ask_one_row(q, sql, ret, ret_error);
	free(sql);
	return r;
}

static int rows_plan_init(struct hr_query *q, const struct hr_named_args *args, bool raw,
			  struct rows_plan *ret, char **ret_error)
{
	bool given;
	const struct hr_query_arg *top = top_arg(args, &given);
	const char *line = raw || given ? NULL : hr_named_line(args->query, FOLD_LINE);
	char *fold = line != NULL ? strndup(line, strcspn(line, "\n")) : NULL;
	uint64_t most = top != NULL ? strtoull(top->text, NULL, 10) : UINT64_MAX, folded, rest;
	struct one_row row = {0};
	int r = count_rows(q, fold, &row, ret_error);

	free(fold);
	if (r == 0) {
		ret->all = strtoull(row.texts[0], NULL, 10);
		folded = strtoull(row.texts[1], NULL, 10);
		ret->shown = ret->all - (folded > 1 ? folded : 0);
		if (ret->shown > most) {
			ret->shown = most;
			folded = 0;
		}
		rest = ret->all - ret->shown;
		if (rest > 0 &&
		    asprintf(&ret->foot, "(%s more row%s%s%s%s: %s%s)\n", hr_text_count(rest).s,
			     rest == 1 ? "" : "s", folded > 1 ? " under 1 %, " : "",
			     folded > 1 ? row.texts[2] : "", folded > 1 ? " together" : "",
			     top != NULL ? TOP_ARG "=" : "--raw",
			     top != NULL ? hr_text_count(ret->all).s : "") < 0)
			r = -ENOMEM;
	}
	one_row_done(&row);
	return r;
}

/* ---- columns ---- */

/* What column_facts() finds out about each column. */
enum column_fact { COLUMN_NULL, COLUMN_SAME, COLUMN_VARIES };

static int column_facts(struct hr_query *q, struct one_row *ret, char **ret_error)
{
	return ask_one_row(q,
			   "SELECT ((count(COLUMNS('(.*)')) > 0)::INTEGER + (min(COLUMNS('(.*)')) "
			   "IS DISTINCT FROM max(COLUMNS('(.*)')))::INTEGER)::VARCHAR AS \"\\1\" "
			   "FROM answer",
			   ret, ret_error);
}

static enum column_fact fact_of(const struct one_row *facts, unsigned i, uint64_t rows)
{
	return rows == 0 ? COLUMN_SAME : (enum column_fact)(facts->texts[i][0] - '0');
}

/* Returns the index of the column with this name (`n` bytes); facts->n: none. */
static unsigned column_find(const struct one_row *facts, const char *name, size_t n)
{
	unsigned i = 0;

	while (i < facts->n &&
	       (strlen(facts->names[i]) != n || memcmp(facts->names[i], name, n) != 0))
		i++;
	return i;
}

static void add_column(FILE *to, const char *name, unsigned *n)
{
	fprintf(to, "%s\"%s\"", (*n)++ == 0 ? "" : ", ", name);
}

/* Sets `chosen` for the columns that the header line `shown` lists. */
static void mark_listed(const char *line, const struct one_row *facts, bool *chosen)
{
	for (size_t n = strcspn(line, " \n"); n > 0; n = strcspn(line, " \n")) {
		unsigned i = column_find(facts, line, n);

		if (i < facts->n)
			chosen[i] = true;
		line += n + (line[n] == ' ');
	}
}

/* Writes the columns of the header line `shown` that have values. */
static void add_listed(FILE *to, const char *line, const struct one_row *facts, uint64_t rows,
		       unsigned *n_chosen)
{
	for (size_t n = strcspn(line, " \n"); n > 0; n = strcspn(line, " \n")) {
		unsigned i = column_find(facts, line, n);

		if (i < facts->n && fact_of(facts, i, rows) != COLUMN_NULL)
			add_column(to, facts->names[i], n_chosen);
		line += n + (line[n] == ' ');
	}
}

/*
 * Chooses columns: those by which rows of several jobs or nodes differ, then those of the header
 * line `shown`. *ret_more: how many other columns have values. `chosen`: one element for each
 * column, all false.
 */
static void add_chosen(FILE *to, const struct hr_named *named, const struct one_row *facts,
		       uint64_t rows, bool *chosen, unsigned *ret_more)
{
	static const char *const whose[] = {"cluster", "job", "attempt", "node"};
	const char *line = hr_named_line(named, SHOWN_LINE);
	unsigned n = 0;

	mark_listed(line, facts, chosen);
	for (size_t k = 0; k < sizeof(whose) / sizeof(whose[0]); k++) {
		unsigned i = column_find(facts, whose[k], strlen(whose[k]));

		if (i == facts->n || chosen[i] || fact_of(facts, i, rows) != COLUMN_VARIES)
			continue;
		chosen[i] = true;
		add_column(to, whose[k], &n);
	}
	add_listed(to, line, facts, rows, &n);
	for (unsigned i = 0; rows > 0 && i < facts->n; i++)
		*ret_more += !chosen[i] && fact_of(facts, i, rows) != COLUMN_NULL &&
			     strcmp(facts->names[i], ROW_COLUMN) != 0;
}

static void add_all(FILE *to, const struct one_row *facts)
{
	unsigned n = 0;

	for (unsigned i = 0; i < facts->n; i++)
		if (strcmp(facts->names[i], ROW_COLUMN) != 0)
			add_column(to, facts->names[i], &n);
}

/* Makes the statement that selects the rows and columns to show (malloc'ed). */
static int table_statement(struct hr_query *q, const struct hr_named *named, bool all_columns,
			   const struct rows_plan *rows, char **ret, unsigned *ret_more,
			   char **ret_error)
{
	struct one_row facts = {0};
	int r = column_facts(q, &facts, ret_error);
	bool *chosen = r == 0 ? calloc(facts.n, sizeof(*chosen)) : NULL;
	char *sql = NULL;
	size_t bytes;
	FILE *to = chosen != NULL ? open_memstream(&sql, &bytes) : NULL;

	if (r == 0 && to == NULL)
		r = -ENOMEM;
	if (r == 0) {
		fputs("SELECT ", to);
		if (all_columns)
			add_all(to, &facts);
		else
			add_chosen(to, named, &facts, rows->all, chosen, ret_more);
		fprintf(to, " FROM answer ORDER BY " ROW_COLUMN " LIMIT %" PRIu64, rows->shown);
		r = fclose(to) == 0 ? 0 : -ENOMEM;
	}
	*ret = sql;
	free(chosen);
	one_row_done(&facts);
	return r;
}

/* ---- the answer ---- */

static int write_answer(struct hr_query *q, const char *sql, const struct hr_named_args *args,
			struct hr_output *o, uint64_t *ret_rows, char **ret_error)
{
	struct hr_query_sink sink = hr_output_sink(o);
	int r = hr_query_run(q, sql, args->list, args->n, &sink, ret_error);

	*ret_rows = hr_output_rows(o);
	return r;
}

static int write_verdict(struct hr_query *q, const struct hr_named *verdict,
			 const struct hr_named_args *args, const struct hr_shown_style *style,
			 FILE *to, char **ret_error)
{
	const struct hr_output_style looks = {.colour = style->colour, .lines = VERDICT_LINES};
	struct hr_output *o;
	uint64_t lines;
	int r = hr_output_new(HR_OUTPUT_TEXT, to, style->width, &looks, &o);

	if (r < 0)
		return r;
	r = write_answer(q, verdict->sql, args, o, &lines, ret_error);
	hr_output_free(o);
	if (r == 0 && lines > 0 && putc('\n', to) == EOF)
		r = -errno;
	return r;
}

static int write_table(struct hr_query *q, const struct hr_named_args *args,
		       const struct hr_shown_style *style, const struct rows_plan *rows, FILE *to,
		       char **ret_error)
{
	struct hr_output_style looks = {
	    .cells = {.units = !style->raw, .folder = style->folder},
	    .colour = style->colour,
	    .named = !style->all_columns,
	    .foot = rows->foot,
	};
	struct hr_output *o = NULL;
	char *sql = NULL;
	uint64_t written;
	int r =
	    table_statement(q, args->query, style->all_columns, rows, &sql, &looks.more, ret_error);

	if (r == 0)
		r = hr_output_new(HR_OUTPUT_TABLE, to, style->width, &looks, &o);
	if (r == 0)
		r = write_answer(q, sql, args, o, &written, ret_error);
	hr_output_free(o);
	free(sql);
	return r;
}

/* `whole`: a verdict needs all rows, so the argument `top` limits only the table that is shown. */
static int keep_answer(struct hr_query *q, const struct hr_named_args *args, bool whole,
		       char **ret_error)
{
	struct hr_query_arg list[HR_NAMED_ARGS];

	for (size_t i = 0; i < args->n; i++) {
		list[i] = args->list[i];
		if (whole && strcmp(list[i].name, TOP_ARG) == 0)
			list[i].text = NULL;
	}
	return hr_query_keep(q, args->query->sql, list, args->n, ret_error);
}

int hr_shown_answer(struct hr_query *q, const struct hr_named_args *args,
		    const struct hr_shown_style *style, FILE *to, uint64_t *ret_rows,
		    char **ret_error)
{
	const struct hr_named *verdict = hr_named_in(hr__verdict_list, args->query->name);
	struct rows_plan rows = {0};
	int r = keep_answer(q, args, verdict != NULL, ret_error);

	if (r == 0)
		r = rows_plan_init(q, args, style->raw, &rows, ret_error);
	if (r == 0 && verdict != NULL)
		r = write_verdict(q, verdict, args, style, to, ret_error);
	if (r == 0)
		r = write_table(q, args, style, &rows, to, ret_error);
	if (r == 0)
		*ret_rows = rows.all;
	free(rows.foot);
	return r;
}
