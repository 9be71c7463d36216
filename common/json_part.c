/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_part.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

#define DEPTH_MOST   64u
#define NUMBER_BYTES 64u

static const char *blanks_skip(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int hex_read(const char *p, unsigned *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)p[i];

		if (!isxdigit(c))
			return -EBADMSG;
		*ret = *ret * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	return 0;
}

/* Checks the escape at p, and returns its length. */
static int escape_check(const char *p, const char *end)
{
	unsigned code;

	if (end - p < 2)
		return -EAGAIN;
	if (p[1] != 'u')
		return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) ? 2 : -EBADMSG;
	if (end - p < 6)
		return -EAGAIN;
	return hex_read(p + 2, &code) ? -EBADMSG : 6;
}

static int string_read(const char **at, const char *end, struct hr_json_part *ret)
{
	const char *p = *at + 1;

	ret->type = HR_JSON_STRING;
	ret->p = p;
	while (p < end && *p != '"') {
		int r = 1;

		if ((unsigned char)*p < ' ')
			return -EBADMSG;
		if (*p == '\\') {
			ret->escaped = true;
			r = escape_check(p, end);
		}
		if (r < 0)
			return r;
		p += r;
	}
	if (p >= end)
		return -EAGAIN;
	ret->n = (size_t)(p - ret->p);
	*at = p + 1;
	return 0;
}

/*
 * Reads the code of an escape \uXXXX at p, with the second half of a pair. Returns the length of
 * the escape. 0: it is none.
 */
static size_t code_read(const char *p, const char *end, unsigned *ret)
{
	unsigned code, low;

	if (end - p < 6 || p[1] != 'u' || hex_read(p + 2, &code) < 0)
		return 0;
	*ret = code;
	if (code < 0xd800 || code > 0xdfff)
		return 6;
	if (code < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' &&
	    hex_read(p + 8, &low) == 0 && low >= 0xdc00 && low <= 0xdfff) {
		*ret = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		return 12;
	}
	*ret = 0xfffd;
	return 6;
}

size_t hr_json_part_text(const struct hr_json_part *v, char *to)
{
	static const char names[] = "bfnrt", codes[] = "\b\f\n\r\t";
	const char *p = v->p, *end = v->p + v->n;
	size_t n = 0, length;
	unsigned code;

	while (p < end) {
		if (*p != '\\') {
			to[n++] = *p++;
		} else if ((length = code_read(p, end, &code)) > 0) {
			n += hr_utf8_write(code, to + n);
			p += length;
		} else {
			const char *name = strchr(names, p[1]);

			to[n++] = (char)(name ? codes[name - names] : p[1]);
			p += 2;
		}
	}
	return n;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

/* The grammar of JSON: -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool number_is_valid(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	if (p == end || !isdigit((unsigned char)*p) ||
	    (*p == '0' && p + 1 < end && isdigit((unsigned char)p[1])))
		return false;
	while (p < end && isdigit((unsigned char)*p))
		p++;
	if (p < end && *p == '.') {
		p++;
		if (p == end || !isdigit((unsigned char)*p))
			return false;
		while (p < end && isdigit((unsigned char)*p))
			p++;
	}
	if (p < end && (*p | 32) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		if (p == end || !isdigit((unsigned char)*p))
			return false;
		while (p < end && isdigit((unsigned char)*p))
			p++;
	}
	return p == end;
}

/* Reads a number or a word: everything up to a separator. */
static int token_read(const char **at, const char *end, struct hr_json_part *ret)
{
	static const char *const words[] = {"true", "false", "null"};
	static const char *const nans[] = {"NaN",  "Infinity", "-Infinity", "nan",
					   "-nan", "inf",      "-inf"};
	const char *p = *at;

	while (p < end && (isalnum((unsigned char)*p) || *p == '-' || *p == '+' || *p == '.'))
		p++;
	if (p == end)
		return -EAGAIN;
	ret->p = *at;
	ret->n = (size_t)(p - *at);
	*at = p;
	ret->type = HR_JSON_NUMBER;
	if (number_is_valid(ret->p, p))
		return 0;
	ret->type = HR_JSON_WORD;
	if (hr_json_part_is_any(ret, words, sizeof(words) / sizeof(words[0])))
		return 0;
	ret->type = HR_JSON_NAN;
	ret->nan = true;
	return hr_json_part_is_any(ret, nans, sizeof(nans) / sizeof(nans[0])) ? 0 : -EBADMSG;
}

bool hr_json_part_find(const void *json, size_t n, const char *key, struct hr_json_part *ret)
{
	const char *end = (const char *)json + n, *at = blanks_skip(json, end);
	struct hr_json_part name;

	if (at == end || *at++ != '{')
		return false;
	while (hr_json_part_member(&at, end, &name, ret) == 1)
		if (hr_json_part_is(&name, key))
			return true;
	return false;
}

bool hr_json_part_is(const struct hr_json_part *v, const char *text)
{
	return strlen(text) == v->n && memcmp(v->p, text, v->n) == 0;
}

bool hr_json_part_is_any(const struct hr_json_part *v, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (hr_json_part_is(v, texts[i]))
			return true;
	return false;
}

/* Copies a number, which may be in quotes, as a string. False: it is not one, or too long. */
static bool number_copy(const struct hr_json_part *v, char text[NUMBER_BYTES])
{
	if ((v->type != HR_JSON_NUMBER && v->type != HR_JSON_STRING) || v->n == 0 ||
	    v->n >= NUMBER_BYTES || !number_is_valid(v->p, v->p + v->n))
		return false;
	memcpy(text, v->p, v->n);
	text[v->n] = '\0';
	return true;
}

bool hr_json_part_int(const struct hr_json_part *v, int64_t *ret)
{
	char text[NUMBER_BYTES], *end;

	if (!number_copy(v, text))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0';
}

bool hr_json_part_thousandths(const struct hr_json_part *v, int64_t *ret)
{
	char text[NUMBER_BYTES], *end;
	long double value;

	if (!number_copy(v, text))
		return false;
	value = roundl(strtold(text, &end) * 1000); /* 64 bits of mantissa */
	if (*end != '\0' || !(fabsl(value) < 9.2e18L))
		return false;
	*ret = (int64_t)value;
	return true;
}

bool hr_json_part_double(const struct hr_json_part *v, double *ret)
{
	char text[NUMBER_BYTES];
	double value;

	if (v->type != HR_JSON_NUMBER || !number_copy(v, text))
		return false;
	value = strtod(text, NULL);
	if (!isfinite(value))
		return false;
	*ret = value;
	return true;
}

/* ---- objects and arrays ---------------------------------------------------------------------- */

static int scalar_read(const char **at, const char *end, struct hr_json_part *ret)
{
	return **at == '"' ? string_read(at, end, ret) : token_read(at, end, ret);
}

/* Reads a key and its colon. */
static int key_read(const char **at, const char *end, struct hr_json_part *key)
{
	int r;

	*key = (struct hr_json_part){0};
	*at = blanks_skip(*at, end);
	if (*at >= end)
		return -EAGAIN;
	if (**at != '"')
		return -EBADMSG;
	r = string_read(at, end, key);
	if (r)
		return r;
	*at = blanks_skip(*at, end);
	if (*at >= end)
		return -EAGAIN;
	return *(*at)++ == ':' ? 0 : -EBADMSG;
}

/* An object or array, while it is read. Bit d of `objects`: level d is an object. */
struct nest {
	uint64_t objects;
	unsigned depth;
	bool nan;
};

/* Begins a value of the innermost level: a scalar, which is read, or a new level. */
static int nest_value(struct nest *n, const char **at, const char *end)
{
	struct hr_json_part scalar = {0};
	int r;

	*at = blanks_skip(*at, end);
	if (*at >= end)
		return -EAGAIN;
	if (**at == '{' || **at == '[') {
		bool object = *(*at)++ == '{';

		if (n->depth == DEPTH_MOST)
			return -EBADMSG;
		n->objects = (n->objects & ~(UINT64_C(1) << n->depth)) | (uint64_t)object
									     << n->depth;
		n->depth++;
		return 1;
	}
	r = scalar_read(at, end, &scalar);
	n->nan |= scalar.nan;
	return r;
}

/* Reads the separator or the end of the innermost level. `first`: nothing is in it yet. */
static int nest_next(struct nest *n, const char **at, const char *end, bool first, bool *ret_ended)
{
	bool object = n->objects >> (n->depth - 1) & 1;
	struct hr_json_part key;

	*ret_ended = false;
	*at = blanks_skip(*at, end);
	if (*at >= end)
		return -EAGAIN;
	if (**at == (object ? '}' : ']')) {
		(*at)++;
		n->depth--;
		*ret_ended = true;
		return 0;
	}
	if (!first) {
		if (**at != ',')
			return -EBADMSG;
		(*at)++;
	}
	return object ? key_read(at, end, &key) : 0;
}

static int nest_read(const char **at, const char *end, struct hr_json_part *ret)
{
	struct nest n = {0};
	const char *from = *at;
	bool first = true, ended;
	int r = nest_value(&n, at, end);

	while (r >= 0 && n.depth > 0) {
		r = nest_next(&n, at, end, first, &ended);
		first = false;
		if (r == 0 && !ended) {
			r = nest_value(&n, at, end);
			first = r == 1;
		}
	}
	if (r < 0)
		return r;
	ret->type = *from == '{' ? HR_JSON_OBJECT : HR_JSON_ARRAY;
	ret->p = from;
	ret->n = (size_t)(*at - from);
	ret->nan = n.nan;
	return 0;
}

int hr_json_part_read(const char **at, const char *end, struct hr_json_part *ret)
{
	*ret = (struct hr_json_part){0};
	*at = blanks_skip(*at, end);
	if (*at >= end)
		return -EAGAIN;
	return **at == '{' || **at == '[' ? nest_read(at, end, ret) : scalar_read(at, end, ret);
}

int hr_json_part_member(const char **at, const char *end, struct hr_json_part *key,
			struct hr_json_part *value)
{
	bool first = (*at)[-1] == '{';
	int r;

	*at = blanks_skip(*at, end);
	if (*at >= end)
		return -EAGAIN;
	if (**at == '}') {
		(*at)++;
		return 0;
	}
	if (!first) {
		if (**at != ',')
			return -EBADMSG;
		(*at)++;
	}
	r = key_read(at, end, key);
	if (!r)
		r = hr_json_part_read(at, end, value);
	return r ? r : 1;
}
