/* SPDX-License-Identifier: Apache-2.0 */
#include "query/prune/json_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* DuckDB's parser stops at expressions 1000 deep, a few levels of JSON each */
#define MAX_DEPTH 4000

struct parser {
	struct hr_arena *arena;
	const char *at;
	unsigned depth;
};

static int parse_value(struct parser *p, struct hr_json_tree *to);

static void skip_space(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')
		p->at++;
}

static bool json_tree_take(struct parser *p, char c)
{
	skip_space(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static int hex4(const char *text, unsigned *ret)
{
	unsigned value = 0;

	for (unsigned i = 0; i < 4; i++) {
		char c = text[i];

		if (c >= '0' && c <= '9')
			value = value << 4 | (unsigned)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			value = value << 4 | (unsigned)((c | 32) - 'a' + 10);
		else
			return -EBADMSG;
	}
	*ret = value;
	return 0;
}

static char *put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* One escape behind a backslash; p->at is at its letter. */
static int take_escape(struct parser *p, char **to)
{
	static const char from[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
	const char *known = *p->at != '\0' ? strchr(from, *p->at) : NULL;
	unsigned c, low;

	if (known != NULL) {
		*(*to)++ = value[known - from];
		p->at++;
		return 0;
	}
	if (*p->at != 'u' || hex4(p->at + 1, &c) < 0)
		return -EBADMSG;
	p->at += 5;
	if (c >= 0xd800 && c < 0xdc00 && p->at[0] == '\\' && p->at[1] == 'u' &&
	    hex4(p->at + 2, &low) == 0 && low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		p->at += 6;
	}
	*to = put_utf8(*to, c);
	return 0;
}

static int parse_string(struct parser *p, const char **ret)
{
	const char *end = p->at;
	char *text, *to;

	while (*end != '"' && *end != '\0')
		end += end[0] == '\\' && end[1] != '\0' ? 2 : 1;
	if (*end == '\0')
		return -EBADMSG;
	/* Decoded, a string is never longer than its source. */
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

static int parse_members(struct parser *p, struct hr_json_tree *to, char close)
{
	struct hr_json_tree **link = &to->child;
	int r;

	if (json_tree_take(p, close))
		return 0;
	do {
		struct hr_json_tree *node = hr_arena_get(p->arena, sizeof(*node));

		if (node == NULL)
			return -ENOMEM;
		*node = (struct hr_json_tree){0};
		if (close == '}') {
			if (!json_tree_take(p, '"'))
				return -EBADMSG;
			r = parse_string(p, &node->key);
			if (r < 0)
				return r;
			if (!json_tree_take(p, ':'))
				return -EBADMSG;
		}
		r = parse_value(p, node);
		if (r < 0)
			return r;
		*link = node;
		link = &node->next;
	} while (json_tree_take(p, ','));
	return json_tree_take(p, close) ? 0 : -EBADMSG;
}

static int parse_number(struct parser *p, struct hr_json_tree *to)
{
	size_t n = strspn(p->at, "+-0123456789.eE");
	char *text;

	if (n == 0)
		return -EBADMSG;
	text = hr_arena_get(p->arena, n + 1);
	if (text == NULL)
		return -ENOMEM;
	memcpy(text, p->at, n);
	text[n] = '\0';
	to->type = HR_JSON_TREE_NUMBER;
	to->text = text;
	p->at += n;
	return 0;
}

static bool take_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	return true;
}

static int parse_nested(struct parser *p, struct hr_json_tree *to, char close)
{
	int r;

	if (++p->depth > MAX_DEPTH)
		return -EBADMSG;
	to->type = close == '}' ? HR_JSON_TREE_OBJECT : HR_JSON_TREE_ARRAY;
	r = parse_members(p, to, close);
	p->depth--;
	return r;
}

static int parse_value(struct parser *p, struct hr_json_tree *to)
{
	if (json_tree_take(p, '{'))
		return parse_nested(p, to, '}');
	if (json_tree_take(p, '['))
		return parse_nested(p, to, ']');
	if (json_tree_take(p, '"')) {
		to->type = HR_JSON_TREE_STRING;
		return parse_string(p, &to->text);
	}
	if (take_word(p, "null"))
		return 0;
	to->truth = take_word(p, "true");
	if (to->truth || take_word(p, "false")) {
		to->type = HR_JSON_TREE_BOOL;
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
	skip_space(&p);
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

bool hr_json_tree_int(const struct hr_json_tree *node, int64_t *ret)
{
	char *end;
	long long value;

	if (node == NULL || node->type != HR_JSON_TREE_NUMBER)
		return false;
	errno = 0;
	value = strtoll(node->text, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	*ret = value;
	return true;
}
