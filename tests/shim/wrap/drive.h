/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.h - one drive_<name>() for every row of proto/calls.def, and what they share
 *
 * Purpose   A drive calls the wrapper by its C name (hr_wrap_read, symbol `read`), checks that the original
 *           did its job, and takes the one event that must have come of it. A row without a drive does not
 *           link; an event that nobody took fails the test, as does a row of a class other than HOOK without one.
 * Lifetime  Each drive runs in a folder of its own (the working directory, stub_root) with the file "data".
 */
#ifndef HEADRACE_TESTS_DRIVE_H
#define HEADRACE_TESTS_DRIVE_H

#include <stdlib.h>

#include "shim/wrap/wrap.h"
#include "stub_core.h"
#include "tests/unit.h"

#define HR_CALL(id, ret, name, ...) void drive_##name(void);
#include "proto/calls.def"
#undef HR_CALL

/* Four lines of 16 bytes. */
#define TEXT	   "0123456789abcde\n0123456789abcdf\n0123456789abcdg\n0123456789abcdh\n"
#define TEXT_BYTES 64

extern int root_fd;		      /* O_PATH, the folder */
extern char data_path[PATH_MAX + 64]; /* of "data" */

const char *P(const char *name);	  /* absolute path of a name in the folder */
int data_open(int flags);		  /* "data", by a raw system call */
int fd_open(const char *name, int flags); /* likewise, mode 0600 */
FILE *stream(const char *name, const char *mode);
bool exists(const char *name);
int mode_of(const char *name); /* st_mode & 07777 */
int64_t size_of(const char *name);
bool holds(const char *name, const char *text); /* the file's content is this */
bool same_file(int fd, const char *name);
FILE *std_begin(FILE *std, const char *name, int flags); /* stdin or stdout becomes the file */
void std_end(FILE *std);
bool in_libc(const char *name); /* some rows are for a newer libc */

/* Calls a wrapper with the recorder on, and keeps its errno. */
#define ON(call)                                                                                   \
	({                                                                                         \
		__typeof__(call) on_r_;                                                            \
		int on_errno_;                                                                     \
		errno = 0;                                                                         \
		stub_on();                                                                         \
		on_r_ = (call);                                                                    \
		on_errno_ = errno;                                                                 \
		stub_off();                                                                        \
		errno = on_errno_;                                                                 \
		on_r_;                                                                             \
	})

#define ON_VOID(call)                                                                              \
	do {                                                                                       \
		stub_on();                                                                         \
		call;                                                                              \
		stub_off();                                                                        \
	} while (0)

struct want {
	uint16_t id;
	int fd, fd2;
	const char *path, *path2;
	uint64_t asked;
	int64_t offset, offset2, ret;
	uint32_t flags;
};

/* Takes the next event, which must be this operation. */
void want(const struct want *w);
#define WANT(id_, ...)                                                                             \
	want(&(struct want){.id = (id_),                                                           \
			    .fd = -1,                                                              \
			    .fd2 = -1,                                                             \
			    .asked = HR_ASKED_NONE,                                                \
			    .offset = HR_OFFSET_NONE,                                              \
			    .offset2 = HR_OFFSET_NONE,                                             \
			    .path = data_path,                                                     \
			    __VA_ARGS__})

/* ... a counted character; ... a hook of the core, with its number or text. */
void want_count(uint16_t id, int fd, int64_t bytes);
const struct stub_event *want_hook(const char *name);

/* The call failed with this errno and changed nothing else. */
#define assert_failed(r, e)                                                                        \
	do {                                                                                       \
		long failed_r_ = (r);                                                              \
		int failed_errno_ = errno;                                                         \
                                                                                                   \
		assert_int_equal(failed_r_, -1);                                                   \
		assert_int_equal(failed_errno_, (e));                                              \
	} while (0)

#endif
