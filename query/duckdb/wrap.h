/* SPDX-License-Identifier: Apache-2.0 */
/* wrap.h - breaks a line of text to the width of a terminal */
#ifndef HEADRACE_QUERY_DUCKDB_WRAP_H
#define HEADRACE_QUERY_DUCKDB_WRAP_H

#include "query/duckdb/value.h"

/*
 * Appends a line without its line end. Breaks it at spaces, but not between a number and its unit,
 * into lines of at most `width` (0: no limit). Further lines begin with `indent` spaces. `have` is
 * the width of the text that is already on the first line.
 */
void hr_wrap(struct hr_buffer *to, const char *line, size_t have, size_t indent, size_t width);

#endif
