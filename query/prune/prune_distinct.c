/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a SELECT has the same answer if a scan returns several equal rows only once.
 * True for SELECT DISTINCT, count(DISTINCT ...), min, max; false if this is not certain.
 */
#include <string.h>
#include <strings.h>

#include "query/prune/prune_parse.h"

static bool is_one_of(const char *text, const char *const *list)
{
	for (; text != NULL && *list != NULL; list++) {
		if (strcasecmp(text, *list) == 0)
			return true;
	}
	return false;
}

/* Whether a function computes its result from the values of a single row. */
static bool is_plain_function(const char *name)
{
	static const char *const known[] = {
	    "~~",
	    "!~~",
	    "~~*",
	    "!~~*",
	    "+",
	    "-",
	    "*",
	    "/",
	    "//",
	    "%",
	    "||",
	    "lower",
	    "upper",
	    "length",
	    "concat",
	    "starts_with",
	    "ends_with",
	    "prefix",
	    "suffix",
	    "contains",
	    "substr",
	    "substring",
	    "split_part",
	    "regexp_matches",
	    "regexp_extract",
	    "replace",
	    "regexp_replace",
	    "regexp_full_match",
	    "abs",
	    NULL,
	};

	return is_one_of(name, known);
}

struct plan_walk {
	bool aggregates;
	bool unsure;
};

static void take_function(struct plan_walk *w, const struct hr_json_tree *e)
{
	static const char *const sets[] = {"min", "max", "bool_and", "bool_or", NULL};
	const char *name = hr_json_tree_text(e, "function_name");
	const struct hr_json_tree *arg = hr_json_tree_first(e, "children");
	bool one = arg != NULL && arg->next == NULL;
	bool counts = name != NULL && strcasecmp(name, "count") == 0 &&
		      hr_json_tree_is(e, "distinct", "true");

	/* max(x, 3) depends on equal rows: it returns the three largest values */
	if (one && (counts || is_one_of(name, sets)))
		w->aggregates = true;
	else if (!is_plain_function(name))
		w->unsure = true;
}

static void take_tree(struct plan_walk *w, const struct hr_json_tree *n)
{
	static const char *const plain[] = {"COLUMN_REF",  "CONSTANT", "PARAMETER", "COMPARISON",
					    "CONJUNCTION", "BETWEEN",  "OPERATOR",  "CAST",
					    "CASE",	   NULL};
	const char *class = hr_json_tree_text(n, "class");

	if (class != NULL && strcmp(class, "FUNCTION") == 0)
		take_function(w, n);
	else if (class != NULL && !is_one_of(class, plain))
		w->unsure = true;
	for (const struct hr_json_tree *c = n->child; c != NULL && !w->unsure; c = c->next)
		take_tree(w, c);
}

/* Whether a SELECT is DISTINCT. DISTINCT ON does not count, because it selects among rows. */
static bool has_distinct(const struct hr_json_tree *select)
{
	for (const struct hr_json_tree *m = hr_json_tree_first(select, "modifiers"); m != NULL;
	     m = m->next) {
		const struct hr_json_tree *on = hr_json_tree_get(m, "distinct_on_targets");

		if (hr_json_tree_is(m, "type", "DISTINCT_MODIFIER"))
			return on != NULL && on->child == NULL;
	}
	return false;
}

bool hr__prune_distinct(const struct hr_json_tree *select)
{
	struct plan_walk w = {0};

	for (const struct hr_json_tree *c = select->child; c != NULL && !w.unsure; c = c->next) {
		if (!hr_json_part_is(&c->key, "from_table"))
			take_tree(&w, c);
	}
	return !w.unsure && (w.aggregates || has_distinct(select) ||
			     hr_json_tree_first(select, "group_expressions") != NULL);
}
