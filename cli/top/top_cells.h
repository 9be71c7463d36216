/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_cells.h - growing text that fits into cells of a terminal
 *
 * Callers escape paths and command lines first (hr_text_escape), so that the text has no control
 * bytes. These functions replace format characters and right-to-left marks by `?`.
 */
#ifndef HEADRACE_CLI_TOP_TOP_CELLS_H
#define HEADRACE_CLI_TOP_TOP_CELLS_H

#include "cli/top/top.h"

void hr_top_text_put(struct hr_top_text *t, const char *bytes, size_t n);
void hr_top_text_done(struct hr_top_text *t);

enum hr_top_cut { HR_TOP_CUT_END, HR_TOP_CUT_BEGIN };

/*
 * Appends UTF-8 text in at most `cells` cells. A longer text is cut at its end or, for paths, at
 * its start; `...` shows the cut. `padded`: adds blanks up to `cells`.
 */
void hr_top_text_fit(struct hr_top_text *t, const char *text, unsigned cells, enum hr_top_cut cut,
		     bool padded);

#endif
