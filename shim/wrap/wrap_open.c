/* SPDX-License-Identifier: Apache-2.0 */
/* wrap_open.c - calls that make a descriptor or a stream */
#include "shim/wrap/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */

void hr__record_made_fd(enum hr_op_id id, uint64_t start, int fd, uint32_t flags)
{
	int64_t ret = hr_ret(fd);
	struct hr_op op;

	if (fd >= 0) {
		hr_fd_clear(fd);
		hr_begin_fd(&op, id, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	} else {
		hr_begin_file(&op, id, HR_FILE_UNKNOWN, -1, HR_ASKED_NONE, HR_OFFSET_NONE);
	}
	op.start = start;
	hr_end(&op, ret, flags);
}

static uint32_t mode_flags(const char *mode)
{
	int flags = *mode == 'r'   ? O_RDONLY
		    : *mode == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
				   : O_WRONLY | O_CREAT | O_APPEND;

	for (const char *c = mode; *c != '\0' && *c != ','; c++) {
		if (*c == '+')
			flags = (flags & ~O_ACCMODE) | O_RDWR;
		else if (*c == 'x')
			flags |= O_EXCL;
		else if (*c == 'e')
			flags |= O_CLOEXEC;
	}
	return (uint32_t)flags;
}

static FILE *end_fopen(struct hr_op *op, FILE *fp, const char *mode)
{
	int fd = hr_fileno(fp);

	hr_end_open(op, fd, fp != NULL ? fd : hr_ret(-1), mode_flags(mode));
	return fp;
}

#define FOPEN(name)                                                                                \
	FILE *hr_wrap_##name(const char *path, const char *mode)                                   \
	{                                                                                          \
		struct hr_op op;                                                                   \
                                                                                                   \
		hr_begin_path(&op, HR_OP_##name, AT_FDCWD, path, HR_ASKED_NONE);                   \
		return end_fopen(&op, HR_REAL(name)(path, mode), mode);                            \
	}

FOPEN(fopen)
FOPEN(fopen64)

FILE *hr_wrap_fdopen(int fd, const char *mode)
{
	struct hr_op op;
	FILE *fp;

	hr_begin_fd(&op, HR_OP_fdopen, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	fp = HR_REAL(fdopen)(fd, mode);
	hr_end(&op, fp != NULL ? fd : hr_ret(-1), mode_flags(mode));
	return fp;
}

/* The call closes the stream's descriptor, and the new descriptor often gets the same number. */
static hr_file begin_freopen(struct hr_op *op, enum hr_op_id id, const char *path, FILE *fp)
{
	int fd = hr_fileno(fp);
	hr_file file = HR_FILE_IGNORED;

	if (path != NULL) {
		hr_begin_path(op, id, AT_FDCWD, path, HR_ASKED_NONE);
	} else {
		file = hr_fd_get(fd);
		hr_begin_fd(op, id, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	}
	hr_fd_clear(fd);
	return file;
}

/* Without a path, freopen opens the same file in another mode. */
static FILE *end_freopen(struct hr_op *op, hr_file file, const char *path, const char *mode,
			 FILE *fp)
{
	int fd = hr_fileno(fp);

	if (path != NULL)
		return end_fopen(op, fp, mode);
	hr_fd_set(fd, file);
	hr_end(op, fp != NULL ? fd : hr_ret(-1), mode_flags(mode));
	return fp;
}

#define FREOPEN(name)                                                                              \
	FILE *hr_wrap_##name(const char *path, const char *mode, FILE *fp)                         \
	{                                                                                          \
		struct hr_op op;                                                                   \
		hr_file file = begin_freopen(&op, HR_OP_##name, path, fp);                         \
                                                                                                   \
		return end_freopen(&op, file, path, mode, HR_REAL(name)(path, mode, fp));          \
	}

FREOPEN(freopen)
FREOPEN(freopen64)

/* NOLINTEND(bugprone-macro-parentheses) */
