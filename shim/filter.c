/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/filter.h"

#include <string.h>

bool hr__prefix_match(const char *prefix, size_t n_prefix, const char *path, size_t bytes)
{
	while (n_prefix > 0 && prefix[n_prefix - 1] == '/')
		n_prefix--; /* "/data/" is "/data", "/" is every absolute path */
	if (n_prefix == 0)
		return bytes > 0 && path[0] == '/';
	return bytes >= n_prefix && (bytes == n_prefix || path[n_prefix] == '/') &&
	       memcmp(prefix, path, n_prefix) == 0;
}

/* Greedy with one point to come back to: linear in practice, quadratic at worst. */
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

static bool pattern_match(const char *pattern, size_t n, const char *path, size_t bytes)
{
	/* Most patterns name another top folder: see that in the first letter. */
	if (n > 1 && bytes > 1 && pattern[0] == '/' && pattern[1] != path[1] && pattern[1] != '*' &&
	    pattern[1] != '?')
		return false;
	for (size_t i = 0; i < n; i++)
		if (pattern[i] == '*' || pattern[i] == '?')
			return hr__glob_match(pattern, n, path, bytes);
	return pattern[0] == '/' && hr__prefix_match(pattern, n, path, bytes);
}

static bool list_match(const char *list, const char *path, size_t bytes)
{
	while (*list != '\0') {
		size_t n = 0;

		while (list[n] != '\0' && list[n] != ',')
			n++;
		if (n > 0 && pattern_match(list, n, path, bytes))
			return true;
		list += n;
		if (*list == ',')
			list++;
	}
	return false;
}

static bool starts(const char *s, const char *end, const char *word, size_t n)
{
	return (size_t)(end - s) >= n && memcmp(s, word, n) == 0;
}

/* Is `s` the start of the component `word`, with something below it? */
#define COMPONENT(s, end, word) (starts(s, end, word "/", sizeof(word)))

/*
 * Python's own files: below site-packages, dist-packages, lib/python3* or in a __pycache__. One
 * pass over the path instead of four globs, because every open pays for it.
 */
static bool python_match(const char *path, size_t bytes)
{
	const char *end = path + bytes;
	const char *s = path;

	while ((s = memchr(s, '/', (size_t)(end - s))) != NULL) {
		s++;
		if (COMPONENT(s, end, "site-packages") || COMPONENT(s, end, "dist-packages") ||
		    COMPONENT(s, end, "__pycache__"))
			return true;
		if (starts(s, end, "lib/python3", 11) &&
		    memchr(s + 11, '/', (size_t)(end - s - 11)) != NULL)
			return true;
	}
	return false;
}

void hr__filter_init(struct hr__filter *f, const struct hr__filter_config *config)
{
	f->config = *config;
	f->shm = config->defaults == NULL;
	if (f->shm)
		f->config.defaults = HR__DEFAULT_EXCLUDE;
	f->has_include = config->include != NULL && config->include[0] != '\0';
}

enum hr__verdict hr__filter_verdict(const struct hr__filter *f, const char *path, size_t bytes)
{
	const struct hr__filter_config *c = &f->config;

	if (c->store != NULL && c->store[0] == '/' &&
	    hr__prefix_match(c->store, strlen(c->store), path, bytes))
		return HR__EXCLUDED;
	if (c->exclude != NULL && list_match(c->exclude, path, bytes))
		return HR__EXCLUDED;
	if (f->has_include)
		return list_match(c->include, path, bytes) ? HR__TRACED : HR__EXCLUDED;
	if (python_match(path, bytes))
		return HR__TRACED_RUNTIME;
	if (f->shm && hr__prefix_match("/dev/shm", 8, path, bytes))
		return HR__TRACED;
	return list_match(c->defaults, path, bytes) ? HR__EXCLUDED : HR__TRACED;
}
