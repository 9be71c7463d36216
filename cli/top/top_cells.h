/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_cells.h - text that grows, and the cells of a terminal that it takes
 *
 * What comes from paths and command lines is escaped first (hr_text_escape): no byte of it is a control byte. What may still move
 * a terminal's cursor in ways that nobody counts (format characters, writing to the left) becomes `?` here.
 */
#ifndef HEADRACE_CLI_TOP_TOP_CELLS_H
#define HEADRACE_CLI_TOP_TOP_CELLS_H

#include "cli/top/top.h"

void hr_top_text_put(struct hr_top_text *t, const char *bytes, size_t n);
void hr_top_text_done(struct hr_top_text *t);

enum hr_top_cut { HR_TOP_CUT_END, HR_TOP_CUT_BEGIN };

/*
 * `text`, which is UTF-8, in at most `cells` cells: cut at its end, or its begin (a path tells more at its end), with `...` in that
 * place. `padded`: in exactly as many.
 */
void hr_top_text_fit(struct hr_top_text *t, const char *text, unsigned cells, enum hr_top_cut cut,
		     bool padded);

#endif
