/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - writes characters as UTF-8; pure */
#ifndef HEADRACE_COMMON_UTF8_H
#define HEADRACE_COMMON_UTF8_H

#include <stddef.h>

/* Writes a code point (below 0x110000, and no surrogate). Returns its 1 to 4 bytes. */
static inline size_t hr_utf8_write(unsigned code, char *to)
{
	size_t n = 0;

	if (code < 0x80) {
		to[n++] = (char)code;
	} else if (code < 0x800) {
		to[n++] = (char)(0xc0 | code >> 6);
		to[n++] = (char)(0x80 | (code & 63));
	} else if (code < 0x10000) {
		to[n++] = (char)(0xe0 | code >> 12);
		to[n++] = (char)(0x80 | (code >> 6 & 63));
		to[n++] = (char)(0x80 | (code & 63));
	} else {
		to[n++] = (char)(0xf0 | code >> 18);
		to[n++] = (char)(0x80 | (code >> 12 & 63));
		to[n++] = (char)(0x80 | (code >> 6 & 63));
		to[n++] = (char)(0x80 | (code & 63));
	}
	return n;
}

#endif
