/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seekable.h - a file with a name, in which a writer can seek, for an output that may be a pipe
 *
 *      hr_seekable_open --> write to `fd`, or open `path` --> hr_seekable_close
 *
 * An output that is a new file is written in place. Otherwise, the file is a temporary one, and
 * hr_seekable_close copies it to the output. One thread.
 */
#ifndef HEADRACE_EXPORT_SEEKABLE_H
#define HEADRACE_EXPORT_SEEKABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "export/export.h"

struct hr_seekable {
	FILE *to;
	int fd;
	char *path; /* hr_seekable_hide removes the name of a temporary file */
	bool temporary;
};

/* Returns 0 or -errno, and sets x->error. `to` must outlive *ret. */
int hr_seekable_open(struct hr_export *x, FILE *to, struct hr_seekable *ret);

/* Call it when the file is open, so that no kill leaves a temporary file. */
void hr_seekable_hide(const struct hr_seekable *s);

/* Frees everything. If `err` is 0, the output has the content of the file. Returns 0 or -errno. */
int hr_seekable_close(struct hr_seekable *s, int err);

/*
 * Opens an empty file in the folder for temporary files. *ret_path: its name (malloc'ed); NULL: it
 * has none. Returns a descriptor, or -errno, and then x->error is advice.
 */
int hr_temporary_file(struct hr_export *x, char **ret_path);

/* Sets x->error to advice about a failed write to such a file. Returns `err`. */
int hr_temporary_failed(struct hr_export *x, int err);

#endif
