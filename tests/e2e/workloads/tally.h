/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - the generator's own arithmetic
 *
 * Purpose   Each t_<call>() makes one libc call, insists that it succeeds, and counts it under
 * (operation, path as opened). tally_flush() appends the counts to $E2E_TALLY as lines "pid op
 * path-in-hex calls bytes", which harness.py holds against headrace's answer and against strace's.
 * Threads   Counting takes a mutex; a forked child starts from nothing with tally_child().
 * Lifetime  One table per process; flush before exec and before the process ends or is killed.
 */
#ifndef E2E_TALLY_H
#define E2E_TALLY_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TALLY_PATH_BYTES 4096

/* Says what failed and ends the process with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			die("%s:%d: %s", __FILE__, __LINE__, #condition);                          \
	} while (0)

void tally_add(const char *op, const char *path, uint64_t bytes);
void tally_add_many(const char *op, const char *path, uint64_t calls, uint64_t bytes);
void tally_flush(void);
void tally_child(void); /* forget what the parent counted */

/* Which path a descriptor stands for, when it did not come from t_open (dup, inherited, received).
 */
void tally_name(int fd, const char *path);
const char *tally_path(int fd);

/* `name` is counted; `given` is what is passed to the call (relative, with another spelling...). */
int t_openat(int dirfd, const char *given, int flags, const char *name);
int t_open(const char *path, int flags);
size_t t_read(int fd, size_t bytes); /* what was read */
void t_pread(int fd, size_t bytes, off_t offset);
void t_write(int fd, size_t bytes);
void t_lseek(int fd, off_t offset);
void t_fstat(int fd);
void t_close(int fd);

/* open, fstat, read in pieces of 4096 until 0, close. */
void t_slurp(const char *path);

/* FOLDER/f000, FOLDER/f001...: the files that harness.py made before the run. From a ring of 16. */
const char *data_file(const char *folder, unsigned i);

#endif
