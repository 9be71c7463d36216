/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathid.h"

#define XXH_INLINE_ALL /* header only: the preloaded shim may link nothing but libc */
#include <xxhash.h>

uint64_t hr_path_id(const void *path, size_t bytes)
{
	uint64_t id = XXH3_64bits(path, bytes) & ~UINT64_C(7);

	return id != 0 ? id : 8;
}
