/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands (commands.def): main functions, options, and the table of both
 *
 * Purpose   A main function gets argv[0] = the command's name and returns the exit status. manual.c
 *           turns the table into a man page and completions, so that neither is kept by hand.
 * Owner     Constant data.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_COMMANDS_H
#define HEADRACE_CLI_COMMANDS_H

#include <stdbool.h>

#include "cli/cli.h"

#define HR_COMMAND(name, synopsis, what)                                                           \
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
};

/* Prints "man", "bash", "zsh" or "fish" text on standard output. False for anything else. */
bool hr_manual_print(const struct hr_command *commands, const char *form);

#endif
