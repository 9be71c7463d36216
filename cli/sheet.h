/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.h - lines for people: on a terminal they have its width, and styles that only repeat what
 * the words mean; elsewhere they have no styles, and sentences are not wrapped
 *
 * Text may quote names of another user: hr_sheet_put shows control bytes, line ends and bytes that
 * are not UTF-8 as `\xHH`. The sheet borrows the FILE. One thread.
 */
#ifndef HEADRACE_CLI_SHEET_H
#define HEADRACE_CLI_SHEET_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum hr_style { HR_STYLE_PLAIN, HR_STYLE_BOLD, HR_STYLE_GOOD, HR_STYLE_WARN, HR_STYLE_BAD };

#define HR_SHEET_COLUMNS 80u /* width of tables that do not go to a terminal */

struct hr_sheet {
	FILE *out;
	unsigned columns;  /* of the terminal, at least 40; 0: no terminal */
	bool colour;	   /* false also if NO_COLOR is set or TERM is "dumb" */
	char folder[4096]; /* the working folder, escaped, if paths are relative to it; else "" */
};

/* Sets width and styles, and the working folder of a terminal, from `out` and the environment. */
void hr_sheet_init(struct hr_sheet *p, FILE *out);

/* Returns the width of tables. */
static inline unsigned hr_sheet_width(const struct hr_sheet *p)
{
	return p->columns > 0 ? p->columns : HR_SHEET_COLUMNS;
}

__attribute__((format(printf, 3, 4))) void hr_sheet_put(struct hr_sheet *p, enum hr_style style,
							const char *format, ...);
__attribute__((format(printf, 3, 0))) void hr_sheet_vput(struct hr_sheet *p, enum hr_style style,
							 const char *format, va_list args);
void hr_sheet_end(struct hr_sheet *p); /* ends the line */

/*
 * Prints a sentence after a label, for which it leaves `indent` columns. On a terminal, further
 * lines begin there, too.
 */
__attribute__((format(printf, 5, 6))) void hr_sheet_say(struct hr_sheet *p, enum hr_style style,
							unsigned indent, const char *label,
							const char *format, ...);

/*
 * Returns the bytes of the first line of a text: words of at most `cells` cells, or one long word.
 */
size_t hr_sheet_words(const char *text, size_t cells);

/* Like hr_text_path_short, relative to the folder of the sheet. In a file, paths are complete. */
void hr_sheet_path(const struct hr_sheet *p, char *out, size_t out_bytes, const char *path,
		   size_t cells);

#endif
