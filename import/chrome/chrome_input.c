/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a Chrome trace: a window that holds at least one event. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/chrome/chrome.h"

#define WINDOW_BYTES (512u << 10)
#define VALUE_MOST   (16u << 20)

int hr__chrome_input_init(struct chrome_input *b, struct hr_input *in)
{
	*b = (struct chrome_input){.in = in, .p = malloc(WINDOW_BYTES), .room = WINDOW_BYTES};
	return b->p ? 0 : -ENOMEM;
}

int hr__chrome_input_more(struct chrome_input *b)
{
	long n;

	if (b->ended)
		return 0;
	memmove(b->p, b->p + b->at, b->used - b->at);
	b->used -= b->at;
	b->at = 0;
	if (b->used == b->room) {
		char *more = b->room < VALUE_MOST ? realloc(b->p, 2 * b->room) : NULL;

		if (!more)
			return b->room < VALUE_MOST ? -ENOMEM : -E2BIG;
		b->p = more;
		b->room *= 2;
	}
	n = hr_input_read(b->in, (uint8_t *)b->p + b->used, b->room - b->used);
	if (n < 0)
		return (int)n;
	b->ended = n == 0;
	b->used += (size_t)n;
	return n > 0;
}

int hr__chrome_input_peek(struct chrome_input *b)
{
	for (;;) {
		int r;

		while (b->at < b->used && strchr(" \n\t\r", b->p[b->at]) && b->p[b->at])
			b->at++;
		if (b->at < b->used)
			return (unsigned char)b->p[b->at];
		r = hr__chrome_input_more(b);
		if (r <= 0)
			return r;
	}
}

int hr__chrome_input_skip(struct chrome_input *b)
{
	bool string = false, escaped = false;
	unsigned depth = 0;
	size_t taken = 0;

	for (;; b->at++) {
		char ch;

		while (b->at == b->used) {
			int r = hr__chrome_input_more(b);

			if (r <= 0)
				return r;
		}
		ch = b->p[b->at];
		taken++;
		if (string) {
			string = escaped || ch != '"';
			escaped = !escaped && ch == '\\';
		} else if (ch == '"') {
			string = true;
		} else if (ch == '{' || ch == '[') {
			depth++;
		} else if ((ch == '}' || ch == ']') && depth > 0) {
			depth--;
		} else if (depth == 0 && (ch == ',' || ch == '}' || ch == ']') && taken > 1) {
			return 1;
		}
	}
}
