/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (struct hr_json). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

void hr_json_init(struct hr_json *j, FILE *out)
{
	*j = (struct hr_json){.out = out, .first = true};
}

void hr_json_document(struct hr_json *j, const char *schema)
{
	hr_json_object(j, NULL);
	hr_json_string(j, "schema", schema);
}

static void put_quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static void put_indent(struct hr_json *j)
{
	if (j->line) {
		if (!j->first)
			putc(' ', j->out);
		return;
	}
	putc('\n', j->out);
	for (unsigned i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

static void begin_value(struct hr_json *j, const char *key)
{
	if (j->depth > 0) {
		if (!j->first)
			putc(',', j->out);
		put_indent(j);
	}
	j->first = false;
	if (key != NULL) {
		put_quoted(j->out, key);
		fputs(": ", j->out);
	}
}

static void open_level(struct hr_json *j, const char *key, bool array)
{
	begin_value(j, key);
	putc(array ? '[' : '{', j->out);
	j->array[j->depth++ % 16] = array;
	j->first = true;
}

void hr_json_object(struct hr_json *j, const char *key)
{
	open_level(j, key, false);
}

void hr_json_array(struct hr_json *j, const char *key)
{
	open_level(j, key, true);
}

void hr_json_end(struct hr_json *j)
{
	j->depth--;
	if (!j->first)
		put_indent(j);
	putc(j->array[j->depth % 16] ? ']' : '}', j->out);
	j->first = false;
	if (j->depth == 0)
		putc('\n', j->out);
}

bool hr_json_row(struct hr_json *j, const char *key, size_t i, size_t n)
{
	if (i == 0)
		hr_json_array(j, key);
	else
		hr_json_end(j);
	if (i < n)
		hr_json_object(j, NULL);
	else
		hr_json_end(j);
	return i < n;
}

void hr_json_string(struct hr_json *j, const char *key, const char *text)
{
	begin_value(j, key);
	if (text != NULL)
		put_quoted(j->out, text);
	else
		fputs("null", j->out);
}

void hr_json_path(struct hr_json *j, const char *key, const void *path, size_t n)
{
	char *text = hr_text_escaped(path, n);

	hr_json_string(j, key, text);
	free(text);
}

void hr_json_escaped(struct hr_json *j, const char *key, const char *text)
{
	if (text != NULL)
		hr_json_path(j, key, text, strlen(text));
	else
		hr_json_null(j, key);
}

void hr_json_uint(struct hr_json *j, const char *key, uint64_t value)
{
	begin_value(j, key);
	fprintf(j->out, "%llu", (unsigned long long)value);
}

void hr_json_uint_if(struct hr_json *j, const char *key, bool known, uint64_t value)
{
	if (known)
		hr_json_uint(j, key, value);
	else
		hr_json_null(j, key);
}

void hr_json_int(struct hr_json *j, const char *key, int64_t value)
{
	begin_value(j, key);
	fprintf(j->out, "%lld", (long long)value);
}

void hr_json_double(struct hr_json *j, const char *key, double value)
{
	begin_value(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.6g", value);
	else
		fputs("null", j->out);
}

void hr_json_bool(struct hr_json *j, const char *key, bool value)
{
	hr_json_raw(j, key, value ? "true" : "false");
}

void hr_json_raw(struct hr_json *j, const char *key, const char *json)
{
	begin_value(j, key);
	fputs(json, j->out);
}

void hr_json_null(struct hr_json *j, const char *key)
{
	hr_json_raw(j, key, "null");
}

void hr_json_plus1(struct hr_json *j, const char *key, uint32_t plus1)
{
	hr_json_uint_if(j, key, plus1 > 0, plus1 - 1);
}
