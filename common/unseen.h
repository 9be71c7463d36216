/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unseen.h - libraries that move data without files, so that neither shim nor probes record it
 *
 * These libraries are clients of object stores (docs/probes.md). Their file names identify them.
 * libcufile (GPUDirect Storage) is not in the list, because each program with CUDA's PyTorch loads
 * it, even if it is not used.
 */
#ifndef HEADRACE_COMMON_UNSEEN_H
#define HEADRACE_COMMON_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>

/* Beginnings of file names. The last entry is NULL. query/named/coverage.sql has the same list. */
extern const char *const hr_unseen_names[];

/* Whether the file at `path` (which has no NUL) is one of these libraries. */
bool hr_unseen_library(const char *path, size_t bytes);

#endif
