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

/* A path in the caller's frame, or in a buffer of the pool until hr__text_done(). */
struct hr__text {
	char *bytes;
	size_t length;
	int slot;	 /* index of the buffer in the pool; -1: `small` */
	char small[512]; /* long enough for most paths, and fits on a handler's stack */
};

void hr__text_init(struct hr__text *text);
void hr__text_done(struct hr__text *text);
bool hr__text_grow(struct hr__text *text); /* keeps the text; false: the pool has no free buffer */
size_t hr__text_cap(const struct hr__text *text);

/*
 * The folder of a file, if it is unknown: the path is longer than the kernel returns (4,095 bytes),
 * or the working directory changed under seccomp. No filter applies to such a file.
 */
#define HR__UNKNOWN_FOLDER "(unknown folder)"

/* Writes the absolute, normalised text of `path`, which must be readable. False: it is empty. */
bool hr__path_absolute(struct hr__text *text, int dirfd, const char *path);
/* Appends `path` to the path of `base` bytes in buf. Returns the length; 0: it does not fit. */
size_t hr__path_append(char *buf, size_t base, size_t cap, const char *path, size_t bytes);
/* Whether the path is readable up to its NUL. False if system calls are forbidden. */
bool hr__path_readable(const char *path);
void hr__path_know_cwd(void); /* caches the working directory; call it before seccomp */

extern struct hr_filter hr_filter;
/* HR_FILE_IGNORED: excluded. *ret_kind: the default filter that did it, or HR_EXCLUDED_KINDS. */
hr_file hr__path_classify(const char *path, size_t bytes, uint32_t *ret_kind);

/* Whether this session has sent the text with this id. hr_sent_note() stores that it was sent. */
bool hr_sent(uint64_t id);
void hr_sent_note(uint64_t id);
/* Whether the path was sent (if `typed`, with type and mount). *ret_file: with all known bits. */
bool hr__path_sent(hr_file file, bool typed, hr_file *ret_file);
/* Sends HR_CTL_PATH unless it was sent. Returns the file with all known bits. st may be NULL. */
hr_file hr__path_announce(hr_file file, const char *path, size_t bytes, const struct hr__stat *st,
			  bool *ret_sent);

/* fdtab.c: writes the path as it was opened or, if the table lacks it, the kernel's name. */
bool hr__fd_path(int fd, struct hr__text *text);

#endif
