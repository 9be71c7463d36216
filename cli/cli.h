/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what all commands share: messages, exit statuses, options, where other parts are
 * installed
 *
 * Purpose   One voice (`headrace: ...` on standard error; standard output belongs to the program
 *           that is run, or to the answer of a query), one option table per command that yields
 *           parsing, --help, man page and completions.
 * Owner     Results are the caller's to free. Option tables are constant.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_CLI_H
#define HEADRACE_CLI_CLI_H

#include <stddef.h>

enum hr_exit {
	HR_EXIT_USAGE = 2,
	HR_EXIT_STORE_FAILED = 125, /* run: nothing was started */
	HR_EXIT_NOT_EXECUTABLE = 126,
	HR_EXIT_NOT_FOUND = 127,
	HR_EXIT_SIGNAL = 128
};

/* One line on standard error, prefixed; written at once so that lines of several ranks do not mix.
 */
void hr_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options --------------------------------------------------------------------------------- */

struct hr_option {
	const char *name;   /* long name; the last entry has NULL */
	int id;		    /* what hr_option_next returns; a letter is the short option too */
	const char *arg;    /* what to call the argument, NULL: takes none */
	const char *help;   /* one line */
	const char *values; /* words that the argument may be; HR_VALUES_QUERIES; NULL: paths */
};

#define HR_VALUES_QUERIES "@" /* the named queries */
#define HR_VALUES_OTHER	  ""  /* what nobody can offer */

struct hr_options {
	const struct hr_option *table;
	char **argv;
	int argc;
	int next; /* index of the next argument; after the last option: of the first operand */
	const char *value; /* of the option just returned */
};

enum { HR_OPTION_END = -1, HR_OPTION_BAD = -2 };

/*
 * The next option's id; HR_OPTION_END at the first operand or after `--`; HR_OPTION_BAD after
 * saying what is wrong. Accepts --name VALUE, --name=VALUE, -x VALUE and -xVALUE.
 */
int hr_option_next(struct hr_options *o);

/* The options as lines of --help, on standard output. */
void hr_options_print(const struct hr_option *table);

/* ---- installation ---------------------------------------------------------------------------- */

/*
 * Path of "headraced", "libheadrace.so" or "python/startup": in $HEADRACE_LIBEXEC, in the build tree, or where they
 * are installed relative to this program. A new string, NULL when there is none.
 */
char *hr_part_find(const char *name);

#endif
