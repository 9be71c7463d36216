/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.h - prints lines for people
 *
 * On a terminal, lines are wrapped and have styles (colours); in a file or pipe, they have neither.
 * Text may quote names of another user: hr_sheet_put shows control bytes, line ends and bytes that
 * are not UTF-8 as `\xHH`. The caller keeps the FILE open. One thread.
 */
#ifndef HEADRACE_CLI_SHEET_H
#define HEADRACE_CLI_SHEET_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum hr_style { HR_STYLE_PLAIN, HR_STYLE_BOLD, HR_STYLE_GOOD, HR_STYLE_WARN, HR_STYLE_BAD };

/* Returns the number of columns of the terminal; 0: the descriptor is no terminal. */
unsigned hr_terminal_width(int fd);

/* Returns whether the descriptor is a terminal with colours, and NO_COLOR is not set. */
bool hr_terminal_colour(int fd);

#define HR_SHEET_COLUMNS 80u /* width of tables in a file or pipe */

struct hr_sheet {
	FILE *out;
	unsigned columns; /* columns of the terminal, at least 40; 0: no terminal */
	bool colour;	  /* false also if NO_COLOR is set or TERM is "dumb" */
	/* if paths are relative to the working directory: its escaped path; else "" */
	char folder[4096];
};

/* Reads the width, the colours and the working directory. */
void hr_sheet_init(struct hr_sheet *p, FILE *out);

static inline const char *hr_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static inline unsigned hr_sheet_width(const struct hr_sheet *p)
{
	return p->columns > 0 ? p->columns : HR_SHEET_COLUMNS;
}

__attribute__((format(printf, 3, 4))) void hr_sheet_put(struct hr_sheet *p, enum hr_style style,
							const char *format, ...);
__attribute__((format(printf, 3, 0))) void hr_sheet_vput(struct hr_sheet *p, enum hr_style style,
							 const char *format, va_list args);
void hr_sheet_end(struct hr_sheet *p);

/* Prints a line. */
#define hr_sheet_line(sheet, style, ...)                                                           \
	(hr_sheet_put(sheet, style, __VA_ARGS__), hr_sheet_end(sheet))

/* Prints a label, and a sentence in the columns after `indent`, on one line or more. */
__attribute__((format(printf, 5, 6))) void hr_sheet_say(struct hr_sheet *p, enum hr_style style,
							unsigned indent, const char *label,
							const char *format, ...);

/* Returns how many bytes fit into `cells` cells: whole words, or one word that is too long. */
size_t hr_sheet_words(const char *text, size_t cells);

/* Shortens a path like hr_text_path_short. A file gets the whole path. */
void hr_sheet_path(const struct hr_sheet *p, char *out, size_t out_bytes, const char *path,
		   size_t cells);

#endif
