/* SPDX-License-Identifier: Apache-2.0 */
/* darshan.h - writes a job as a Darshan log (docs/export-darshan.md) */
#ifndef HEADRACE_EXPORT_DARSHAN_H
#define HEADRACE_EXPORT_DARSHAN_H

#include "export/export.h"

/*
 * Writes a Darshan log of the walk's job to the open, seekable, empty file `fd`. Returns 0 or
 * -errno. *ret_error (malloc'ed) has advice, or is NULL.
 */
int hr_darshan_write(struct hr_export *x, int fd, char **ret_error);

#endif
