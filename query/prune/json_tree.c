/* SPDX-License-Identifier: Apache-2.0 */
#include "query/prune/json_tree.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* DuckDB's parser accepts 1000 nested expressions, each of which has a few levels of JSON. */
#define MAX_DEPTH 4000

struct parser {
	struct hr_arena *arena;
	const char *at;
	unsigned depth;
};

static int parse_value(struct parser *p, struct hr_json_tree *to);

static bool take_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	return true;
}

/* Decodes the escape sequence after a backslash. DuckDB writes \u00XX for control bytes only. */
static int take_escape(struct parser *p, char **to)
{
	static const char from[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
	const char *known = *p->at != '\0' ? strchr(from, *p->at) : NULL;
	char hex[3] = {0};
	unsigned long c;

	if (known != NULL) {
		*(*to)++ = value[known - from];
		p->at++;
		return 0;
	}
	if (!take_word(p, "u00") || !isxdigit((unsigned char)p->at[0]) ||
	    !isxdigit((unsigned char)p->at[1]))
		return -EBADMSG;
	memcpy(hex, p->at, 2);
	p->at += 2;
	c = strtoul(hex, NULL, 16);
	*(*to)++ = (char)c;
	return c > 0 && c < 0x80 ? 0 : -EBADMSG;
}

static int parse_string(struct parser *p, const char **ret)
{
	const char *end = p->at;
	char *text, *to;

	while (*end != '"' && *end != '\0')
		end += end[0] == '\\' && end[1] != '\0' ? 2 : 1;
	if (*end == '\0')
		return -EBADMSG;
	/* A decoded string is not longer than its source. */
	to = text = hr_arena_get(p->arena, (size_t)(end - p->at) + 1);
	if (text == NULL)
		return -ENOMEM;
	while (p->at < end) {
		if (*p->at != '\\') {
			*to++ = *p->at++;
			continue;
		}
		p->at++;
		if (take_escape(p, &to) < 0)
			return -EBADMSG;
	}
	p->at = end + 1;
	*to = '\0';
	*ret = text;
	return 0;
}

static int parse_members(struct parser *p, struct hr_json_tree *to, const char *close)
{
	struct hr_json_tree **link = &to->child;
	int r;

	if (take_word(p, close))
		return 0;
	do {
		struct hr_json_tree *node = hr_arena_get(p->arena, sizeof(*node));

		if (node == NULL)
			return -ENOMEM;
		*node = (struct hr_json_tree){0};
		if (*close == '}') {
			if (!take_word(p, "\""))
				return -EBADMSG;
			r = parse_string(p, &node->key);
			if (r < 0)
				return r;
			if (!take_word(p, ":"))
				return -EBADMSG;
		}
		r = parse_value(p, node);
		if (r < 0)
			return r;
		*link = node;
		link = &node->next;
	} while (take_word(p, ","));
	return take_word(p, close) ? 0 : -EBADMSG;
}

static int parse_number(struct parser *p, struct hr_json_tree *to)
{
	size_t n = strspn(p->at, "+-0123456789.eE");
	char *end;

	errno = 0;
	to->number = strtoll(p->at, &end, 10);
	to->type = errno == 0 && end == p->at + n ? HR_JSON_TREE_INT : HR_JSON_TREE_REAL;
	p->at += n;
	return n > 0 ? 0 : -EBADMSG;
}

static int parse_nested(struct parser *p, struct hr_json_tree *to, const char *close)
{
	int r;

	if (++p->depth > MAX_DEPTH)
		return -EBADMSG;
	to->type = *close == '}' ? HR_JSON_TREE_OBJECT : HR_JSON_TREE_ARRAY;
	r = parse_members(p, to, close);
	p->depth--;
	return r;
}

static int parse_value(struct parser *p, struct hr_json_tree *to)
{
	if (take_word(p, "{"))
		return parse_nested(p, to, "}");
	if (take_word(p, "["))
		return parse_nested(p, to, "]");
	if (take_word(p, "\"")) {
		to->type = HR_JSON_TREE_STRING;
		return parse_string(p, &to->text);
	}
	if (take_word(p, "null"))
		return 0;
	if (take_word(p, "false")) {
		to->type = HR_JSON_TREE_FALSE;
		return 0;
	}
	if (take_word(p, "true")) {
		to->type = HR_JSON_TREE_TRUE;
		return 0;
	}
	return parse_number(p, to);
}

int hr_json_tree_parse(struct hr_arena *arena, const char *text, const struct hr_json_tree **ret)
{
	struct parser p = {.arena = arena, .at = text};
	struct hr_json_tree *root = hr_arena_get(arena, sizeof(*root));
	int r;

	if (root == NULL)
		return -ENOMEM;
	*root = (struct hr_json_tree){0};
	r = parse_value(&p, root);
	if (r < 0)
		return r;
	if (*p.at != '\0')
		return -EBADMSG;
	*ret = root;
	return 0;
}

const struct hr_json_tree *hr_json_tree_get(const struct hr_json_tree *node, const char *key)
{
	if (node == NULL || node->type != HR_JSON_TREE_OBJECT)
		return NULL;
	for (const struct hr_json_tree *c = node->child; c != NULL; c = c->next) {
		if (strcmp(c->key, key) == 0)
			return c;
	}
	return NULL;
}

const char *hr_json_tree_text(const struct hr_json_tree *node, const char *key)
{
	const struct hr_json_tree *c = hr_json_tree_get(node, key);

	return c != NULL && c->type == HR_JSON_TREE_STRING ? c->text : NULL;
}

bool hr_json_tree_is(const struct hr_json_tree *node, const char *key, const char *text)
{
	const char *have = hr_json_tree_text(node, key);

	return have != NULL && strcmp(have, text) == 0;
}
