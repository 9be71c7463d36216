/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report/report_page.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "query/named.h"

/* The build makes these tables from the files in sql/ and page/. */
extern const struct hr_named hr__report_queries[], hr__report_files[];

#define COMMON	"common"  /* the query with the expressions that the other queries share */
#define VERDICT "verdict" /* the query whose answer is HTML */

static const char *text_of(const struct hr_named *list, const char *name)
{
	while (list->name != NULL && strcmp(list->name, name) != 0)
		list++;
	return list->name != NULL ? list->sql : "";
}

static void print_query(FILE *to, const struct hr_named *query)
{
	if (strcmp(query->name, VERDICT) == 0)
		fprintf(to, "SELECT html AS line FROM (%s)", query->sql);
	else
		fprintf(to,
			"SELECT '\"%s\": ' || coalesce(to_json(list(t))::VARCHAR, '[]') AS line "
			"FROM (%s) t",
			query->name, query->sql);
}

char *hr_report_page_sql(void)
{
	const char *separator = "\n";
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (to == NULL)
		return NULL;
	fprintf(to, "WITH %s", text_of(hr__report_queries, COMMON));
	for (const struct hr_named *q = hr__report_queries; q->name != NULL; q++) {
		if (strcmp(q->name, COMMON) == 0)
			continue;
		fputs(separator, to);
		print_query(to, q);
		separator = "\nUNION ALL\n";
	}
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

/* Appends the rows that are JSON members to `data`. The other row is the verdict. */
static int take_rows(struct hr_report_page *p, const struct hr_answer_rows *rows, FILE *data)
{
	size_t members = 0;

	for (size_t i = 0; i < rows->n_rows; i++) {
		const char *text = hr_rows_cell(rows, i, 0);

		if (text != NULL && text[0] == '"') {
			fputs(members++ > 0 ? ",\n" : "{", data);
			fputs(text, data);
		} else if (text != NULL && p->verdict == NULL) {
			p->verdict = strdup(text);
			if (p->verdict == NULL)
				return -ENOMEM;
		}
	}
	fputs(members > 0 ? "}" : "{}", data);
	return p->verdict != NULL && members > 0 ? 0 : -EINVAL;
}

int hr_report_page_init(struct hr_report_page *p, const struct hr_answer_rows *rows)
{
	size_t bytes;
	FILE *data;
	int r;

	*p = (struct hr_report_page){0};
	if (rows->n_columns != 1)
		return -EINVAL;
	data = open_memstream(&p->data, &bytes);
	if (data == NULL)
		return -ENOMEM;
	r = take_rows(p, rows, data);
	if (fclose(data) != 0)
		r = -ENOMEM;
	if (r < 0)
		hr_report_page_done(p);
	return r;
}

void hr_report_page_done(struct hr_report_page *p)
{
	free(p->verdict);
	free(p->data);
	*p = (struct hr_report_page){0};
}

void hr_report_page_html(FILE *to, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '&')
			fputs("&amp;", to);
		else
			fputc(*text, to);
	}
}

/* Escapes each "<" of JSON, because "</" could end the script element of the page. */
static void print_script_safe(FILE *to, const char *json)
{
	for (; *json != '\0'; json++) {
		if (*json == '<')
			fputs("\\u003c", to);
		else
			fputc(*json, to);
	}
}

static void print_queries(bool live, FILE *to)
{
	struct hr_json json;
	char *text = NULL;
	size_t bytes;
	FILE *queries = open_memstream(&text, &bytes);

	if (queries == NULL)
		return;
	hr_json_init(&json, queries);
	hr_json_object(&json, NULL);
	hr_json_string(&json, "version", HEADRACE_VERSION);
	hr_json_bool(&json, "live", live);
	hr_json_object(&json, "queries");
	hr_json_string(&json, COMMON, text_of(hr__report_queries, COMMON));
	for (const struct hr_named *q = hr__report_queries; q->name != NULL; q++)
		if (strcmp(q->name, COMMON) != 0 && strcmp(q->name, VERDICT) != 0)
			hr_json_string(&json, q->name, q->sql);
	hr_json_end(&json);
	hr_json_end(&json);
	if (fclose(queries) == 0)
		print_script_safe(to, text);
	free(text);
}

static void print_part(const struct hr_report_page *p, const char *title, bool live,
		       const char *name, size_t n, FILE *to)
{
	char file[32];

	snprintf(file, sizeof(file), "%.*s", (int)n, name);
	if (strcmp(file, "title") == 0)
		hr_report_page_html(to, title);
	else if (strcmp(file, "verdict") == 0)
		fputs(p->verdict, to);
	else if (strcmp(file, "page") == 0)
		print_queries(live, to);
	else if (strcmp(file, "data") == 0)
		print_script_safe(to, p->data);
	else
		fputs(text_of(hr__report_files, file), to);
}

/* Replaces each {{NAME}} in page.html. */
void hr_report_page_write(const struct hr_report_page *p, const char *title, bool live, FILE *to)
{
	const char *at = text_of(hr__report_files, "page.html"), *name, *end;

	while ((name = strstr(at, "{{")) != NULL && (end = strstr(name, "}}")) != NULL) {
		fwrite(at, 1, (size_t)(name - at), to);
		print_part(p, title, live, name + 2, (size_t)(end - name - 2), to);
		at = end + 2;
	}
	fputs(at, to);
}

void hr_report_page_json(const struct hr_report_page *p, FILE *to)
{
	struct hr_json json;

	hr_json_init(&json, to);
	hr_json_document(&json, "headrace-report/1");
	hr_json_string(&json, "verdict", p->verdict);
	hr_json_raw(&json, "data", p->data);
	hr_json_end(&json);
}
