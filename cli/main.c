/* SPDX-License-Identifier: Apache-2.0 */
/* headrace - calls the main function of the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/query.h"
#include "query/named.h"
#include "store/store.h"
#include "daemon/node/recover.h"
#include "common/near.h"

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
	     "  headrace ls                             list the recordings in this folder\n"
	     "  headrace query summary                  print the totals of the newest recording");
	return EXIT_SUCCESS;
}

static int unknown_command(const char *typed)
{
	struct hr_near near = hr_near(typed);
	struct hr_store_outline outline;

	for (size_t i = 0; hr_commands[i].name != NULL; i++)
		hr_near_add(&near, hr_commands[i].name);
	if (hr_named_find(typed) != NULL)
		hr_report("no command '%s': it is a query" HR_HINT "headrace query [STORE] %s",
			  typed, typed);
	else if (hr_store_outline(typed, false, &outline) == 0)
		hr_report("no command %s: it is a store" HR_HINT "headrace query STORE summary",
			  hr_near_quoted(typed).s);
	else
		hr_report("no command %s%s", hr_near_text(&near).s,
			  near.best[0] == '\0' ? HR_HINT "`headrace --help` lists all commands"
					       : "");
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
	if (argc > 3 && strcmp(argv[1], "--complete") == 0) {
		hr_complete(argc - 2, argv + 2);
		return EXIT_SUCCESS;
	}
	for (size_t i = 0; hr_commands[i].name != NULL; i++)
		if (strcmp(argv[1], hr_commands[i].name) == 0)
			return hr_commands[i].main(argc - 1, argv + 1);
	return unknown_command(argv[1]);
}
