/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.h - completion scripts for shells, from the command table
 *
 * Purpose   Each function prints the script for its shell on standard output. The arguments of
 *           named queries come from their headers (query/named.h).
 * Threads   One.
 */
#ifndef HEADRACE_CLI_COMPLETIONS_H
#define HEADRACE_CLI_COMPLETIONS_H

void hr_completions_bash(void);
void hr_completions_zsh(void);
void hr_completions_fish(void);

#endif
