/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands (commands.def): main functions, options, the table of both, and the environment (variables.def)
 *
 * Purpose   A main function gets argv[0] = the command's name and returns the exit status. The
 *           table is the one source of --help, of the man page and of the completions.
 * Owner     Constant data.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_COMMANDS_H
#define HEADRACE_CLI_COMMANDS_H

#include <stdbool.h>

#include "cli/cli.h"

/* Takes a name of what a command knows, as a query or a check, and n bytes about it. */
typedef void hr_topic(const char *name, const char *about, size_t n);

void hr_query_topics(hr_topic *topic);
void hr_doctor_topics(hr_topic *topic);

#define HR_COMMAND(name, synopsis, what, about, title, topics)                                     \
	int hr_##name##_main(int argc, char **argv);                                               \
	extern const struct hr_option hr_##name##_option_table[];
#include "cli/commands.def"
#undef HR_COMMAND

struct hr_command {
	const char *name; /* the last entry has NULL */
	int (*main)(int argc, char **argv);
	const struct hr_option *options;
	const char *synopsis;
	const char *what;
	const char *about;
	const char *topics_title;
	void (*topics)(hr_topic *topic); /* NULL: none */
};
extern const struct hr_command hr_commands[];

struct hr_variable {
	const char *names;    /* "A, B"; the last entry has NULL */
	const char *commands; /* that look at them: "run query" */
	const char *what;
};
extern const struct hr_variable hr_variables[];

/* Prints the help of the command with this name on standard output. Returns EXIT_SUCCESS. */
int hr_command_help(const char *name);

/* Prints "man", "bash", "zsh" or "fish" text on standard output. False for anything else. */
bool hr_manual_print(const char *form);

#endif
