/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strace_lines.h - the lines of one or more files, in the order of their times
 *
 * Owner     The reader of a file; one thread. A line is valid until the next one.
 */
#ifndef HEADRACE_IMPORT_STRACE_STRACE_LINES_H
#define HEADRACE_IMPORT_STRACE_STRACE_LINES_H

#include "import/input.h"
#include "import/strace/strace_line.h"

struct strace_lines; /* lines of one file */

/*
 * Takes over `in`. NULL: no memory, and `in` is closed. `tid`: of lines without a tid. `count`
 * (NULL: none): the input that counts the bytes after the head of `in`.
 */
struct strace_lines *hr__strace_lines_new(struct hr_input *in, int32_t tid, struct hr_input *count);
void hr__strace_lines_free(struct strace_lines *l);

struct strace_merge {
	struct strace_lines **v; /* a heap: the earliest line is first */
	size_t n, room;
};

/* Adds a file, and takes it over. 0 or -errno. */
int hr__strace_merge_add(struct strace_merge *m, struct strace_lines *l);
/*
 * Returns the next line: 1; 0: no more; -errno. *ret_bad: it cannot be scanned. *ret_torn: it has no
 * line end.
 */
int hr__strace_merge_next(struct strace_merge *m, struct hr_strace_line *ret, bool *ret_bad,
			  bool *ret_torn);
void hr__strace_merge_done(struct strace_merge *m);

#endif
