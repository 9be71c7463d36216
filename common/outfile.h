/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - an output file that the user names
 *
 * A regular file is written under another name in the same folder, and renamed when it is complete.
 * Other files (a device, a FIFO, /dev/stdout) are written in place. Links are followed first. The
 * caller owns the struct, and calls hr_outfile_done(). One thread.
 */
#ifndef HEADRACE_COMMON_OUTFILE_H
#define HEADRACE_COMMON_OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

struct hr_outfile {
	char *target;  /* the path with all links resolved */
	char *partial; /* the file to write; NULL: `target` */
};

/* Checks the path, but makes no file. Returns 0, -ENOMEM, or the error of the path. */
int hr_outfile_init(struct hr_outfile *o, const char *path);

const char *hr_outfile_name(const struct hr_outfile *o); /* the name to write to */

/* Call it after writing: renames the file if it is whole, otherwise removes it. 0 or -errno. */
int hr_outfile_end(const struct hr_outfile *o, bool whole);
void hr_outfile_done(struct hr_outfile *o);

/* The same for a stream: opens it, or returns NULL and *ret_err (-errno). */
FILE *hr_outfile_open(struct hr_outfile *o, const char *path, int *ret_err);

/*
 * Closes the stream, and ends the file, which is whole if `whole` is true and all writes succeeded.
 * Returns 0 or -errno.
 */
int hr_outfile_close(struct hr_outfile *o, FILE *to, bool whole);

#endif
