/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - a file that a person names for output
 *
 * Purpose   A regular file appears under its name when it is whole: it is written beside it and renamed. What is
 *           something else (a device, a FIFO, /dev/stdout) is written to as it stands, never replaced; a link is
 *           followed first.
 * Owner     The caller; hr_outfile_done frees. Threads: one.
 */
#ifndef HEADRACE_COMMON_OUTFILE_H
#define HEADRACE_COMMON_OUTFILE_H

#include <stdbool.h>

struct hr_outfile {
	char *target;  /* links resolved */
	char *partial; /* where to write; NULL: into target itself */
};

/* 0, -ENOMEM, or why the path cannot be looked at. Makes no file. */
int hr_outfile_init(struct hr_outfile *o, const char *path);

/* The name to write to. */
const char *hr_outfile_name(const struct hr_outfile *o);

/* After writing: `whole` gives the file its name, else what was written is removed. 0 or -errno. */
int hr_outfile_end(const struct hr_outfile *o, bool whole);
void hr_outfile_done(struct hr_outfile *o); /* accepts a zeroed one */

#endif
