/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "query/duckdb/text_table.h"
#include "common/text.h"

/*
 * Buffered bytes after which a line is written: memory may be too short for two copies of a text.
 */
#define LINE_BYTES  (1u << 20)
#define PIECE_BYTES (1u << 16) /* escaping makes a piece of a text at most six times as long */

struct output_column {
	char *name;
	struct hr_shape shape;
	enum hr_unit unit;
	duckdb_logical_type type;
};

struct hr_output {
	enum hr_output_format format;
	FILE *to;
	unsigned terminal;
	struct output_column *columns;
	unsigned n_columns;
	uint64_t rows;
	struct hr_buffer line;
	int error;		     /* error of a write; further output is dropped */
	struct hr_text_table *table; /* NULL: not a table or list, or a plan */
	bool plan;		     /* the answer of EXPLAIN: only its second column is printed */
	struct hr_output_style style;
};

int hr_output_new(enum hr_output_format format, FILE *to, unsigned width,
		  const struct hr_output_style *style, struct hr_output **ret)
{
	struct hr_output *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	o->format = format;
	o->to = to;
	o->terminal = width;
	if (style != NULL)
		o->style = *style;
	*ret = o;
	return 0;
}

void hr_output_free(struct hr_output *o)
{
	if (o == NULL)
		return;
	for (unsigned i = 0; i < o->n_columns; i++) {
		hr_shape_done(&o->columns[i].shape);
		hr_duckdb.destroy_logical_type(&o->columns[i].type);
		free(o->columns[i].name);
	}
	hr_text_table_free(o->table);
	free(o->columns);
	hr_buffer_done(&o->line);
	free(o);
}

uint64_t hr_output_rows(const struct hr_output *o)
{
	return o->rows;
}

static int flush_line(struct hr_output *o)
{
	if (o->error == 0 && o->line.failed)
		o->error = -ENOMEM;
	if (o->error == 0 && o->line.n > 0 && fwrite(o->line.data, 1, o->line.n, o->to) < o->line.n)
		o->error = -(errno != 0 ? errno : EIO);
	o->line.n = 0;
	o->line.failed = false;
	return o->error;
}

static void flush_much(struct hr_output *o)
{
	if (o->line.n >= LINE_BYTES)
		flush_line(o);
}

/* Writes a text in pieces with `put`. */
static void add_as(struct hr_output *o, const char *text, size_t n,
		   void (*put)(struct hr_buffer *to, const char *text, size_t n))
{
	while (n > 0 && o->error == 0) {
		size_t piece = n < PIECE_BYTES ? n : PIECE_BYTES;

		put(&o->line, text, piece);
		flush_much(o);
		text += piece;
		n -= piece;
	}
}

static void output_add(struct hr_output *o, const char *text, size_t n)
{
	add_as(o, text, n, hr_buffer_add);
}

/* ---- CSV (RFC 4180) and JSON ---- */

static void csv_header(struct hr_output *o)
{
	for (unsigned i = 0; i < o->n_columns; i++) {
		if (i > 0)
			hr_buffer_add(&o->line, ",", 1);
		// NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): begin() named all
		hr_value_csv(&o->line, o->columns[i].name, strlen(o->columns[i].name));
	}
	hr_buffer_add(&o->line, "\r\n", 2);
}

/* NULL becomes an empty field, and an empty text "". */
static void csv_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	struct hr_buffer cell = {0};
	const char *text;
	size_t n;

	for (unsigned i = 0; i < o->n_columns; i++) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);

		if (i > 0)
			hr_buffer_add(&o->line, ",", 1);
		if (hr_value_is_null(v, row))
			continue;
		cell.n = 0;
		if (!hr_value_plain(&o->columns[i].shape, v, row, &text, &n)) {
			hr_value_text(&cell, &o->columns[i].shape, v, row);
			text = cell.data;
			n = cell.n;
		}
		hr_value_csv(&o->line, text, n);
	}
	hr_buffer_add(&o->line, "\r\n", 2);
	o->line.failed |= cell.failed;
	hr_buffer_done(&cell);
}

static void json_cell(struct hr_output *o, unsigned column, duckdb_vector v, idx_t row)
{
	const struct hr_shape *shape = &o->columns[column].shape;
	const char *text;
	size_t n;

	if (hr_value_is_null(v, row) || shape->json || !hr_value_plain(shape, v, row, &text, &n)) {
		hr_value_json(&o->line, shape, v, row);
		return;
	}
	output_add(o, "\"", 1);
	add_as(o, text, n, hr_value_json_escape);
	output_add(o, "\"", 1);
}

static void json_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	hr_buffer_add(&o->line, o->rows == 0 ? "[\n{" : ",\n{", 3);
	for (unsigned i = 0; i < o->n_columns; i++) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);

		if (i > 0)
			hr_buffer_add(&o->line, ", ", 2);
		hr_value_json_string(&o->line, o->columns[i].name, strlen(o->columns[i].name));
		hr_buffer_add(&o->line, ": ", 2);
		json_cell(o, i, v, row);
	}
	hr_buffer_add(&o->line, "}", 1);
}

/* ---- tables, names of members ---- */

static int table_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	for (unsigned i = 0; i < o->n_columns; i++) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);
		char *cell =
		    hr_cell_text(&o->style.cells, &o->columns[i].shape, o->columns[i].unit, v, row);

		if (cell == NULL)
			return -ENOMEM;
		hr_text_table_cell(o->table, cell, &o->line);
	}
	return 0;
}

#define LABEL_BYTES 16

#define COLOUR_BOLD "\033[1m"
#define COLOUR_HIGH "\033[1;31m"
#define COLOUR_SOME "\033[1;33m"
#define COLOUR_END  "\033[0m"

/* Returns how far to indent the continuation of a line: to the text after its label. */
static size_t text_indent(const char *line)
{
	size_t start = strspn(line, " ");
	const char *gap = strstr(line + start, "  ");

	return gap != NULL && gap < line + LABEL_BYTES ? (size_t)(gap - line) + strspn(gap, " ")
						       : start;
}

#define SHARE_HIGH 50.0 /* percent of the time: a large loss */
#define SHARE_SOME 20.0

/* Returns the colour of a line, from the share of time in the second column. */
static const char *text_colour(const struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	duckdb_vector v;
	double share = 0;

	if (!o->style.colour || o->n_columns < 2 || o->columns[1].shape.type != DUCKDB_TYPE_DOUBLE)
		return "";
	v = hr_duckdb.data_chunk_get_vector(chunk, 1);
	if (hr_value_is_null(v, row))
		return "";
	share = ((const double *)hr_duckdb.vector_get_data(v))[row];
	if (share >= SHARE_HIGH)
		return COLOUR_HIGH;
	return share >= SHARE_SOME ? COLOUR_SOME : COLOUR_BOLD;
}

static int text_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	const char *colour = text_colour(o, chunk, row);
	char *line;

	if (o->style.lines != 0 && o->rows >= o->style.lines)
		return 0;
	line = hr_cell_text(&o->style.cells, &o->columns[0].shape, HR_UNIT_NONE,
			    hr_duckdb.data_chunk_get_vector(chunk, 0), row);
	if (line == NULL)
		return -ENOMEM;
	hr_buffer_add(&o->line, colour, strlen(colour));
	hr_wrap(&o->line, line, 0, text_indent(line), o->terminal);
	if (colour[0] != '\0')
		hr_buffer_add(&o->line, COLOUR_END, strlen(COLOUR_END));
	hr_buffer_add(&o->line, "\n", 1);
	free(line);
	return 0;
}

static int table_column(struct hr_output *o, unsigned i)
{
	struct output_column *c = &o->columns[i];
	struct hr_buffer title = {0};
	int r;

	if (o->style.cells.units)
		c->unit = hr_unit_of(c->name, &c->shape);
	hr_unit_title(&title, c->unit, c->name);
	hr_buffer_add(&title, "", 1);
	r = title.failed
		? -ENOMEM
		: hr_text_table_column(o->table, i, title.data, hr_shape_is_number(&c->shape));
	hr_buffer_done(&title);
	return r;
}

static int table_begin(struct hr_output *o)
{
	const struct hr_text_table_style style = {.terminal = o->terminal,
						  .list = o->format == HR_OUTPUT_LIST,
						  .named = o->style.named,
						  .more = o->style.more,
						  .foot = o->style.foot};
	int r = hr_text_table_new(o->n_columns, &style, &o->table);

	for (unsigned i = 0; r == 0 && i < o->n_columns; i++)
		r = table_column(o, i);
	return r;
}

static bool is_taken(const struct hr_output *o, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		// NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): begin() named all
		if (strcmp(o->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Makes the names of members unique, as DuckDB does: `rank`, `rank_1`. */
static int name_apart(struct hr_output *o)
{
	for (unsigned i = 1; i < o->n_columns; i++) {
		char *plain = o->columns[i].name, *name = NULL;

		if (!is_taken(o, i, plain))
			continue;
		for (unsigned n = 1; name == NULL || is_taken(o, o->n_columns, name); n++) {
			free(name);
			if (asprintf(&name, "%s_%u", plain, n) < 0)
				return -ENOMEM;
		}
		free(plain);
		o->columns[i].name = name;
	}
	return 0;
}

/* ---- the sink ---- */

static bool for_people(const struct hr_output *o)
{
	return o->format == HR_OUTPUT_TABLE || o->format == HR_OUTPUT_LIST;
}

static int output_begin(void *self, duckdb_result *result, char **ret_error)
{
	struct hr_output *o = self;
	idx_t n = hr_duckdb.column_count(result);

	o->columns = calloc(n, sizeof(*o->columns));
	if (o->columns == NULL)
		return -ENOMEM;
	for (; o->n_columns < n; o->n_columns++) {
		struct output_column *c = &o->columns[o->n_columns];
		int r;

		c->type = hr_duckdb.column_logical_type(result, o->n_columns);
		c->name = strdup(hr_duckdb.column_name(result, o->n_columns));
		if (c->name == NULL)
			return -ENOMEM;
		r = hr_shape_init(&c->shape, c->type);
		if (r == 0)
			continue;
		if (r == -ENOTSUP)
			(void)hr_text_fail(r, ret_error,
					   "cannot print the type of column %s: cast it to VARCHAR",
					   c->name);
		o->n_columns++;
		return r;
	}
	o->plan = for_people(o) && n == 2 &&
		  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): n == 2
		  strcmp(o->columns[1].name, "explain_value") == 0;
	if (o->format == HR_OUTPUT_CSV)
		csv_header(o);
	if (o->format == HR_OUTPUT_JSON)
		return name_apart(o);
	return for_people(o) && !o->plan ? table_begin(o) : 0;
}

static int output_chunk_in(void *self, duckdb_data_chunk chunk)
{
	struct hr_output *o = self;
	idx_t n = hr_duckdb.data_chunk_get_size(chunk);
	int r = 0;

	for (idx_t row = 0; r == 0 && row < n; row++, o->rows++) {
		if (o->plan)
			hr_value_text(&o->line, &o->columns[1].shape,
				      hr_duckdb.data_chunk_get_vector(chunk, 1), row);
		else if (o->format == HR_OUTPUT_CSV)
			csv_row(o, chunk, row);
		else if (o->format == HR_OUTPUT_JSON)
			json_row(o, chunk, row);
		else if (o->format == HR_OUTPUT_TEXT)
			r = text_row(o, chunk, row);
		else
			r = table_row(o, chunk, row);
		flush_much(o);
	}
	return r == 0 ? flush_line(o) : r;
}

static int output_end(void *self)
{
	struct hr_output *o = self;
	int r;

	if (o->format == HR_OUTPUT_JSON)
		hr_buffer_add(&o->line, o->rows == 0 ? "[]\n" : "\n]\n", 3);
	if (o->table != NULL)
		hr_text_table_end(o->table, &o->line);
	if (o->style.lines != 0 && o->rows > o->style.lines)
		hr_buffer_print(&o->line, "(%" PRIu64 " more line%s, of other jobs: --job JOB)\n",
				o->rows - o->style.lines, o->rows - o->style.lines == 1 ? "" : "s");
	r = flush_line(o);
	if (r == 0 && fflush(o->to) != 0)
		r = -errno;
	return r;
}

struct hr_query_sink hr_output_sink(struct hr_output *o)
{
	return (struct hr_query_sink){output_begin, output_chunk_in, output_end, o};
}
