/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the main function of each command (commands.def)
 *
 * Purpose   argv[0] is the command's name; the return value is the exit status.
 * Threads   Called once, from main.
 */
#ifndef HEADRACE_CLI_COMMANDS_H
#define HEADRACE_CLI_COMMANDS_H

#define HR_COMMAND(name, function, synopsis, what) int function(int argc, char **argv);
#include "cli/commands.def"
#undef HR_COMMAND

#endif
