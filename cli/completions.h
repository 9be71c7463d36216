/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts of shells, from the command table, and the operands that they offer. */
#ifndef HEADRACE_CLI_COMPLETIONS_H
#define HEADRACE_CLI_COMPLETIONS_H

/* Prints the operands of a command that begin with the last word: COMMAND [WORD...] CURRENT. */
void hr_complete(int argc, char **argv);

/* Each prints the script of a shell. The scripts call `headrace --complete` for operands. */
void hr_completions_bash(void);
void hr_completions_zsh(void);
void hr_completions_fish(void);

#endif
