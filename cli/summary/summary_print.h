/* SPDX-License-Identifier: Apache-2.0 */
/* summary_print.h - prints parts of a summary; a part without content prints nothing */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PRINT_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PRINT_H

#include "cli/summary/summary.h"

/* Prints a sentence after a label, for example "  missing". */
#define hr__summary_say(sheet, style, label, ...)                                                  \
	hr_sheet_say(sheet, style, HR_SUMMARY_INDENT, label, __VA_ARGS__)

/* summary_missing.c */
/* Returns a text for a sentence: "nothing lost", "15 lost", "the recording has gaps". */
struct hr_human hr__summary_lost(const struct hr_summary *s, bool *ret_complete);
void hr__summary_print_missing(const struct hr_summary *s, struct hr_sheet *sheet);

/* summary_table.c: rates, counts, and rows of folders, files, ranks and workers */
void hr__summary_print_table(const struct hr_summary *s, struct hr_sheet *sheet);

#endif
