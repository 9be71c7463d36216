/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/text_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define KEPT_ROWS      1000u /* rows that are buffered to find the widths of columns */
#define MIN_TEXT       8u    /* minimum width of a cut text */
#define MIN_PATH       24u   /* minimum width of a cut path, on a wide terminal */
#define GAP	       2u
#define DOTS	       "..."
#define DOTS_WIDTH     (sizeof(DOTS) - 1)
#define ELSEWHERE_NOTE "a wider terminal or --format list shows them"
/* A table with at most this many rows becomes a list if it is too wide. */
#define LIST_ROWS 5u
#define LIST_RULE 16u /* the line between rows is longer than the names by this */

struct text_column {
	char *name;
	bool number;
	bool path;	/* a cell contains a slash */
	unsigned whole; /* width of the widest cell */
	unsigned width;
};

struct hr_text_table {
	struct hr_text_table_style style;
	unsigned n_columns, n_shown;
	unsigned widest_name;
	struct text_column *columns;
	char **cells; /* cells of buffered rows; NULL: the widths are known */
	size_t n_cells;
	uint64_t rows;
	unsigned at; /* the column of the next cell */
	bool list;
};

int hr_text_table_new(unsigned n_columns, const struct hr_text_table_style *style,
		      struct hr_text_table **ret)
{
	struct hr_text_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->style = *style;
	t->list = style->list;
	t->n_columns = t->n_shown = n_columns;
	t->columns = calloc(n_columns, sizeof(*t->columns));
	if (!t->list)
		t->cells = calloc((size_t)KEPT_ROWS * n_columns, sizeof(*t->cells));
	if (t->columns == NULL || (t->cells == NULL && !t->list)) {
		hr_text_table_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void hr_text_table_free(struct hr_text_table *t)
{
	if (t == NULL)
		return;
	for (unsigned i = 0; t->columns != NULL && i < t->n_columns; i++)
		free(t->columns[i].name);
	for (size_t i = 0; t->cells != NULL && i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->columns);
	free(t);
}

int hr_text_table_column(struct hr_text_table *t, unsigned i, const char *name, bool number)
{
	t->columns[i].name = strdup(name);
	t->columns[i].number = number;
	t->columns[i].whole = (unsigned)hr_text_cells(name);
	if (t->columns[i].whole > t->widest_name)
		t->widest_name = t->columns[i].whole;
	return t->columns[i].name != NULL ? 0 : -ENOMEM;
}

/* ---- fields ---- */

static void repeat(struct hr_buffer *out, const char *character, unsigned n)
{
	while (n-- > 0)
		hr_buffer_add(out, character, 1);
}

/*
 * Cuts a path in the middle, because its ends matter most, and other texts at the end. Returns the
 * width. If memory is short, sets out->failed.
 */
static unsigned add_cut(struct hr_buffer *out, const char *text, unsigned width)
{
	size_t bytes = strlen(text) + DOTS_WIDTH + 1;
	unsigned dots = width < DOTS_WIDTH ? width : DOTS_WIDTH;
	char *cut;

	if (strchr(text, '/') == NULL) {
		size_t start = hr_text_start(text, width - dots);

		hr_buffer_add(out, text, start);
		hr_buffer_add(out, DOTS, dots);
		return (unsigned)(hr_text_cells(text) - hr_text_cells(text + start)) + dots;
	}
	cut = malloc(bytes);
	if (cut == NULL) {
		out->failed = true;
		return width;
	}
	hr_buffer_add(out, cut, hr_text_path_short(cut, bytes, text, NULL, width));
	width = (unsigned)hr_text_cells(cut);
	free(cut);
	return width;
}

static void add_field(const struct hr_text_table *t, unsigned i, const char *text,
		      struct hr_buffer *out)
{
	const struct text_column *c = &t->columns[i];
	unsigned have = (unsigned)hr_text_cells(text), room = have < c->width ? c->width - have : 0;

	if (i > 0)
		repeat(out, " ", GAP);
	if (c->number)
		repeat(out, " ", room);
	if (have > c->width && t->style.terminal != 0)
		room = c->width - add_cut(out, text, c->width);
	else
		hr_buffer_add(out, text, strlen(text));
	if (!c->number && i + 1 < t->n_shown)
		repeat(out, " ", room);
}

/* ---- widths, lines, lists ---- */

static unsigned text_table_least(const struct hr_text_table *t, const struct text_column *c)
{
	unsigned n = MIN_TEXT;

	if (t->style.named && !c->path && t->style.terminal / 3 > n)
		n = t->style.terminal / 3;
	if (c->path && t->style.terminal / 3 > n)
		n = t->style.terminal / 3 < MIN_PATH ? t->style.terminal / 3 : MIN_PATH;
	return c->number || c->whole < n ? c->whole : n;
}

static unsigned total(const struct hr_text_table *t)
{
	unsigned n = GAP * (t->n_shown - 1);

	for (unsigned i = 0; i < t->n_shown; i++)
		n += t->columns[i].width;
	return n;
}

/* Leaves out last columns until the minimum widths fit. Then cuts the widest columns. */
static void fit(struct hr_text_table *t)
{
	for (unsigned i = 0; i < t->n_columns; i++)
		t->columns[i].width = text_table_least(t, &t->columns[i]);
	while (t->n_shown > 1 && total(t) > t->style.terminal)
		t->n_shown--;
	for (unsigned i = 0; i < t->n_columns; i++)
		t->columns[i].width = t->columns[i].whole;
	while (total(t) > t->style.terminal) {
		struct text_column *widest = NULL;

		for (unsigned i = 0; i < t->n_shown; i++) {
			struct text_column *c = &t->columns[i];

			if (c->width > text_table_least(t, c) &&
			    (widest == NULL || c->width > widest->width))
				widest = c;
		}
		if (widest == NULL)
			return;
		widest->width--;
	}
}

static void text_table_measure(struct hr_text_table *t)
{
	for (size_t k = 0; k < t->n_cells; k++) {
		struct text_column *c = &t->columns[k % t->n_columns];
		unsigned have = (unsigned)hr_text_cells(t->cells[k]);

		if (have > c->whole)
			c->whole = have;
		c->path = c->path || strchr(t->cells[k], '/') != NULL;
	}
	for (unsigned i = 0; i < t->n_columns; i++)
		t->columns[i].width = t->columns[i].whole;
	if (t->style.terminal == 0 || total(t) <= t->style.terminal)
		return;
	/* all rows of so short a table are buffered */
	t->list = !t->style.named && t->rows > 0 && t->rows <= LIST_ROWS;
	if (!t->list)
		fit(t);
}

static void add_header(const struct hr_text_table *t, struct hr_buffer *out)
{
	for (unsigned i = 0; i < t->n_shown; i++)
		add_field(t, i, t->columns[i].name, out);
	hr_buffer_add(out, "\n", 1);
	for (unsigned i = 0; i < t->n_shown; i++) {
		if (i > 0)
			repeat(out, " ", GAP);
		repeat(out, "-", t->columns[i].width);
	}
	hr_buffer_add(out, "\n", 1);
}

static void add_cell(const struct hr_text_table *t, unsigned i, const char *text,
		     struct hr_buffer *out)
{
	if (i < t->n_shown)
		add_field(t, i, text, out);
	if (i + 1 == t->n_columns)
		hr_buffer_add(out, "\n", 1);
}

static void add_line(const struct hr_text_table *t, unsigned i, const char *text, bool first,
		     struct hr_buffer *out)
{
	const char *name = t->columns[i].name;

	if (i == 0 && !first) {
		repeat(out, "-", t->widest_name + GAP + LIST_RULE);
		hr_buffer_add(out, "\n", 1);
	}
	hr_buffer_add(out, name, strlen(name));
	repeat(out, " ", t->widest_name - (unsigned)hr_text_cells(name) + GAP);
	hr_buffer_add(out, text, strlen(text));
	hr_buffer_add(out, "\n", 1);
}

/* ---- cells ---- */

static void text_table_add(const struct hr_text_table *t, unsigned i, const char *text, bool first,
			   struct hr_buffer *out)
{
	if (t->list)
		add_line(t, i, text, first, out);
	else
		add_cell(t, i, text, out);
}

static void text_table_start(struct hr_text_table *t, struct hr_buffer *out)
{
	text_table_measure(t);
	if (!t->list && (t->rows > 0 || !t->style.named))
		add_header(t, out);
	for (size_t k = 0; k < t->n_cells; k++) {
		text_table_add(t, (unsigned)(k % t->n_columns), t->cells[k], k == 0, out);
		free(t->cells[k]);
	}
	t->n_cells = 0;
	free(t->cells);
	t->cells = NULL;
}

void hr_text_table_cell(struct hr_text_table *t, char *text, struct hr_buffer *out)
{
	unsigned i = t->at;

	t->at = (i + 1) % t->n_columns;
	t->rows += t->at == 0;
	if (t->cells != NULL) {
		t->cells[t->n_cells++] = text;
		if (t->n_cells == (size_t)KEPT_ROWS * t->n_columns)
			text_table_start(t, out);
		return;
	}
	text_table_add(t, i, text, t->rows == (t->at == 0), out);
	free(text);
}

static void add_left_out(const struct hr_text_table *t, struct hr_buffer *out)
{
	for (unsigned i = t->n_shown; i < t->n_columns; i++) {
		const char *before = i == t->n_shown ? "(no room for " : ", ";

		hr_buffer_add(out, before, strlen(before));
		hr_buffer_add(out, t->columns[i].name, strlen(t->columns[i].name));
	}
	if (t->n_shown < t->n_columns)
		hr_buffer_print(out, ": %s)\n", ELSEWHERE_NOTE);
}

void hr_text_table_end(struct hr_text_table *t, struct hr_buffer *out)
{
	static const char none[] = "(no rows)\n";
	unsigned more;

	if (t->cells != NULL)
		text_table_start(t, out);
	if (t->rows == 0)
		hr_buffer_add(out, none, sizeof(none) - 1);
	if (t->style.foot != NULL)
		hr_buffer_add(out, t->style.foot, strlen(t->style.foot));
	if (!t->style.named) {
		add_left_out(t, out);
		return;
	}
	more = t->style.more + t->n_columns - t->n_shown;
	if (t->rows > 0 && more > 0)
		hr_buffer_print(out, "(%u more column%s: --all-columns)\n", more,
				more == 1 ? "" : "s");
}

/* ---- long lines ---- */

/*
 * Returns the last space in (from, to] that is not between a number and its unit. If there is none,
 * returns the next space or the end.
 */
static size_t wrap_break(const char *line, size_t from, size_t to)
{
	for (size_t end = to; end > from; end--)
		if (line[end] == ' ' && (line[end - 1] < '0' || line[end - 1] > '9'))
			return end;
	return to + strcspn(line + to, " ");
}

void hr_wrap(struct hr_buffer *to, const char *line, size_t have, size_t indent, size_t width)
{
	size_t at = 0, n = strlen(line);
	/* the first line must not be broken within its label */
	size_t from = indent > have ? indent - have : 0;

	while (width > indent && width > have && n - at > width - have) {
		size_t end = wrap_break(line, at == 0 ? from : at, at + width - have);

		if (end == n)
			break;
		hr_buffer_add(to, line + at, end - at);
		hr_buffer_print(to, "\n%*s", (int)indent, "");
		at = end + 1;
		have = indent;
	}
	hr_buffer_add(to, line + at, n - at);
}
