/* SPDX-License-Identifier: Apache-2.0 */
/* headrace - calls the main function of the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/query.h"
#include "query/named.h"
#include "daemon/node/recover.h"

static int print_help(void)
{
	puts("headrace records every I/O operation of a deep-learning job and reports what the job "
	     "waits for.\n");
	puts("usage:");
	for (size_t i = 0; hr_commands[i].name != NULL; i++)
		printf("  headrace %s %s\n      %s\n", hr_commands[i].name, hr_commands[i].synopsis,
		       hr_commands[i].what);
	puts("  headrace --version\n      print the version\n"
	     "\n`headrace COMMAND --help` lists the options of a command.\n\n"
	     "  headrace run -- python3 train.py        record, then print a summary\n"
	     "  headrace query ./headrace-* summary     ask again later");
	return EXIT_SUCCESS;
}

/* Returns the command that has the longest common prefix with `typed`; NULL: none. */
static const char *nearest_command(const char *typed)
{
	const char *best = NULL;
	size_t best_shared = 0;

	for (size_t i = 0; hr_commands[i].name != NULL; i++) {
		size_t shared = 0;

		while (typed[shared] != '\0' && typed[shared] == hr_commands[i].name[shared])
			shared++;
		if (shared > best_shared) {
			best = hr_commands[i].name;
			best_shared = shared;
		}
	}
	return best;
}

static int unknown_command(const char *typed)
{
	const char *near = nearest_command(typed);

	if (hr_named_find(typed) != NULL)
		hr_report("unknown command: '%s'" HR_HINT "it is a query: `headrace query "
			  "STORE %s`",
			  typed, typed);
	else if (near != NULL)
		hr_report("unknown command: '%s'" HR_HINT "did you mean `headrace %s`? "
			  "`headrace --help` lists all commands",
			  typed, near);
	else
		hr_report("unknown command: '%s'" HR_HINT "`headrace --help` lists all commands",
			  typed);
	return HR_EXIT_USAGE;
}

static int help(const char *name)
{
	if (name == NULL)
		return print_help();
	for (size_t i = 0; hr_commands[i].name != NULL; i++)
		if (strcmp(name, hr_commands[i].name) == 0)
			return hr_command_help(name);
	return unknown_command(name);
}

int main(int argc, char **argv)
{
	hr_query_recover = hr_store_recover;
	if (argc < 2) {
		hr_report("no command given" HR_HINT "`headrace run -- CMD` records a "
			  "program; `headrace --help` lists all commands");
		return HR_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_help();
	if (strcmp(argv[1], "help") == 0)
		return help(argv[2]);
	if (strcmp(argv[1], "--version") == 0) {
		puts("headrace " HEADRACE_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 3 && strcmp(argv[1], "--generate") == 0 && hr_manual_print(argv[2]))
		return EXIT_SUCCESS;
	for (size_t i = 0; hr_commands[i].name != NULL; i++)
		if (strcmp(argv[1], hr_commands[i].name) == 0)
			return hr_commands[i].main(argc - 1, argv + 1);
	return unknown_command(argv[1]);
}
