/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extrap_file.h - reads and writes measurements in two formats of Extra-P
 *
 *      text        PARAMETER ranks                 the points are the same for all series
 *                  POINTS (2) (4) (8)
 *                  METRIC read_s
 *                  REGION train->next
 *                  DATA 1.0 1.1                    one line for each point, with its repetitions
 *
 *      JSON lines  {"params": {"ranks": 2}, "callpath": "train->next", "metric": "read_s",
 *                   "value": 1.0}                  one line for each repetition
 *
 * One thread per struct hr_measurements.
 */
#ifndef HEADRACE_MODEL_EXTRAP_FILE_H
#define HEADRACE_MODEL_EXTRAP_FILE_H

#include <stdio.h>

#include "model/points.h"

enum hr_extrap_format { HR_EXTRAP_TEXT, HR_EXTRAP_JSONL };

/*
 * Adds the measurements of a file of one of the formats, which its first byte decides. Later files
 * must have the parameters of the first one. Returns 0; -EBADMSG, and an error that names the line
 * (malloc'ed); -ENOMEM. After an error, `to` has what the file contains before it.
 */
int hr_extrap_read(const char *data, size_t bytes, struct hr_measurements *to, char **ret_error);

/*
 * Writes all measurements. Names are escaped as hr_text_escape does. Returns 0; -EINVAL: the format
 * cannot hold them, with an error (malloc'ed); -ENOMEM. Errors of `out` are left to ferror.
 */
int hr_extrap_write(FILE *out, enum hr_extrap_format format, const struct hr_measurements *m,
		    char **ret_error);

#endif
