/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - what a terminal can show */
#ifndef HEADRACE_CLI_TERMINAL_H
#define HEADRACE_CLI_TERMINAL_H

#include <stdbool.h>

/* Returns the columns of the terminal of a descriptor; 0: it is no terminal. */
unsigned hr_terminal_width(int fd);

/* True: it is a terminal that shows colours, and NO_COLOR is not set. */
bool hr_terminal_colour(int fd);

#endif
