/* SPDX-License-Identifier: Apache-2.0 */
#include "query/voice.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void hr_voice_say(const struct hr_voice *v, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	v->say(v->self, text);
	free(text);
}
