/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pathid.h - the identity of a path between shim, daemon and store
 *
 * Purpose   XXH3 64-bit hash of the path's bytes, seed 0, with the low three bits cleared (the shim's fd table
 *           keeps flags there); 0, which means "no file", becomes 8. The value is stored: it never changes.
 * Threads   A pure function; async-signal-safe, no allocation.
 */
#ifndef HEADRACE_COMMON_PATHID_H
#define HEADRACE_COMMON_PATHID_H

#include <stddef.h>
#include <stdint.h>

uint64_t hr_path_id(const void *path, size_t bytes);

#endif
