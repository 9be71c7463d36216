/* SPDX-License-Identifier: Apache-2.0 */
/* headrace-job - `headrace job` for hooks, of which each is a process of its own: it loads nothing but libc, in a third of the time. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"

/* In place of the table of all commands, which needs all that they need. */
int hr_command_help(const char *name)
{
	printf("headrace-job is `headrace %s`, for hooks: see headrace %s --help\n", name, name);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	return hr_job_main(argc, argv);
}
