/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - text of paths, their identity, and whether the daemon has it
 *
 * Threads   Any, signal handlers included. A text belongs to the frame that initialised it.
 */
#ifndef HEADRACE_SHIM_CORE_PATH_H
#define HEADRACE_SHIM_CORE_PATH_H

#include "common/path_filter.h"
#include "shim/core/internal.h"

/* A path under construction: in the caller's frame, or in a buffer of the pool (hr__text_done returns it). */
struct hr__text {
	char *bytes;
	size_t length;
	int slot;	 /* of the pool, -1: none */
	char small[512]; /* enough for most, small enough for a signal stack */
};

void hr__text_init(struct hr__text *text);
void hr__text_done(struct hr__text *text);
bool hr__text_grow(struct hr__text *text); /* keeps the bytes; false: the pool is empty */
size_t hr__text_cap(const struct hr__text *text);

/* Absolute, normalised text of `path`, which must be readable. False: cannot be known. */
bool hr__path_absolute(struct hr__text *text, int dirfd, const char *path);
/* The same for a base that is there already, pure. Returns the length, 0 when it does not fit. */
size_t hr__path_append(char *buf, size_t base, size_t cap, const char *path, size_t bytes);
/* Readable up to its NUL? Asks the kernel; false under seccomp. */
bool hr__path_readable(const char *path);
void hr__path_know_cwd(void); /* caches it, while it may be asked for */

extern struct hr__filter hr__filter;
/*
 * Id and filter verdict; HR_FILE_IGNORED when excluded. *ret_kind: by which default exclude, as hr__filter_verdict;
 * HR_EXCLUDED_KINDS: by none.
 */
hr_file hr__path_classify(const char *path, size_t bytes, uint32_t *ret_kind);

/* Has this session sent what has this id? Noted once it has. */
bool hr__sent(uint64_t id);
void hr__sent_note(uint64_t id);
/* Has this session sent it (with type and mount, if `typed`)? *ret_file gets what is known of it. */
bool hr__path_sent(hr_file file, bool typed, hr_file *ret_file);
/* Sends HR_CTL_PATH unless that is so. Returns the file with what is known of it. st may be NULL. */
hr_file hr__path_announce(hr_file file, const char *path, size_t bytes, const struct hr__stat *st,
			  bool *ret_sent);

/* fdtab.c: the path behind a descriptor, as opened if the table kept it, else as the kernel names it. */
bool hr__fd_path(int fd, struct hr__text *text);

#endif
