/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree.h - parses the text of json_serialize_sql, which is JSON without blanks, into a tree
 *
 * No library fits: jansson rejects the uint64_t that means "no location", cJSON rounds integers,
 * and json-c takes eight times as long for the 80,000 nodes of the query input-wait. The caller's
 * arena owns nodes and strings.
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
	HR_JSON_TREE_INT,  /* a whole number within int64_t */
	HR_JSON_TREE_REAL, /* any other number */
	HR_JSON_TREE_STRING,
	HR_JSON_TREE_ARRAY,
	HR_JSON_TREE_OBJECT
};

struct hr_json_tree {
	enum hr_json_tree_type type;
	const char *key;	    /* name of a member of an object; else NULL */
	const char *text;	    /* of a string */
	int64_t number;		    /* of an HR_JSON_TREE_INT */
	struct hr_json_tree *child; /* first element or member; the next one is its `next` */
	struct hr_json_tree *next;
};

/* Parses a text into a tree. Returns 0, -ENOMEM, or -EBADMSG (no JSON, or nested too deeply). */
int hr_json_tree_parse(struct hr_arena *arena, const char *text, const struct hr_json_tree **ret);

/* Returns a member of an object, or NULL if there is none or `node` is no object (or NULL). */
const struct hr_json_tree *hr_json_tree_get(const struct hr_json_tree *node, const char *key);

/* Returns the text of a member that is a string, or NULL. */
const char *hr_json_tree_text(const struct hr_json_tree *node, const char *key);

bool hr_json_tree_is(const struct hr_json_tree *node, const char *key, const char *text);

#endif
