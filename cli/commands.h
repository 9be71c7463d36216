/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands (commands.def) and the environment variables (variables.def)
 *
 * From these tables, --help, man page and completions are generated. The main function of a
 * command receives the name of the command in argv[0], and returns the exit status.
 */
#ifndef HEADRACE_CLI_COMMANDS_H
#define HEADRACE_CLI_COMMANDS_H

#include <stdbool.h>

#include "cli/cli.h"

/* Called for each topic (named query, check of doctor), with n bytes of text about it. */
typedef void hr_topic(const char *name, const char *about, size_t n);

void hr_query_topics(hr_topic *topic);
void hr_doctor_topics(hr_topic *topic);

#define HR_COMMAND(id, name, synopsis, what, about, title, topics)                                 \
	int hr_##id##_main(int argc, char **argv);                                                 \
	extern const struct hr_option hr_##id##_option_table[];
#include "cli/commands.def"
#undef HR_COMMAND

struct hr_command {
	const char *name; /* NULL: end of the table */
	int (*main)(int argc, char **argv);
	const struct hr_option *options;
	const char *synopsis;
	const char *what;
	const char *about;
	const char *topics_title;
	void (*topics)(hr_topic *topic); /* NULL: the command has no topics */
};
extern const struct hr_command hr_commands[];

struct hr_variable {
	const char *names;    /* "A, B"; NULL: end of the table */
	const char *commands; /* commands that read them: "run query" */
	const char *what;
};
extern const struct hr_variable hr_variables[];

/* Prints the help of a command on standard output. Returns EXIT_SUCCESS. */
int hr_command_help(const char *name);

/*
 * Takes an option with its value, or an operand, which has the id HR_OPTION_END. Returns 0; after
 * it has reported a mistake: -1, or an exit status.
 */
typedef int hr_argument(void *self, int id, const char *value);

/*
 * Stores the options that name a member of *self (hr_option_store), and calls `take` for others
 * and for operands, in any order. Returns true with
 * EXIT_SUCCESS in *ret_status; or false with the exit status, after --help or a mistake.
 */
bool hr_arguments(int argc, char **argv, const struct hr_option *table, hr_argument *take,
		  void *self, int *ret_status);

/* Prints the operands that begin with the last word: COMMAND [WORD...] CURRENT (complete/). */
void hr_complete(int argc, char **argv);

/* Print the completion script of a shell, which calls `headrace --complete` for operands. */
void hr_completions_bash(void);
void hr_completions_zsh(void);
void hr_completions_fish(void);

/* Prints the man page ("man"), or completions ("bash", "zsh", "fish"). False for other texts. */
bool hr_manual_print(const char *form);

#endif
