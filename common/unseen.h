/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unseen.h - libraries that move data without files, so that neither shim nor probes record it
 *
 * They are clients of object stores (docs/probes.md), and are identified by file name. libcufile
 * (GPUDirect Storage) is not in the list, because each program with CUDA's PyTorch loads it, used
 * or not.
 */
#ifndef HEADRACE_COMMON_UNSEEN_H
#define HEADRACE_COMMON_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Prefixes of the file names; the last entry is NULL. query/named/coverage.sql has the same list.
 */
extern const char *const hr_unseen_names[];

/* True: a path (without NUL) is one of these libraries. */
bool hr_unseen_library(const char *path, size_t bytes);

#endif
