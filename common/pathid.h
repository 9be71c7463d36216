/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pathid.h - the id of a path in shim, daemon and store
 *
 * The id is the 64-bit XXH3 hash of the path's bytes, with seed 0. The lowest three bits are
 * cleared, because the shim's fd table has flags there. 0 means "no file", so a hash of 0 becomes
 * 8. Stores contain ids, so the function never changes. It is pure and async-signal-safe.
 */
#ifndef HEADRACE_COMMON_PATHID_H
#define HEADRACE_COMMON_PATHID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t hr_path_id(const void *path, size_t bytes);

/*
 * Removes each `..` of a recorded path, and the component before it, which may be a link. Works in
 * place, on an absolute path without empty components. Returns the new length.
 */
size_t hr_path_resolve(char *path, size_t bytes);

/* Whether hr_path_resolve may change the path. Faster than memmem, which first makes a table. */
static inline bool hr_path_has_parent(const char *path, size_t bytes)
{
	const char *end = path + bytes, *dot = path;

	while ((dot = memchr(dot, '.', (size_t)(end - dot))) != NULL) {
		if (dot > path && dot[-1] == '/' && end - dot > 1 && dot[1] == '.')
			return true;
		dot++;
	}
	return false;
}

#endif
