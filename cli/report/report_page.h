/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page.h - the query that reads what a report shows, and the HTML page made of its answer
 *
 * The statement reads all queries of sql/ at once. Each row of its answer is a member of the JSON
 * object that page/page.ts draws (`"steps": [...]`), or the HTML of the verdict.
 */
#ifndef HEADRACE_CLI_REPORT_REPORT_PAGE_H
#define HEADRACE_CLI_REPORT_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The statement for `headrace query` (malloc'ed); NULL: no memory. */
char *hr_report_page_sql(void);

/* What the statement answered; the texts are malloc'ed. */
struct hr_report_page {
	char *verdict; /* HTML */
	char *data;    /* a JSON object without '<' */
};

/* Reads the answer, `n` bytes of CSV. 0, -ENOMEM, or -EINVAL: not an answer of this statement. */
int hr_report_page_init(struct hr_report_page *p, const char *csv, size_t n);
void hr_report_page_done(struct hr_report_page *p); /* accepts a zeroed one */

/* Writes the whole page. `live`: it asks its server for data. Errors remain in `to` (ferror). */
void hr_report_page_write(const struct hr_report_page *p, const char *title, bool live, FILE *to);

/* Writes what a live page asks for: {"verdict": HTML, "data": {...}}. */
void hr_report_page_json(const struct hr_report_page *p, FILE *to);

#endif
