/* SPDX-License-Identifier: Apache-2.0 */
#include "common/path_filter.h"

#include <string.h>

#include "common/pathid.h"

static bool prefix_match(const char *prefix, size_t n_prefix, const char *path, size_t bytes)
{
	while (n_prefix > 0 && prefix[n_prefix - 1] == '/')
		n_prefix--; /* "/data/" becomes "/data", and "/" becomes "" */
	if (n_prefix == 0)
		return bytes > 0 && path[0] == '/';
	return bytes >= n_prefix && (bytes == n_prefix || path[n_prefix] == '/') &&
	       memcmp(prefix, path, n_prefix) == 0;
}

/* Keeps one position to backtrack to, so the time is usually linear, and at worst quadratic. */
bool hr__glob_match(const char *pattern, size_t n_pattern, const char *path, size_t bytes)
{
	size_t p = 0, s = 0, star = n_pattern, retry = 0;

	while (s < bytes) {
		if (p < n_pattern && pattern[p] == '*') {
			star = p++;
			retry = s;
		} else if (p < n_pattern && (pattern[p] == '?' || pattern[p] == path[s])) {
			p++;
			s++;
		} else if (star < n_pattern) {
			p = star + 1;
			s = ++retry;
		} else {
			return false;
		}
	}
	while (p < n_pattern && pattern[p] == '*')
		p++;
	return p == n_pattern;
}

static bool is_glob(const char *text, size_t n)
{
	return memchr(text, '*', n) != NULL || memchr(text, '?', n) != NULL;
}

static void pattern_add(struct hr_filter *f, struct hr_patterns *list, const char *text, size_t n)
{
	char *copy = f->text + f->text_used;
	bool glob = is_glob(text, n);

	memcpy(copy, text, n);
	if (!glob && hr_path_has_parent(copy, n))
		n = hr_path_resolve(copy, n);
	f->text_used += (uint32_t)n;
	f->pool[f->used++] = (struct hr__pattern){copy, (uint32_t)n, glob};
	list->n++;
}

static void list_cut(struct hr_filter *f, struct hr_patterns *list, const char *text)
{
	uint32_t end = f->text_used + HR_FILTER_BYTES;

	*list = (struct hr_patterns){.v = f->pool + f->used};
	while (text != NULL && *text != '\0') {
		size_t n = strcspn(text, ",");

		/* A pattern must start with / or be a glob, because paths are absolute. */
		if (n > 0 && (text[0] == '/' || is_glob(text, n))) {
			if (list->n < HR_FILTER_PATTERNS && n <= end - f->text_used)
				pattern_add(f, list, text, n);
			else
				f->dropped++;
		}
		text += n + (text[n] == ',');
	}
}

static const struct hr__pattern *list_find(const struct hr_patterns *list, const char *path,
					   size_t bytes)
{
	for (const struct hr__pattern *p = list->v; p < list->v + list->n; p++) {
		if (p->glob) {
			if (hr__glob_match(p->text, p->bytes, path, bytes))
				return p;
			continue;
		}
		/* Most prefixes start with another folder, whose first letter differs. */
		if (p->bytes > 1 && bytes > 1 && p->text[1] != path[1])
			continue;
		if (prefix_match(p->text, p->bytes, path, bytes))
			return p;
	}
	return NULL;
}

static bool list_match(const struct hr_patterns *list, const char *path, size_t bytes)
{
	return list_find(list, path, bytes) != NULL;
}

static bool starts(const char *s, const char *end, const char *word, size_t n)
{
	return (size_t)(end - s) >= n && memcmp(s, word, n) == 0;
}

/* Whether `s` starts with the component `word`, and more components follow. */
#define COMPONENT(s, end, word) (starts(s, end, word "/", sizeof(word)))

/*
 * Whether a file is Python's: in site-packages, dist-packages, lib/python3*, a __pycache__, or
 * headrace's own modules. Each open calls this, so it makes one pass instead of four globs.
 */
static bool python_match(const char *path, size_t bytes)
{
	const char *end = path + bytes;

	for (const char *s = path; s < end; s++) {
		if (*s != '/')
			continue;
		switch (s + 1 < end ? s[1] : '\0') {
		case 's':
			if (COMPONENT(s + 1, end, "site-packages"))
				return true;
			break;
		case 'd':
			if (COMPONENT(s + 1, end, "dist-packages"))
				return true;
			break;
		case '_':
			if (COMPONENT(s + 1, end, "__pycache__") ||
			    COMPONENT(s + 1, end, "_headrace"))
				return true;
			break;
		case 'l':
			if (starts(s + 1, end, "lib/python3", 11) &&
			    memchr(s + 12, '/', (size_t)(end - s - 12)) != NULL)
				return true;
			if (COMPONENT(s + 1, end, "libexec/headrace/python"))
				return true;
			break;
		default:
			break;
		}
	}
	return false;
}

/* Returns how many patterns, from the first, have a counter: they fit into HR_EXCLUDED_TEXT. */
static uint32_t count_kinds(const struct hr_patterns *list)
{
	uint32_t n = 0, bytes = 0;

	while (n < list->n && n < HR_EXCLUDED_KINDS - 1) {
		bytes += list->v[n].bytes + 1;
		if (bytes > HR_EXCLUDED_TEXT)
			break;
		n++;
	}
	return n;
}

void hr_filter_init(struct hr_filter *f, const struct hr_filter_config *config)
{
	size_t store = config->store != NULL ? strlen(config->store) : 0;

	f->used = f->text_used = f->dropped = 0;
	f->shm = config->defaults == NULL;
	f->has_include = config->include != NULL && config->include[0] != '\0';
	f->store = (struct hr_patterns){.v = f->pool};
	if (store > 0 && store < HR__STORE_BYTES && config->store[0] == '/') {
		pattern_add(f, &f->store, config->store, store);
		f->pool[0].glob = false; /* the folder's name is not a glob */
	}
	list_cut(f, &f->exclude, config->exclude);
	list_cut(f, &f->include, config->include);
	list_cut(f, &f->defaults, f->shm ? HR__DEFAULT_EXCLUDE : config->defaults);
	f->kinds = count_kinds(&f->defaults);
}

enum hr_verdict hr_filter_verdict(const struct hr_filter *f, const char *path, size_t bytes,
				  uint32_t *ret_kind)
{
	const struct hr__pattern *left_out;

	if (list_match(&f->store, path, bytes) || list_match(&f->exclude, path, bytes))
		return HR__EXCLUDED;
	if (f->has_include)
		return list_match(&f->include, path, bytes) ? HR__TRACED : HR__EXCLUDED;
	if (python_match(path, bytes))
		return HR__TRACED_RUNTIME;
	if (f->shm && prefix_match("/dev/shm", 8, path, bytes))
		return HR__TRACED;
	left_out = list_find(&f->defaults, path, bytes);
	if (left_out == NULL)
		return HR__TRACED;
	*ret_kind = (uint32_t)(left_out - f->defaults.v);
	if (*ret_kind >= f->kinds)
		*ret_kind = HR_EXCLUDED_KINDS - 1;
	return HR__LEFT_OUT;
}
