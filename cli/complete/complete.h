/* SPDX-License-Identifier: Apache-2.0 */
/* complete.h - the operands that the completion scripts (cli/completions.h) offer */
#ifndef HEADRACE_CLI_COMPLETE_COMPLETE_H
#define HEADRACE_CLI_COMPLETE_COMPLETE_H

/* Prints the operands of a command that begin with the last word: COMMAND [WORD...] CURRENT. */
void hr_complete(int argc, char **argv);

#endif
