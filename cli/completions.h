/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function prints the completion script of a shell, from the command table. The scripts call
 * `headrace --complete` (cli/complete/) for operands.
 */
#ifndef HEADRACE_CLI_COMPLETIONS_H
#define HEADRACE_CLI_COMPLETIONS_H

void hr_completions_bash(void);
void hr_completions_zsh(void);
void hr_completions_fish(void);

#endif
