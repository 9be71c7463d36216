/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - an output file that the user names
 *
 * A regular file is written under another name in the same folder, and renamed when it is complete.
 * Anything else (a device, a FIFO, /dev/stdout) is written in place. Links are followed first.
 *
 * Owner     The caller; hr_outfile_done frees. One thread.
 */
#ifndef HEADRACE_COMMON_OUTFILE_H
#define HEADRACE_COMMON_OUTFILE_H

#include <stdbool.h>

struct hr_outfile {
	char *target;  /* links resolved */
	char *partial; /* the file to write; NULL: `target` */
};

/* Makes no file. 0, -ENOMEM, or the reason why the path is not accessible. */
int hr_outfile_init(struct hr_outfile *o, const char *path);

const char *hr_outfile_name(const struct hr_outfile *o); /* the name to write to */

/* After writing: renames the file if `whole`, else removes it. 0 or -errno. */
int hr_outfile_end(const struct hr_outfile *o, bool whole);
void hr_outfile_done(struct hr_outfile *o); /* accepts zeroed memory */

#endif
