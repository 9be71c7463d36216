/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_out.h - a buffer for lines of JSON, which goes to a FILE as gzip members of whole lines, or
 * as plain text
 *
 * Call hr_text_out_room before a line; the functions below do not check. One thread.
 */
#ifndef HEADRACE_EXPORT_TEXT_OUT_H
#define HEADRACE_EXPORT_TEXT_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Readers seek to the begin of a member, and then read whole lines. */
#define HR_MEMBER_BYTES (1u << 20)

struct hr_text_out {
	FILE *to;
	char *data, *at; /* the open member, and where the next text goes */
	size_t size;
	struct hr_gzip *gzip; /* NULL: plain text */
};

/* Returns 0 or -ENOMEM. `plain`: without gzip. */
int hr_text_out_init(struct hr_text_out *o, FILE *to, bool plain);

/* Writes the last member, and frees everything. Returns 0, -ENOMEM, or the error of a write. */
int hr_text_out_done(struct hr_text_out *o);

/* Makes room for `bytes` more, and writes a full member. Returns 0, -ENOMEM, or an error. */
int hr_text_out_room(struct hr_text_out *o, size_t bytes);

static inline void hr_text_out_bytes(struct hr_text_out *o, const char *text, size_t n)
{
	memcpy(o->at, text, n);
	o->at += n;
}

#define hr_text_out_literal(o, text) hr_text_out_bytes(o, text, sizeof(text) - 1)

void hr_text_out_uint(struct hr_text_out *o, uint64_t v);
void hr_text_out_int(struct hr_text_out *o, int64_t v);
void hr_text_out_hex(struct hr_text_out *o, uint64_t v); /* 16 digits */

/*
 * Writes a JSON string. Bytes that are not UTF-8, and control characters, are escaped as in the SQL
 * tables (hr_text_escape). Needs room for 8 * n + 2 bytes.
 */
void hr_text_out_string(struct hr_text_out *o, const void *text, size_t n);

#endif
