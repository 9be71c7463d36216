/* SPDX-License-Identifier: Apache-2.0 */
/* summary_print.h - the blocks of the text of a summary: each prints nothing if it has nothing */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PRINT_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PRINT_H

#include "cli/summary/summary.h"

/* Prints a sentence after a label such as "  missing". */
#define hr__summary_say(page, style, label, ...)                                                   \
	hr_page_say(page, style, HR_SUMMARY_INDENT, label, __VA_ARGS__)

/* summary_missing.c */
/* Returns a part of a sentence: "nothing lost", "15 lost", "the recording has gaps". */
struct hr_human hr__summary_lost(const struct hr_summary *s, bool *ret_complete);
void hr__summary_print_missing(const struct hr_summary *s, struct hr_page *page);

/* summary_table.c: rates, counts, and rows of folders, files, ranks and workers */
void hr__summary_print_table(const struct hr_summary *s, struct hr_page *page);

#endif
