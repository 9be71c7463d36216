/* SPDX-License-Identifier: Apache-2.0 */
/* fnv.h - FNV-1a, 64 bits: a hash for small tables and names, in one or more calls; pure */
#ifndef HEADRACE_COMMON_FNV_H
#define HEADRACE_COMMON_FNV_H

#include <stddef.h>
#include <stdint.h>

#define HR_FNV_BASIS UINT64_C(0xcbf29ce484222325)

static inline uint64_t hr_fnv(uint64_t hash, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
