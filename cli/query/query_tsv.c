/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query_clickhouse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "query/duckdb/cells.h"
#include "query/duckdb/text_table.h"

#define SHOWN_LINE "-- shown: "

struct column {
	bool number, real;
	enum hr_unit unit;
	unsigned shown; /* its place in the table, from 1; 0: it is not shown */
};

struct answer_table {
	const struct hr_query_request *request;
	const struct hr_named *query; /* NULL: SQL of the user, whose numbers have no units */
	struct column *columns;
	unsigned n, n_shown;
	char **row; /* cells in the order of the table */
	struct hr_text_table *text;
};

/* Reverses the escapes of TabSeparated in place. */
static void unescape_field(char *field)
{
	char *to = field;

	for (const char *at = field; *at; at++) {
		if (*at == '\\' && at[1] != '\0') {
			at++;
			if (*at == 't')
				*to++ = '\t';
			else if (*at == 'n')
				*to++ = '\n';
			else
				*to++ = *at;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

/* Makes a cell of a field, malloc'ed. */
static char *make_cell(const struct answer_table *t, const struct column *c, char *field)
{
	struct hr_buffer cell = {0};
	double number;

	if (strcmp(field, "\\N") == 0)
		return strdup(t->query ? "-" : "NULL");
	unescape_field(field);
	number = c->real ? strtod(field, NULL) : 0;
	if (c->unit != HR_UNIT_NONE && c->unit != HR_UNIT_PATH)
		hr_unit_print(&cell, c->unit, field);
	else if (number >= 0.01)
		hr_buffer_print(&cell, "%s", hr_text_decimal(number).s);
	else if (number > 0)
		hr_buffer_print(&cell, "%.3g", number);
	else
		return hr_text_line(field);
	hr_buffer_add(&cell, "", 1);
	return cell.data;
}

/*
 * Returns the place of a column in the line `shown` of a named query, from 1; 0: it is not there.
 */
static unsigned place_of(const struct hr_named *q, const char *name)
{
	const char *at = hr_named_line(q, SHOWN_LINE);
	unsigned place = 1;

	for (; at && *at != '\n' && *at != '\0'; place++) {
		size_t n = strcspn(at, " \n");

		if (strlen(name) == n && strncmp(at, name, n) == 0)
			return place;
		at += n + strspn(at + n, " ");
	}
	return 0;
}

static struct column make_column(const struct answer_table *t, const char *name, const char *type)
{
	bool real = strstr(type, "Float") || strstr(type, "Decimal");
	struct column c = {.number = real || strstr(type, "Int"), .real = real};
	const struct hr_shape shape = {.type = !c.number ? DUCKDB_TYPE_VARCHAR
					       : c.real	 ? DUCKDB_TYPE_DOUBLE
							 : DUCKDB_TYPE_BIGINT};

	c.unit = t->query && !t->request->style.raw ? hr_unit_of(name, &shape) : HR_UNIT_NONE;
	if (!t->query || t->request->style.all_columns || !hr_named_line(t->query, SHOWN_LINE))
		c.shown = t->n_shown + 1;
	else
		c.shown = place_of(t->query, name);
	return c;
}

static int name_columns(struct answer_table *t, char *names)
{
	const struct hr_text_table_style style = {.terminal = t->request->style.width,
						  .list = t->request->format == HR_FORMAT_LIST,
						  .named = t->query != NULL,
						  .more = t->n - t->n_shown};
	int error = hr_text_table_new(t->n_shown, &style, &t->text);

	for (unsigned i = 0; error == 0 && i < t->n; i++) {
		const char *name = strsep(&names, "\t");
		struct hr_buffer title = {0};

		if (t->columns[i].shown == 0)
			continue;
		hr_unit_title(&title, t->columns[i].unit, name);
		hr_buffer_add(&title, "", 1);
		error = title.failed ? -ENOMEM
				     : hr_text_table_column(t->text, t->columns[i].shown - 1,
							    title.data, t->columns[i].number);
		hr_buffer_done(&title);
	}
	return error;
}

/* Takes the lines with the names and types of columns. */
static int take_columns(struct answer_table *t, char *names, char *types)
{
	char *rest = strdup(names), *at = rest;
	int error = 0;

	t->n = 1;
	for (const char *c = names; *c; c++)
		t->n += *c == '\t';
	t->columns = calloc(t->n, sizeof(*t->columns));
	t->row = calloc(t->n, sizeof(*t->row));
	if (!t->columns || !t->row || !rest)
		error = -ENOMEM;
	for (unsigned i = 0; error == 0 && i < t->n; i++) {
		const char *type = strsep(&types, "\t");

		t->columns[i] = make_column(t, strsep(&at, "\t"), type ? type : "");
		t->n_shown += t->columns[i].shown > 0;
	}
	free(rest);
	return error == 0 ? name_columns(t, names) : error;
}

static void put_row(struct answer_table *t, char *line, struct hr_buffer *out)
{
	for (unsigned i = 0; i < t->n; i++) {
		char *field = strsep(&line, "\t");

		if (t->columns[i].shown > 0)
			t->row[t->columns[i].shown - 1] =
			    make_cell(t, &t->columns[i], field ? field : (char[]){""});
	}
	for (unsigned i = 0; i < t->n_shown; i++)
		hr_text_table_cell(t->text, t->row[i], out);
}

static int write_out(struct hr_buffer *out, int error, FILE *to)
{
	if (error == 0 && (out->failed || fwrite(out->data, 1, out->n, to) != out->n))
		error = out->failed ? -ENOMEM : -errno;
	hr_buffer_done(out);
	return error;
}

int hr_tsv_table(char *text, const struct hr_query_request *r, const struct hr_named *query,
		 FILE *to)
{
	struct answer_table t = {.request = r, .query = query};
	struct hr_buffer out = {0};
	char *names = strsep(&text, "\n"), *types = strsep(&text, "\n"), *line;
	int error = names && types ? take_columns(&t, names, types) : 0;

	while (error == 0 && t.text && (line = strsep(&text, "\n")) && text)
		put_row(&t, line, &out);
	if (error == 0 && t.text)
		hr_text_table_end(t.text, &out);
	hr_text_table_free(t.text);
	free(t.columns);
	free(t.row);
	return write_out(&out, error, to);
}

int hr_tsv_csv(char *text, FILE *to)
{
	struct hr_buffer out = {0};
	char *line;

	for (unsigned i = 0; (line = strsep(&text, "\n")) && text; i++) {
		const char *comma = "";

		for (char *field; i != 1 && (field = strsep(&line, "\t")); comma = ",") {
			hr_buffer_add(&out, comma, strlen(comma));
			if (strcmp(field, "\\N") == 0)
				continue;
			unescape_field(field);
			hr_value_csv(&out, field, strlen(field));
		}
		if (i != 1) /* the types */
			hr_buffer_add(&out, "\r\n", 2);
	}
	return write_out(&out, 0, to);
}
