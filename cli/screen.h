/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h - a view that fills the terminal and refreshes in place, for `headrace top`
 *
 * A process has one screen. One thread uses it.
 */
#ifndef HEADRACE_CLI_SCREEN_H
#define HEADRACE_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

/* ---- text that fits into cells (screen_text.c) ---- */

/*
 * Callers escape paths and command lines first (hr_text_escape), so that the text has no control
 * bytes. These functions replace format characters and right-to-left marks by `?`.
 */

/* A growing text. `failed`: a part is missing, because memory was short. */
struct hr_screen_text {
	char *s;
	size_t bytes, room;
	bool failed;
};

void hr_screen_text_put(struct hr_screen_text *t, const char *bytes, size_t n);
void hr_screen_text_done(struct hr_screen_text *t);

enum hr_screen_cut { HR_SCREEN_CUT_END, HR_SCREEN_CUT_BEGIN };

/*
 * Appends UTF-8 text in at most `cells` cells. A longer text is cut at its end or, for paths, at
 * its start; `...` shows the cut. `padded`: adds blanks up to `cells`.
 */
void hr_screen_text_fit(struct hr_screen_text *t, const char *text, unsigned cells,
			enum hr_screen_cut cut, bool padded);

/* Returns a time of the wall clock, for example "23:22:05", in the local time zone. */
struct hr_human hr_screen_clock(uint64_t real_ns);

/* ---- the terminal (screen.c) ---- */

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
