/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what all commands share: messages, exit statuses, options, paths of installed parts
 *
 * Messages go to standard error and begin with `headrace: `; standard output belongs to the
 * recorded program or to an answer. Each command has one constant table of options:
 * parsing, --help, the man page and the completions use this table.
 */
#ifndef HEADRACE_CLI_CLI_H
#define HEADRACE_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hr_exit {
	HR_EXIT_USAGE = 2,
	HR_EXIT_NO_SERVICE = 69,    /* no headraced or collector answers (EX_UNAVAILABLE) */
	HR_EXIT_STORE_FAILED = 125, /* `headrace run` has not started CMD */
	HR_EXIT_NOT_EXECUTABLE = 126,
	HR_EXIT_NOT_FOUND = 127,
	HR_EXIT_SIGNAL = 128
};

void hr_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define HR_HINT "\nheadrace: hint: "

/* Returns the value of an environment variable; NULL: unset or empty. */
const char *hr_getenv(const char *name);

/* Returns the folder for temporary files: TMPDIR, or /tmp. */
const char *hr_temporary(void);

/* Makes a private folder "NAME..." in hr_temporary() (malloc'ed). NULL: failed, see errno. */
char *hr_temporary_folder(const char *name);

/* Removes a folder with its content, as far as possible. */
void hr_remove_tree(const char *path);

/* ---- options ---- */
struct hr_option {
	const char *name; /* long name; NULL: end of the table */
	/* result of hr_option_next; below 128: also the letter of the short option */
	int id;
	/*
	 * name of the argument in --help; NULL: the option takes no argument. "[=NAME]": it may
	 * have one, as --name=VALUE only
	 */
	const char *arg;
	const char *help;
	/* what completions offer as values: a list of words, or HR_VALUES_...; NULL: paths */
	const char *values;
};

#define HR_VALUES_QUERIES "@"
#define HR_VALUES_OTHER	  "" /* any text: completions offer nothing */

struct hr_options {
	const struct hr_option *table;
	char **argv;
	int argc;
	/* index of the next argument; after HR_OPTION_END: index of the first operand */
	int next;
	const char *value; /* argument of the last option */
};

enum { HR_OPTION_END = -1, HR_OPTION_BAD = -2, HR_OPTION_JSON = 'j', HR_OPTION_FORMAT = 1024 };

/*
 * The options of a command that prints an answer: --format with one of the words, of which the
 * first is the default, and --json or -j.
 */
#define HR_OPTIONS_FORMAT(words)                                                                   \
	{"format", HR_OPTION_FORMAT, "FORMAT", "one of: " words " (default: the first)", words},   \
	{                                                                                          \
		"json", HR_OPTION_JSON, NULL, "the same as --format json", NULL                    \
	}

/* The last rows of a table. */
#define HR_OPTIONS_END                                                                             \
	{"help", 'h', NULL, "print this text", NULL},                                              \
	{                                                                                          \
		NULL, 0, NULL, NULL, NULL                                                          \
	}

/*
 * The id of an option that only sets a member of a struct: a text to its argument, or a bool to
 * true. hr_option_store does this. A member of another type is a division by 0.
 */
#define HR_OPTION_TEXTS (1 << 20) /* the first id of each kind */
#define HR_OPTION_FLAGS (2 << 20)
#define HR_OPTION_MEMBER(base, type, member, wanted)                                               \
	((int)((base) + offsetof(type, member)) +                                                  \
	 0 / __builtin_types_compatible_p(__typeof__(((type *)0)->member), wanted))
#define HR_OPTION_TEXT(type, member) HR_OPTION_MEMBER(HR_OPTION_TEXTS, type, member, const char *)
#define HR_OPTION_FLAG(type, member) HR_OPTION_MEMBER(HR_OPTION_FLAGS, type, member, bool)

/* Sets the member of *self that the id names. Returns false for any other id. */
bool hr_option_store(void *self, int id, const char *value);

/*
 * Returns the next option's id; HR_OPTION_END at the first operand or after `--`; HR_OPTION_BAD
 * after reporting a mistake. SQL that begins with a comment (`-- `) is an operand. Accepts
 * --name VALUE, --name=VALUE, -x VALUE and -xVALUE. For --format and --json, returns
 * HR_OPTION_FORMAT with a valid word as the value.
 */
int hr_option_next(struct hr_options *o);
bool hr_option_is_json(const char *format);

/* Returns whether the option needs an argument. */
bool hr_option_needs_value(const struct hr_option *o);

/* Reports that the value of --name must be `expected`. Returns -1. */
int hr_option_wrong(const char *name, const char *expected, const char *value);

/* Read a time, or a number from `least` to `most`. Return 0, or -1 as hr_option_wrong does. */
int hr_option_time(const char *name, const char *expected, const char *value, uint64_t *ret_ns);
int hr_option_number(const char *name, const char *expected, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret);

/* Like hr_option_wrong, for an option with few values, for example "trace counters". Returns -1. */
int hr_option_wrong_word(const char *name, const char *words, const char *value);

/*
 * Returns the index of the value in a list such as "trace counters", or -1 after it has reported a
 * mistake.
 */
int hr_option_word(const char *name, const char *words, const char *value);

void hr_options_print(const struct hr_option *table);

/* ---- installation ---- */
/*
 * Finds "headraced", "libheadrace.so" or "python/startup" in $HEADRACE_LIBEXEC, in the build tree,
 * or relative to this program. Returns a string that the caller frees; NULL: not found.
 */
char *hr_part_find(const char *name);

#endif
