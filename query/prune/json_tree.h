/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree.h - a JSON text as a tree
 *
 * Purpose   Reads what DuckDB's json_serialize_sql writes: JSON without blanks. No library fits:
 *           jansson rejects the uint64_t that stands for "no location", cJSON rounds integers to
 *           doubles, and json-c takes eight times as long for input-wait's 80,000 nodes.
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
	HR_JSON_TREE_FALSE,
	HR_JSON_TREE_TRUE,
	HR_JSON_TREE_INT,  /* a whole int64_t */
	HR_JSON_TREE_REAL, /* any other number */
	HR_JSON_TREE_STRING,
	HR_JSON_TREE_ARRAY,
	HR_JSON_TREE_OBJECT
};

struct hr_json_tree {
	enum hr_json_tree_type type;
	const char *key;	    /* in an object, else NULL */
	const char *text;	    /* of a string */
	int64_t number;		    /* of an integer */
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

#endif
