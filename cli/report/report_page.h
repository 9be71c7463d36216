/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page.h - the statement that reads the content of a report, and the page made of the answer
 *
 * The statement reads all queries of sql/ at once. Each row of its answer is a member of the JSON
 * object that page/page.ts draws (`"steps": [...]`), or the HTML of the verdict.
 */
#ifndef HEADRACE_CLI_REPORT_REPORT_PAGE_H
#define HEADRACE_CLI_REPORT_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/query/query.h"

/* Returns the statement for `headrace query` (malloc'ed); NULL: no memory. */
char *hr_report_page_sql(void);

/* The head and the data of a page; of hr_report_page_init(), the texts are malloc'ed. */
struct hr_report_page {
	char *verdict; /* HTML */
	char *data;    /* a JSON object */
};

/* Takes the answer. Returns 0, -ENOMEM, or -EINVAL for any other answer. */
int hr_report_page_init(struct hr_report_page *p, const struct hr_answer_rows *rows);
void hr_report_page_done(struct hr_report_page *p); /* accepts a zeroed one */

/* Writes the page. `live`: it requests new data from its server. Check ferror(to) for errors. */
void hr_report_page_write(const struct hr_report_page *p, const char *title, bool live, FILE *to);

/* Writes text as HTML. */
void hr_report_page_html(FILE *to, const char *text);

/* Writes the new data of a live page: {"verdict": HTML, "data": {...}}. */
void hr_report_page_json(const struct hr_report_page *p, FILE *to);

#endif
