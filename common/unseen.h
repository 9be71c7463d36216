/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unseen.h - libraries that move data where neither the shim nor the kernel's files see it (docs/probes.md)
 *
 * Known by the names of their files: object stores over the network. libcufile (GPUDirect Storage) is none of them: each
 * program with CUDA's PyTorch loads it, whether it uses it or not. Constant data, any thread.
 */
#ifndef HEADRACE_COMMON_UNSEEN_H
#define HEADRACE_COMMON_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>

/* How the names begin, ended by NULL. query/named/coverage.sql has the same. */
extern const char *const hr_unseen_names[];

/* Whether a path, without terminator, is one of theirs. */
bool hr_unseen_library(const char *path, size_t bytes);

#endif
