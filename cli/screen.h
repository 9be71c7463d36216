/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h - a view that fills the terminal and refreshes in place, for `headrace top`
 *
 * A process has one screen. One thread uses it.
 */
#ifndef HEADRACE_CLI_SCREEN_H
#define HEADRACE_CLI_SCREEN_H

#include "cli/screen_text.h"

/* Returns whether standard output is a terminal with a cursor. */
bool hr_screen_usable(void);

/* Opens the alternate screen, and turns echo off. *ret_fd is readable after a signal. */
int hr_screen_open(int *ret_fd);

/* Restores the terminal if the screen is open. */
void hr_screen_close(void);

enum hr_screen_event { HR_SCREEN_NOTHING, HR_SCREEN_REDRAW, HR_SCREEN_END };

/* Handles signals. *ret_signal: the signal that ends top, or 0. */
enum hr_screen_event hr_screen_signals(int *ret_signal);

void hr_screen_size(unsigned *ret_columns, unsigned *ret_rows);

void hr_screen_put(const struct hr_screen_text *text);

#endif
