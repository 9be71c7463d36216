/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/wrap.h"

#include <string.h>

/*
 * Returns the last space in (from, to] that is not between a number and its unit. If there is none,
 * returns the next space or the end.
 */
static size_t wrap_break(const char *line, size_t from, size_t to)
{
	for (size_t end = to; end > from; end--)
		if (line[end] == ' ' && (line[end - 1] < '0' || line[end - 1] > '9'))
			return end;
	return to + strcspn(line + to, " ");
}

void hr_wrap(struct hr_buffer *to, const char *line, size_t have, size_t indent, size_t width)
{
	size_t at = 0, n = strlen(line);
	/* the first line must not be broken within its label */
	size_t from = indent > have ? indent - have : 0;

	while (width > indent && width > have && n - at > width - have) {
		size_t end = wrap_break(line, at == 0 ? from : at, at + width - have);

		if (end == n)
			break;
		hr_buffer_add(to, line + at, end - at);
		hr_buffer_print(to, "\n%*s", (int)indent, "");
		at = end + 1;
		have = indent;
	}
	hr_buffer_add(to, line + at, n - at);
}
