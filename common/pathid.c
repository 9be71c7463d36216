/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathid.h"

#define XXH_INLINE_ALL /* header only, because the shim links only libc */
#include <xxhash.h>

uint64_t hr_path_id(const void *path, size_t bytes)
{
	uint64_t id = XXH3_64bits(path, bytes) & ~UINT64_C(7);

	return id != 0 ? id : 8;
}

size_t hr_path_resolve(char *path, size_t bytes)
{
	size_t n = 0;

	for (size_t at = 0, len; at < bytes; at += len) {
		const char *next = memchr(path + at + 1, '/', bytes - at - 1);

		len = next != NULL ? (size_t)(next - path) - at : bytes - at;
		if (len == 3 && memcmp(path + at, "/..", 3) == 0) {
			while (n > 0 && path[--n] != '/')
				;
		} else {
			memmove(path + n, path + at, len);
			n += len;
		}
	}
	if (n == 0 && bytes > 0)
		path[n++] = '/';
	return n;
}
