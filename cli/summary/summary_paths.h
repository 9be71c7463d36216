/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_paths.h - the sums of files by path, and which folders have a row
 *
 * Files of all processes and nodes with the same path are one row. A folder has a row if its files
 * have a fifth of all I/O time or bytes. Its largest file does not count, and neither do folders
 * with their own row. The sums of a folder without a row go to its parent, so the thousand class
 * folders of ImageNet become one row. Folders of unrelated files, such as / and /tmp, have no row.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PATHS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PATHS_H

#include "cli/summary/summary.h"
#include "store/store.h"

struct hr_summary_paths;

struct hr_summary_paths *hr_paths_new(void); /* NULL: out of memory */
void hr_paths_free(struct hr_summary_paths *p);

/* Adds a file record of a stream, unless its file is unknown. Returns 0 or -ENOMEM. */
int hr_paths_add(struct hr_summary_paths *p, const struct hr_stream *s,
		 const Headrace__FileRecord *row);

/* Store the `max` files or folders with most I/O time. Return their number. Free the paths. */
size_t hr_paths_files(struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max);
size_t hr_paths_folders(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max);

/* Calls `visit` for each file whose path is known. Returns 0 or -ENOMEM. */
typedef void hr_paths_visit(void *self, const char *path, size_t n,
			    const struct hr_summary_sums *sums);
int hr_paths_each(const struct hr_summary_paths *p, hr_paths_visit *visit, void *self);

/* Adds up files in memory (on tmpfs, memfds), and counts mapped files. Returns 0 or -ENOMEM. */
int hr_paths_special(const struct hr_summary_paths *p, struct hr_summary_sums *ret_memory,
		     struct hr_summary_mapped *ret_mapped);

/*
 * Inserts a path into a list of at most `max` entries, sorted by io_ns. Frees the path of an entry
 * that has no place left. Returns the new length. `path` is unescaped, as in the store.
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
