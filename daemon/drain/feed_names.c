/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the paths of files that probes report, and decides which of them are recorded. */
#include "daemon/drain/feed_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/pathid.h"
#include "common/unseen.h"

#define TMPFILE "/#tmpfile"

size_t hr__feed_unwalk(const char *text, size_t bytes, char *to, size_t room)
{
	size_t n = 0;

	while (bytes > 0) {
		size_t end = bytes - 1, start = end;

		if (text[end] != '\0')
			return 0;
		while (start > 0 && text[start - 1] != '\0')
			start--;
		if (n + 1 + (end - start) > room)
			return 0;
		if (end - start == 1 && text[start] == '/' &&
		    n == 0) { /* a root that is its own parent */
			bytes = start;
			continue;
		}
		to[n++] = '/';
		memcpy(to + n, text + start, end - start);
		n += end - start;
		bytes = start;
	}
	return n;
}

/* Removes empty components and ".", like the shim. ".." stays. */
static size_t tidy(char *path, size_t bytes)
{
	size_t to = 0;

	for (size_t at = 0; at < bytes;) {
		size_t end;

		while (at < bytes && path[at] == '/')
			at++;
		for (end = at; end < bytes && path[end] != '/'; end++)
			;
		if (end > at && !(end - at == 1 && path[at] == '.')) {
			path[to++] = '/';
			memmove(path + to, path + at, end - at);
			to += end - at;
		}
		at = end;
	}
	if (to == 0)
		path[to++] = '/';
	return to;
}

struct feed_name *hr__feed_name_get(struct hr_feed *f, uint64_t name)
{
	struct feed_name *n = &f->names[name % HR_PROBE_NAMES];

	return name && n->name == name ? n : NULL;
}

static bool feed_names_begins(const char *path, size_t bytes, const char *with)
{
	return bytes >= strlen(with) && memcmp(path, with, strlen(with)) == 0;
}

static bool ends(const char *path, size_t bytes, const char *with)
{
	return bytes >= strlen(with) &&
	       memcmp(path + bytes - strlen(with), with, strlen(with)) == 0;
}

/*
 * Replaces the name "#INODE" of a file made with O_TMPFILE by the name that the shim gives to all
 * of them.
 */
static size_t name_tmpfile(const struct hr_probe_name *r, char *path, size_t bytes)
{
	char leaf[32];
	size_t n = (size_t)snprintf(leaf, sizeof(leaf), "/#%" PRIu64, r->ino);

	if (r->given_bytes || !ends(path, bytes, leaf))
		return bytes;
	memcpy(path + bytes - n, TMPFILE, sizeof(TMPFILE) - 1);
	return bytes - n + sizeof(TMPFILE) - 1;
}

/* Makes the path of a NAME record. Returns the length of the path; 0: none. */
static size_t path_of(const struct hr_probe_name *r, size_t bytes, char *path, size_t room)
{
	const char *walked = (const char *)(r + 1), *given = walked + r->walked_bytes;
	size_t n;

	if (bytes < sizeof(*r) || r->walked_bytes > bytes - sizeof(*r) ||
	    r->given_bytes > bytes - sizeof(*r) - r->walked_bytes)
		return 0;
	if (r->walked_bytes > 6 && !r->given_bytes && memcmp(walked, "memfd:", 6) == 0) {
		n = strnlen(walked, r->walked_bytes);
		memcpy(path, walked, n);
		return n;
	}
	n = hr__feed_unwalk(walked, r->walked_bytes, path, room);
	n = name_tmpfile(r, path, n);
	if (r->walked_bytes && !n)
		return 0;
	if (r->given_bytes) {
		if (n + 1 + r->given_bytes > room)
			return 0;
		path[n++] = '/';
		memcpy(path + n, given, r->given_bytes);
		n += r->given_bytes;
	}
	return tidy(path, n);
}

/*
 * Excludes headrace's own library and rings, and semaphores, which libc implements as files. Other
 * memfds are recorded. Client libraries of object stores (hr_unseen_library) are recorded even if a
 * filter excludes them: only their loading shows their use.
 */
static enum hr_verdict verdict_of(const struct hr_feed *f, const char *path, size_t bytes)
{
	enum hr_verdict verdict;
	uint32_t kind;

	if (feed_names_begins(path, bytes, "memfd:headrace") ||
	    ends(path, bytes, "/" HR_SHIM_NAME) || feed_names_begins(path, bytes, "/dev/shm/sem."))
		return HR__EXCLUDED;
	if (path[0] != '/')
		return HR__TRACED;
	verdict = hr_filter_verdict(f->filter, path, bytes, &kind);
	return verdict == HR__LEFT_OUT && hr_unseen_library(path, bytes) ? HR__TRACED_RUNTIME
									 : verdict;
}

bool hr__feed_recorded(const struct feed_name *n)
{
	return n && (n->verdict == HR__TRACED || n->verdict == HR__TRACED_RUNTIME);
}

void hr__feed_name(struct hr_feed *f, const struct hr_probe_name *r, size_t bytes)
{
	struct feed_name *n = &f->names[r->name % HR_PROBE_NAMES];
	char path[3 * HR_PROBE_PATH];
	size_t length = path_of(r, bytes, path, sizeof(path));

	free(n->path);
	memset(n, 0, sizeof(*n));
	n->name = f->last_name = r->name;
	n->verdict = HR__EXCLUDED;
	if (!length)
		return;
	n->hash = hr_path_id(path, length);
	n->device = r->dev ? (int64_t)((uint64_t)(r->dev >> 20) << 32 | (r->dev & 0xfffff))
			   : HR_OFFSET_NONE;
	n->mount = r->mount;
	n->mode = r->mode & S_IFMT;
	n->bytes = (uint32_t)(length < HR_PROBE_PATH ? length : HR_PROBE_PATH);
	n->verdict = verdict_of(f, path, length);
	if (!hr__feed_recorded(n))
		return;
	n->path = malloc(n->bytes);
	if (n->path)
		memcpy(n->path, path, n->bytes);
	else
		n->verdict = HR__EXCLUDED;
}

/* ---- which paths are recorded ---------------------------------------------------------------- */

static const char *feed_names_value_of(const char *env, size_t bytes, const char *name)
{
	size_t n = strlen(name);

	for (size_t at = 0; at < bytes;) {
		size_t length = strnlen(env + at, bytes - at);

		if (length > n && memcmp(env + at, name, n) == 0 && env[at + n] == '=' &&
		    at + length < bytes)
			return env + at + n + 1;
		at += length + 1;
	}
	return NULL;
}

/*
 * All processes of a job have the same filters, so the first process with headrace's variables
 * decides.
 */
void hr__feed_filter(struct hr_feed *f, const struct hr_probe_image *r)
{
	const char *env = hr__feed_text(r) + r->exe_bytes + r->args_bytes;
	struct hr_filter_config config;

	if (f->filter_known || !feed_names_value_of(env, r->env_bytes, "HEADRACE_SOCKET"))
		return;
	config = (struct hr_filter_config){
	    .exclude = feed_names_value_of(env, r->env_bytes, "HEADRACE_EXCLUDE"),
	    .include = feed_names_value_of(env, r->env_bytes, "HEADRACE_INCLUDE"),
	    .defaults = feed_names_value_of(env, r->env_bytes, "HEADRACE_DEFAULT_EXCLUDE"),
	    .store = feed_names_value_of(env, r->env_bytes, "HEADRACE_STORE"),
	};
	hr_filter_init(f->filter, &config);
	f->filter_known = true;
}
