/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_paths.h - file records per path, and the folders that matter
 *
 * Files with the same path, of many processes and nodes, are one row. A folder has a row if its
 * files have a fifth of all I/O time or bytes, not counting its largest file and folders with their
 * own row. Otherwise the sums of the folder go to its parent. So ImageNet's thousand class folders
 * become one `train`. Folders of unrelated files, such as / and /tmp, have no row.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PATHS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PATHS_H

#include "cli/summary/summary.h"
#include "store/store.h"

struct hr_summary_paths;

struct hr_summary_paths *hr_paths_new(void); /* NULL: out of memory */
void hr_paths_free(struct hr_summary_paths *p);

/* Adds one row of a stream, unless its file is unknown. 0 or -ENOMEM. */
int hr_paths_add(struct hr_summary_paths *p, const struct hr_stream *s,
		 const Headrace__FileRecord *row);

/*
 * Store the first `max` files or folders by I/O time, fewer if memory is short. Return their
 * number. The caller frees the strings.
 */
size_t hr_paths_files(struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max);
size_t hr_paths_folders(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max);

/* Calls `visit` for each file whose path is known. */
typedef void hr_paths_visit(void *self, const char *path, size_t n,
			    const struct hr_summary_sums *sums);
void hr_paths_each(const struct hr_summary_paths *p, hr_paths_visit *visit, void *self);

/* Adds up the files in memory (tmpfs, memfds), and counts mapped files. */
void hr_paths_special(const struct hr_summary_paths *p, struct hr_summary_sums *ret_memory,
		      struct hr_summary_mapped *ret_mapped);

/*
 * Inserts a row into a list of at most max rows, sorted by io_ns, and frees the path of a row that
 * drops out. Returns the number of rows. `path` is unescaped, as in the store.
 */
size_t hr_summary_path_insert(struct hr_summary_path *list, size_t n, size_t max, const char *path,
			      size_t bytes, const struct hr_summary_sums *sums);

static inline void hr_sums_add(struct hr_summary_sums *to, const struct hr_summary_sums *from)
{
	to->files += from->files;
	to->opens += from->opens;
	to->io_ns += from->io_ns;
	to->read_bytes += from->read_bytes;
	to->written_bytes += from->written_bytes;
}

#endif
