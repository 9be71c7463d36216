/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen_text.h - growing text that fits into cells of a terminal
 *
 * Callers escape paths and command lines first (hr_text_escape), so that the text has no control
 * bytes. These functions replace format characters and right-to-left marks by `?`.
 */
#ifndef HEADRACE_CLI_SCREEN_TEXT_H
#define HEADRACE_CLI_SCREEN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

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

#endif
