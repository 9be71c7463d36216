/* SPDX-License-Identifier: Apache-2.0 */
#include "query/prune/json_tree.h"

#include <errno.h>
#include <string.h>

/* DuckDB's parser accepts 1000 nested expressions, each of which has a few levels of JSON. */
#define MAX_DEPTH 4000

struct parser {
	struct hr_arena *arena;
	const char *at, *end; /* *end is 0 */
	unsigned depth;
};

static int parse_value(struct parser *p, struct hr_json_tree *to);

static bool take(struct parser *p, char c)
{
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static int parse_scalar(struct parser *p, struct hr_json_tree *to)
{
	size_t n;
	char *text;

	if (hr_json_part_read(&p->at, p->end, &to->value) != 0)
		return -EBADMSG;
	if (to->value.type != HR_JSON_STRING)
		return 0;
	to->text = text = hr_arena_get(p->arena, to->value.n + 1);
	if (text == NULL)
		return -ENOMEM;
	n = hr_json_part_text(&to->value, text);
	text[n] = '\0';
	return strlen(text) == n ? 0 : -EBADMSG; /* a zero byte would cut the text */
}

static int parse_member(struct parser *p, struct hr_json_tree *to, bool object)
{
	if (object && (hr_json_part_read(&p->at, p->end, &to->key) != 0 ||
		       to->key.type != HR_JSON_STRING || !take(p, ':')))
		return -EBADMSG;
	return parse_value(p, to);
}

static int parse_nested(struct parser *p, struct hr_json_tree *to)
{
	bool object = *p->at++ == '{';
	struct hr_json_tree **link = &to->child;
	int r;

	if (++p->depth > MAX_DEPTH)
		return -EBADMSG;
	to->value.type = object ? HR_JSON_OBJECT : HR_JSON_ARRAY;
	while (!take(p, object ? '}' : ']')) {
		if (to->child != NULL && !take(p, ','))
			return -EBADMSG;
		*link = hr_arena_alloc(p->arena, sizeof(**link));
		if (*link == NULL)
			return -ENOMEM;
		r = parse_member(p, *link, object);
		if (r < 0)
			return r;
		link = &(*link)->next;
	}
	p->depth--;
	return 0;
}

static int parse_value(struct parser *p, struct hr_json_tree *to)
{
	return *p->at == '{' || *p->at == '[' ? parse_nested(p, to) : parse_scalar(p, to);
}

int hr_json_tree_parse(struct hr_arena *arena, const char *text, const struct hr_json_tree **ret)
{
	struct parser p = {.arena = arena, .at = text, .end = text + strlen(text)};
	struct hr_json_tree *root = hr_arena_alloc(arena, sizeof(*root));
	int r;

	if (root == NULL)
		return -ENOMEM;
	r = parse_value(&p, root);
	if (r == 0 && p.at != p.end)
		r = -EBADMSG;
	if (r == 0)
		*ret = root;
	return r;
}

const struct hr_json_tree *hr_json_tree_get(const struct hr_json_tree *node, const char *key)
{
	const struct hr_json_tree *c = node != NULL ? node->child : NULL;

	while (c != NULL && !hr_json_part_is(&c->key, key))
		c = c->next;
	return c;
}

const struct hr_json_tree *hr_json_tree_first(const struct hr_json_tree *node, const char *key)
{
	const struct hr_json_tree *c = hr_json_tree_get(node, key);

	return c != NULL ? c->child : NULL;
}

const char *hr_json_tree_text(const struct hr_json_tree *node, const char *key)
{
	const struct hr_json_tree *c = hr_json_tree_get(node, key);

	return c != NULL ? c->text : NULL;
}

bool hr_json_tree_is(const struct hr_json_tree *node, const char *key, const char *text)
{
	const struct hr_json_tree *c = hr_json_tree_get(node, key);

	return c != NULL && hr_json_part_is(&c->value, text);
}
