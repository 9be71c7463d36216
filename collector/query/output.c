/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/query/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/query/value.h"

#define TABLE_ROWS 1000u /* rows that decide a table's widths */
#define MIN_WIDTH  8u	 /* a cut column keeps this much */

struct column {
	char *name;
	struct hr_shape shape;
	duckdb_logical_type type;
	unsigned width; /* characters, of a table */
};

struct hr_output {
	enum hr_output_format format;
	FILE *to;
	unsigned terminal;
	struct column *columns;
	unsigned n_columns;
	uint64_t rows;
	struct hr_buffer line;
	char **cells; /* of buffered rows; NULL once the widths are known */
	size_t n_cells;
	bool plan; /* an EXPLAIN: its second column is printed as it is */
	char *problem;
};

int hr_output_new(enum hr_output_format format, FILE *to, unsigned width, struct hr_output **ret)
{
	struct hr_output *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	o->format = format;
	o->to = to;
	o->terminal = width;
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
	for (size_t i = 0; i < o->n_cells; i++)
		free(o->cells[i]);
	free(o->cells);
	free(o->columns);
	free(o->problem);
	hr_buffer_done(&o->line);
	free(o);
}

const char *hr_output_problem(const struct hr_output *o)
{
	return o->problem;
}

static int flush_line(struct hr_output *o)
{
	bool failed = o->line.failed;

	if (o->line.n > 0)
		fwrite(o->line.data, 1, o->line.n, o->to);
	o->line.n = 0;
	o->line.failed = false;
	if (failed)
		return -ENOMEM;
	return ferror(o->to) ? -(errno != 0 ? errno : EIO) : 0;
}

/* ---- CSV (RFC 4180) and JSON -------------------------------------------------------- */

static void csv_field(struct hr_buffer *line, const char *text, size_t n)
{
	bool quote = n == 0;

	for (size_t i = 0; i < n && !quote; i++)
		quote = strchr(",\"\r\n", text[i]) != NULL;
	if (!quote) {
		hr_buffer_add(line, text, n);
		return;
	}
	hr_buffer_add(line, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '"')
			hr_buffer_add(line, "\"", 1);
		hr_buffer_add(line, text + i, 1);
	}
	hr_buffer_add(line, "\"", 1);
}

static void csv_header(struct hr_output *o)
{
	for (unsigned i = 0; i < o->n_columns; i++) {
		if (i > 0)
			hr_buffer_add(&o->line, ",", 1);
		// NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): begin() named all
		csv_field(&o->line, o->columns[i].name, strlen(o->columns[i].name));
	}
	hr_buffer_add(&o->line, "\r\n", 2);
}

/* NULL is an empty field, an empty text is "". */
static void csv_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	struct hr_buffer cell = {0};

	for (unsigned i = 0; i < o->n_columns; i++) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);

		if (i > 0)
			hr_buffer_add(&o->line, ",", 1);
		if (hr_value_is_null(v, row))
			continue;
		cell.n = 0;
		hr_value_text(&cell, &o->columns[i].shape, v, row);
		csv_field(&o->line, cell.data, cell.n);
	}
	hr_buffer_add(&o->line, "\r\n", 2);
	o->line.failed |= cell.failed;
	hr_buffer_done(&cell);
}

static void json_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	hr_buffer_add(&o->line, o->rows == 0 ? "[\n{" : ",\n{", 3);
	for (unsigned i = 0; i < o->n_columns; i++) {
		if (i > 0)
			hr_buffer_add(&o->line, ", ", 2);
		hr_value_json_string(&o->line, o->columns[i].name, strlen(o->columns[i].name));
		hr_buffer_add(&o->line, ": ", 2);
		hr_value_json(&o->line, &o->columns[i].shape,
			      hr_duckdb.data_chunk_get_vector(chunk, i), row);
	}
	hr_buffer_add(&o->line, "}", 1);
}

/* ---- tables ------------------------------------------------------------------------- */

/* Characters of a UTF-8 text: bytes that do not continue one. */
static unsigned characters(const char *text)
{
	unsigned n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* A cell as one line: control characters would break the table and can drive a terminal. */
static char *table_cell(const struct column *c, duckdb_vector v, idx_t row)
{
	struct hr_buffer raw = {0}, cell = {0};

	if (hr_value_is_null(v, row))
		return strdup("NULL");
	hr_value_text(&raw, &c->shape, v, row);
	for (size_t i = 0; i < raw.n; i++) {
		unsigned char byte = (unsigned char)raw.data[i];

		if (byte < 0x20 || byte == 0x7f)
			hr_buffer_print(&cell, "\\x%02X", byte);
		else
			hr_buffer_add(&cell, raw.data + i, 1);
	}
	hr_buffer_add(&cell, "", 1);
	hr_buffer_done(&raw);
	if (raw.failed || cell.failed) {
		hr_buffer_done(&cell);
		return NULL;
	}
	return cell.data;
}

static void pad(struct hr_buffer *line, unsigned n)
{
	while (n-- > 0)
		hr_buffer_add(line, " ", 1);
}

/*
 * A text that is too long loses its beginning when it is a path (the end tells more), else its
 * end.
 */
static void add_cut(struct hr_buffer *line, const char *text, unsigned have, unsigned width)
{
	static const char dots[] = "\u2026";
	bool path = strchr(text, '/') != NULL;
	unsigned skip = path ? have - width + 1 : 0, keep = width - 1;

	if (path)
		hr_buffer_add(line, dots, sizeof(dots) - 1);
	for (unsigned at = 0; *text != '\0'; text++) {
		unsigned index = at - (((unsigned char)*text & 0xc0) == 0x80);

		at += ((unsigned char)*text & 0xc0) != 0x80;
		if (index >= skip && index < skip + keep)
			hr_buffer_add(line, text, 1);
	}
	if (!path)
		hr_buffer_add(line, dots, sizeof(dots) - 1);
}

static void table_field(struct hr_output *o, unsigned i, const char *text)
{
	const struct column *c = &o->columns[i];
	bool right = hr_shape_is_number(&c->shape), last = i + 1 == o->n_columns;
	unsigned have = characters(text);

	if (i > 0)
		hr_buffer_add(&o->line, "  ", 2);
	if (have > c->width && o->terminal != 0) {
		add_cut(&o->line, text, have, c->width);
		return;
	}
	if (right && have < c->width)
		pad(&o->line, c->width - have);
	hr_buffer_add(&o->line, text, strlen(text));
	if (!right && !last && have < c->width)
		pad(&o->line, c->width - have);
}

/* Makes the table fit by narrowing its widest text column until it does. */
static void fit(struct hr_output *o)
{
	for (;;) {
		unsigned total = 2 * (o->n_columns - 1);
		struct column *widest = NULL;

		for (unsigned i = 0; i < o->n_columns; i++) {
			struct column *c = &o->columns[i];

			total += c->width;
			if (!hr_shape_is_number(&c->shape) && c->width > MIN_WIDTH &&
			    (widest == NULL || c->width > widest->width))
				widest = c;
		}
		if (total <= o->terminal || widest == NULL)
			return;
		widest->width--;
	}
}

static void table_header(struct hr_output *o)
{
	for (unsigned i = 0; i < o->n_columns; i++)
		table_field(o, i, o->columns[i].name);
	hr_buffer_add(&o->line, "\n", 1);
	for (unsigned i = 0; i < o->n_columns; i++) {
		if (i > 0)
			hr_buffer_add(&o->line, "  ", 2);
		for (unsigned k = 0; k < o->columns[i].width; k++)
			hr_buffer_add(&o->line, "-", 1);
	}
	hr_buffer_add(&o->line, "\n", 1);
}

/* Widths are known now: prints what was buffered. */
static int table_start(struct hr_output *o)
{
	int r;

	for (unsigned i = 0; i < o->n_columns; i++) {
		o->columns[i].width = characters(o->columns[i].name);
		for (size_t k = i; k < o->n_cells; k += o->n_columns) {
			unsigned have = characters(o->cells[k]);

			if (have > o->columns[i].width)
				o->columns[i].width = have;
		}
	}
	if (o->terminal != 0)
		fit(o);
	table_header(o);
	for (size_t k = 0; k < o->n_cells; k++) {
		table_field(o, (unsigned)(k % o->n_columns), o->cells[k]);
		if (k % o->n_columns + 1 == o->n_columns)
			hr_buffer_add(&o->line, "\n", 1);
		free(o->cells[k]);
	}
	o->n_cells = 0;
	free(o->cells);
	o->cells = NULL;
	r = flush_line(o);
	return r;
}

static int table_row(struct hr_output *o, duckdb_data_chunk chunk, idx_t row)
{
	for (unsigned i = 0; i < o->n_columns; i++) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);
		char *cell = table_cell(&o->columns[i], v, row);

		if (cell == NULL)
			return -ENOMEM;
		if (o->cells != NULL) {
			o->cells[o->n_cells++] = cell;
			continue;
		}
		table_field(o, i, cell);
		free(cell);
	}
	if (o->cells != NULL)
		return o->rows + 1 == TABLE_ROWS ? table_start(o) : 0;
	hr_buffer_add(&o->line, "\n", 1);
	return 0;
}

/* ---- the sink ----------------------------------------------------------------------- */

static int begin(void *self, duckdb_result *result)
{
	struct hr_output *o = self;
	idx_t n = hr_duckdb.column_count(result);

	o->columns = calloc(n, sizeof(*o->columns));
	if (o->columns == NULL)
		return -ENOMEM;
	for (; o->n_columns < n; o->n_columns++) {
		struct column *c = &o->columns[o->n_columns];
		int r;

		c->type = hr_duckdb.column_logical_type(result, o->n_columns);
		c->name = strdup(hr_duckdb.column_name(result, o->n_columns));
		if (c->name == NULL)
			return -ENOMEM;
		r = hr_shape_init(&c->shape, c->type);
		if (r == 0)
			continue;
		if (r == -ENOTSUP &&
		    asprintf(&o->problem,
			     "column %s has a type that cannot be printed: cast it to "
			     "VARCHAR",
			     c->name) < 0)
			o->problem = NULL;
		o->n_columns++;
		return r;
	}
	o->plan = o->format == HR_OUTPUT_TABLE && n == 2 &&
		  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): n == 2
		  strcmp(o->columns[1].name, "explain_value") == 0;
	if (o->format == HR_OUTPUT_CSV)
		csv_header(o);
	if (o->format == HR_OUTPUT_TABLE && !o->plan) {
		o->cells = malloc(TABLE_ROWS * n * sizeof(*o->cells));
		if (o->cells == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int chunk_in(void *self, duckdb_data_chunk chunk)
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
		else
			r = table_row(o, chunk, row);
	}
	return r == 0 ? flush_line(o) : r;
}

static int end(void *self)
{
	struct hr_output *o = self;
	int r = 0;

	if (o->format == HR_OUTPUT_JSON)
		hr_buffer_add(&o->line, o->rows == 0 ? "[]\n" : "\n]\n", 3);
	if (o->cells != NULL)
		r = table_start(o);
	if (r == 0)
		r = flush_line(o);
	if (r == 0 && fflush(o->to) != 0)
		r = -errno;
	return r;
}

struct hr_query_sink hr_output_sink(struct hr_output *o)
{
	return (struct hr_query_sink){begin, chunk_in, end, o};
}
