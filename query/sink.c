/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void hr_sink_line(const struct hr_sink *v, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	v->line(v->self, text);
	free(text);
}
