/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a JSON text as a tree
 *
 * Purpose   Reading DuckDB's parse trees (prune.c). Strict enough for what a serializer writes.
 * Owner     Nodes and decoded strings live in the caller's arena.
 * Threads   One.
 */
#ifndef HEADRACE_QUERY_JSON_H
#define HEADRACE_QUERY_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/arena.h"

enum hr_json_type {
	HR_JSON_NULL,
	HR_JSON_BOOL,
	HR_JSON_NUMBER,
	HR_JSON_STRING,
	HR_JSON_ARRAY,
	HR_JSON_OBJECT
};

struct hr_json_node {
	enum hr_json_type type;
	const char *key;  /* in an object, else NULL */
	const char *text; /* string, or number as written; NUL-terminated */
	bool truth;
	struct hr_json_node *child; /* first of array or object */
	struct hr_json_node *next;
};

/* Errors: -EBADMSG not JSON or nested too deeply, -ENOMEM. */
int hr_json_parse(struct hr__arena *arena, const char *text, const struct hr_json_node **ret);

/* Member of an object; NULL when absent, or when `node` is NULL or no object. */
const struct hr_json_node *hr_json_get(const struct hr_json_node *node, const char *key);

/* Text of a string member; NULL when it is none. */
const char *hr_json_text(const struct hr_json_node *node, const char *key);

/* Whether a string member has exactly this text. */
bool hr_json_is(const struct hr_json_node *node, const char *key, const char *text);

/* A number that is a whole int64_t. */
bool hr_json_int(const struct hr_json_node *node, int64_t *ret);

#endif
