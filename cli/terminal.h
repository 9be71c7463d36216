/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - width and colours of a terminal */
#ifndef HEADRACE_CLI_TERMINAL_H
#define HEADRACE_CLI_TERMINAL_H

#include <stdbool.h>

/* Returns the number of columns of the terminal; 0: the descriptor is no terminal. */
unsigned hr_terminal_width(int fd);

/* Returns whether the descriptor is a terminal with colours, and NO_COLOR is not set. */
bool hr_terminal_colour(int fd);

#endif
