/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree.h - parses the text of json_serialize_sql, which is JSON without blanks, into a tree
 *
 * No library fits: jansson rejects the uint64_t that means "no location", cJSON rounds integers,
 * and json-c takes eight times as long for the 80,000 nodes of the query input-wait. The caller's
 * arena owns nodes and strings; the text must live as long as they do.
 */
#ifndef HEADRACE_QUERY_PRUNE_JSON_TREE_H
#define HEADRACE_QUERY_PRUNE_JSON_TREE_H

#include "common/arena.h"
#include "common/json_part.h"

struct hr_json_tree {
	struct hr_json_part key;    /* name of a member of an object; else empty */
	struct hr_json_part value;  /* of an object or array: only its type */
	const char *text;	    /* of a string, without escapes; else NULL */
	struct hr_json_tree *child; /* first element or member; the next one is its `next` */
	struct hr_json_tree *next;
};

/* Parses a text into a tree. Returns 0, -ENOMEM, or -EBADMSG (no JSON, or nested too deeply). */
int hr_json_tree_parse(struct hr_arena *arena, const char *text, const struct hr_json_tree **ret);

/* Returns a member of an object, or NULL if there is none or `node` is no object (or NULL). */
const struct hr_json_tree *hr_json_tree_get(const struct hr_json_tree *node, const char *key);

/* Returns the first element or member of a member, or NULL. */
const struct hr_json_tree *hr_json_tree_first(const struct hr_json_tree *node, const char *key);

/* Returns the text of a member that is a string, or NULL. */
const char *hr_json_tree_text(const struct hr_json_tree *node, const char *key);

/* Whether a member is a string without escapes, a number or a word as in `text`. */
bool hr_json_tree_is(const struct hr_json_tree *node, const char *key, const char *text);

#endif
