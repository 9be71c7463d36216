/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - the text of paths, their ids, and which paths the daemon has
 *
 * Threads   Any, signal handlers included. A text belongs to the function that initializes it.
 */
#ifndef HEADRACE_SHIM_CORE_PATH_H
#define HEADRACE_SHIM_CORE_PATH_H

#include "common/path_filter.h"
#include "shim/core/internal.h"

/* A path in the caller's frame, or in a buffer of the pool until hr__text_done releases it. */
struct hr__text {
	char *bytes;
	size_t length;
	int slot;	 /* index in the pool; -1: `small` */
	char small[512]; /* enough for most paths, and not too big for a handler's stack */
};

void hr__text_init(struct hr__text *text);
void hr__text_done(struct hr__text *text);
bool hr__text_grow(struct hr__text *text); /* keeps the bytes; false: the pool has no free buffer */
size_t hr__text_cap(const struct hr__text *text);

/* Writes the absolute, normalised text of `path`, which must be readable. False: not possible. */
bool hr__path_absolute(struct hr__text *text, int dirfd, const char *path);
/* Appends `path` to the path of `base` bytes in buf. Returns the length; 0: it does not fit. */
size_t hr__path_append(char *buf, size_t base, size_t cap, const char *path, size_t bytes);
/* True: a system call could read the path up to its NUL. False if seccomp forbids system calls. */
bool hr__path_readable(const char *path);
void hr__path_know_cwd(void); /* caches the working directory, while system calls are allowed */

extern struct hr__filter hr__filter;
/* The file; HR_FILE_IGNORED: excluded. *ret_kind: the default exclude, or HR_EXCLUDED_KINDS. */
hr_file hr__path_classify(const char *path, size_t bytes, uint32_t *ret_kind);

/* True: this session has sent the text with this id. hr__sent_note() stores that it was sent. */
bool hr__sent(uint64_t id);
void hr__sent_note(uint64_t id);
/* True: the path was sent (if `typed`, with type and mount). *ret_file: `file` with known bits. */
bool hr__path_sent(hr_file file, bool typed, hr_file *ret_file);
/* Sends HR_CTL_PATH unless it was sent. Returns the file with its known bits. st may be NULL. */
hr_file hr__path_announce(hr_file file, const char *path, size_t bytes, const struct hr__stat *st,
			  bool *ret_sent);

/* fdtab.c: a descriptor's path as it was opened. If the table lacks it: the kernel's name. */
bool hr__fd_path(int fd, struct hr__text *text);

#endif
