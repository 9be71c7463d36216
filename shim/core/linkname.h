/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linkname.h - turns a link /proc/thread-self/fd/N into a path; writes numbers
 *
 * Threads   Any: pure functions of the caller's memory, which are async-signal-safe.
 */
#ifndef HEADRACE_SHIM_CORE_LINKNAME_H
#define HEADRACE_SHIM_CORE_LINKNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes at most 20 digits, without a NUL. Returns the end of the digits. */
char *hr_put_digits(char *to, uint64_t n);

/* Writes "/proc/thread-self/fd/N". A negative fd gives a link that does not exist. */
void hr__linkname_proc(char buf[32], int fd);
void hr__linkname_stat(char buf[32], int pid); /* writes "/proc/PID/stat" */

/*
 * Cleans a link's text in place. Returns the new length. If `unlinked`, the file has no name, and
 * the function removes " (deleted)", which the kernel added.
 *      /memfd:cache (deleted)     memfd:cache
 *      /data/x (deleted)          /data/x
 *      /tmp/#1234 (deleted)       /tmp/#tmpfile     an O_TMPFILE
 *      pipe:[99], anon_inode:x    length 0
 */
size_t hr__linkname_clean(char *text, size_t bytes, bool unlinked);

/*
 * Whether an absolute path names what a process has open: /dev/stdin, /dev/fd/3, /proc/self/fd/3,
 * /proc/99/cwd, or a file below one of them.
 */
bool hr__linkname_is_open(const char *path, size_t bytes);

#endif
