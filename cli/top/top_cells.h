/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_cells.h - growing text, and the cells of a terminal that it occupies
 *
 * Purpose   Callers escape paths and command lines first (hr_text_escape), so that the text has no
 *           control bytes. These functions replace other characters that move the cursor (format
 *           characters, right-to-left marks) by `?`.
 * Owner     The caller. Threads: one.
 */
#ifndef HEADRACE_CLI_TOP_TOP_CELLS_H
#define HEADRACE_CLI_TOP_TOP_CELLS_H

#include "cli/top/top.h"

void hr_top_text_put(struct hr_top_text *t, const char *bytes, size_t n);
void hr_top_text_done(struct hr_top_text *t);

enum hr_top_cut { HR_TOP_CUT_END, HR_TOP_CUT_BEGIN };

/*
 * Appends UTF-8 text in at most `cells` cells. A longer text is cut at its end or its beginning
 * (paths), and gets `...` there. `padded`: blanks fill the cells.
 */
void hr_top_text_fit(struct hr_top_text *t, const char *text, unsigned cells, enum hr_top_cut cut,
		     bool padded);

#endif
