/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_part.h - a strict parser for one JSON value in memory, without a tree
 *
 * Values are slices of the input. Numbers NaN, Infinity, nan and inf are accepted, because Python
 * and C++ write them. Pure functions.
 */
#ifndef HEADRACE_COMMON_JSON_PART_H
#define HEADRACE_COMMON_JSON_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hr_json_type {
	HR_JSON_NONE, /* no value */
	HR_JSON_STRING,
	HR_JSON_NUMBER,
	HR_JSON_OBJECT,
	HR_JSON_ARRAY,
	HR_JSON_WORD, /* true, false, null */
	HR_JSON_NAN,  /* no JSON: NaN, Infinity */
};

struct hr_json_part {
	const char *p; /* of a string: without the quotes */
	size_t n;
	enum hr_json_type type;
	bool escaped; /* a string with a backslash */
	bool nan;     /* the value is, or contains, HR_JSON_NAN */
};

/*
 * Reads the value at *at, after blanks, and moves *at after it. Returns 0; -EBADMSG: no JSON, or
 * deeper than 64 levels; -EAGAIN: the input ends within the value. A number at the end of the input
 * is -EAGAIN, too.
 */
int hr_json_part_read(const char **at, const char *end, struct hr_json_part *ret);

/*
 * Reads the next member of an object, whose first byte or last member is before *at. Returns 1 and
 * a member, 0 after the '}', or an error of hr_json_part_read.
 */
int hr_json_part_member(const char **at, const char *end, struct hr_json_part *key,
			struct hr_json_part *value);

/* Finds a member of the object json[0..n). False: it is no object, or has no such member. */
bool hr_json_part_find(const void *json, size_t n, const char *key, struct hr_json_part *ret);

bool hr_json_part_is(const struct hr_json_part *v, const char *text);
bool hr_json_part_is_any(const struct hr_json_part *v, const char *const *texts, size_t n);

/*
 * Writes a string without its escapes, at most v->n bytes. Returns their number. Of an escape that
 * JSON does not have, the character after the backslash remains; one must follow.
 */
size_t hr_json_part_text(const struct hr_json_part *v, char *to);

/* Reads an integer, which may be in quotes. False: it is not one, or out of range. */
bool hr_json_part_int(const struct hr_json_part *v, int64_t *ret);

/* Reads a decimal number times 1000 as integer, rounded, for example microseconds as ns. */
bool hr_json_part_thousandths(const struct hr_json_part *v, int64_t *ret);

/* Reads a number of less than 64 characters. False: it is not one, or infinite as a double. */
bool hr_json_part_double(const struct hr_json_part *v, double *ret);

#endif
