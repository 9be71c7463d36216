/* SPDX-License-Identifier: Apache-2.0 */
/* headrace-job - `headrace job` for hooks: it starts faster than headrace. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"

/* Replaces hr_command_help() of commands.c, because that file would link all commands. */
int hr_command_help(const char *name)
{
	printf("headrace-job is `headrace %s`, for hooks: see headrace %s --help\n", name, name);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	return hr_job_main(argc, argv);
}
