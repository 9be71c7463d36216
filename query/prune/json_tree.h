/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree.h - a JSON text as a tree
 *
 * Purpose   Reading DuckDB's parse trees (prune.c). Strict enough for what a serializer writes.
 * Owner     Nodes and decoded strings live in the caller's arena.
 * Threads   One.
 */
#ifndef HEADRACE_QUERY_PRUNE_JSON_TREE_H
#define HEADRACE_QUERY_PRUNE_JSON_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"

enum hr_json_tree_type {
	HR_JSON_TREE_NULL,
	HR_JSON_TREE_BOOL,
	HR_JSON_TREE_NUMBER,
	HR_JSON_TREE_STRING,
	HR_JSON_TREE_ARRAY,
	HR_JSON_TREE_OBJECT
};

struct hr_json_tree {
	enum hr_json_tree_type type;
	const char *key;  /* in an object, else NULL */
	const char *text; /* string, or number as written; NUL-terminated */
	bool truth;
	struct hr_json_tree *child; /* first of array or object */
	struct hr_json_tree *next;
};

/* Errors: -EBADMSG not JSON or nested too deeply, -ENOMEM. */
int hr_json_tree_parse(struct hr_arena *arena, const char *text, const struct hr_json_tree **ret);

/* Member of an object; NULL when absent, or when `node` is NULL or no object. */
const struct hr_json_tree *hr_json_tree_get(const struct hr_json_tree *node, const char *key);

/* Text of a string member; NULL when it is none. */
const char *hr_json_tree_text(const struct hr_json_tree *node, const char *key);

/* Whether a string member has exactly this text. */
bool hr_json_tree_is(const struct hr_json_tree *node, const char *key, const char *text);

/* A number that is a whole int64_t. */
bool hr_json_tree_int(const struct hr_json_tree *node, int64_t *ret);

#endif
