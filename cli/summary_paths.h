/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_paths.h - file records summed per path, and folded into the folders that matter
 *
 * Purpose   The same file read by many processes, on many nodes, is one row here (by the hash of
 *           its path). Folders are heavy hitters: a folder has a row when what lies below it, less
 *           what has a row of its own, is a fifth of all I/O time or bytes; the rest counts for its
 *           parent. So ImageNet's thousand class folders show as one `train`, and a checkpoint
 *           folder beside it shows too.
 * Owner     hr_paths_new .. hr_paths_free.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_SUMMARY_PATHS_H
#define HEADRACE_CLI_SUMMARY_PATHS_H

#include "cli/summary.h"
#include "collector/store.h"

struct hr_paths;

struct hr_paths *hr_paths_new(void); /* NULL: out of memory */
void hr_paths_free(struct hr_paths *p);

/* Adds one row of a stream. 0, -ENOMEM. Rows of unknown files are summed under no path. */
int hr_paths_add(struct hr_paths *p, const struct hr_stream *s, const Headrace__FileRecord *row);

/* The first `max` files by I/O time; strings belong to the caller. Fewer when memory is short. */
size_t hr_paths_files(struct hr_paths *p, struct hr_summary_path *ret, size_t max);
size_t hr_paths_folders(struct hr_paths *p, struct hr_summary_path *ret, size_t max);

#endif
