/* SPDX-License-Identifier: Apache-2.0 */
/* wrap_open.c - calls that make a descriptor or a stream */
#include "shim/core/clock.h"
#include "shim/wrap/wrap.h"

/*
 * NOLINTBEGIN(bugprone-macro-parentheses, clang-analyzer-valist.Uninitialized): parameters, types
 * and names cannot have parentheses; the analyzer does not follow va_start inside a macro
 */

#define MADE_FLAGS (O_RDWR | O_CREAT | O_EXCL)

/* ---- a file that has no name before the call ------------------------------------------------ */

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

/* For the mkstemp family: the end of the operation reads the new name from `path`. */
#define MAKE_TEMP(name, params, args, flags)                                                       \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		int fd;                                                                            \
                                                                                                   \
		hr_begin_path(&op, HR_OP_##name, AT_FDCWD, path, HR_ASKED_NONE);                   \
		fd = HR_REAL(name) args;                                                           \
		hr_end_open(&op, fd, hr_ret(fd), (uint32_t)(flags));                               \
		return fd;                                                                         \
	}

MAKE_TEMP(mkstemp, (char *path), (path), MADE_FLAGS)
MAKE_TEMP(mkstemp64, (char *path), (path), MADE_FLAGS)
MAKE_TEMP(mkostemp, (char *path, int flags), (path, flags), flags | MADE_FLAGS)
MAKE_TEMP(mkostemp64, (char *path, int flags), (path, flags), flags | MADE_FLAGS)
MAKE_TEMP(mkstemps, (char *path, int suffix), (path, suffix), MADE_FLAGS)
MAKE_TEMP(mkstemps64, (char *path, int suffix), (path, suffix), MADE_FLAGS)
MAKE_TEMP(mkostemps, (char *path, int suffix, int flags), (path, suffix, flags), flags | MADE_FLAGS)
MAKE_TEMP(mkostemps64, (char *path, int suffix, int flags), (path, suffix, flags),
	  flags | MADE_FLAGS)

#define MAKE_FD(name, params, args, flags)                                                         \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		uint64_t start = hr_shim_ticks();                                                  \
		int fd = HR_REAL(name) args;                                                       \
                                                                                                   \
		hr__record_made_fd(HR_OP_##name, start, fd, (uint32_t)(flags));                    \
		return fd;                                                                         \
	}

MAKE_FD(memfd_create, (const char *name, unsigned flags), (name, flags), flags)
MAKE_FD(shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode), flags)
MAKE_FD(open_by_handle_at, (int mount_fd, struct file_handle *handle, int flags),
	(mount_fd, handle, flags), flags)

#define MAKE_STREAM(name)                                                                          \
	FILE *hr_wrap_##name(void)                                                                 \
	{                                                                                          \
		uint64_t start = hr_shim_ticks();                                                  \
		FILE *fp = HR_REAL(name)();                                                        \
                                                                                                   \
		hr__record_made_fd(HR_OP_##name, start, hr_fileno(fp), MADE_FLAGS);                \
		return fp;                                                                         \
	}

MAKE_STREAM(tmpfile)
MAKE_STREAM(tmpfile64)

/* Whether the caller passes a mode, which it does only with these flags. */
static inline bool takes_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static inline int end_open(struct hr_op *op, int fd, int flags)
{
	hr_end_open(op, fd, hr_ret(fd), (uint32_t)flags);
	return fd;
}

#define OPEN(name, dirfd, params, args)                                                            \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
                                                                                                   \
		hr_begin_path(&op, HR_OP_##name, dirfd, path, HR_ASKED_NONE);                      \
		return end_open(&op, HR_REAL(name) args, flags);                                   \
	}

#define OPEN_VARIADIC(name, dirfd, params, args)                                                   \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if (takes_mode(flags))                                                             \
			mode = va_arg(ap, mode_t);                                                 \
		va_end(ap);                                                                        \
		hr_begin_path(&op, HR_OP_##name, dirfd, path, HR_ASKED_NONE);                      \
		return end_open(&op, HR_REAL(name) args, flags);                                   \
	}

OPEN_VARIADIC(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN_VARIADIC(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN_VARIADIC(openat, dirfd, (int dirfd, const char *path, int flags, ...),
	      (dirfd, path, flags, mode))
OPEN_VARIADIC(openat64, dirfd, (int dirfd, const char *path, int flags, ...),
	      (dirfd, path, flags, mode))
OPEN(__open_2, AT_FDCWD, (const char *path, int flags), (path, flags))
OPEN(__open64_2, AT_FDCWD, (const char *path, int flags), (path, flags))
OPEN(__openat_2, dirfd, (int dirfd, const char *path, int flags), (dirfd, path, flags))
OPEN(__openat64_2, dirfd, (int dirfd, const char *path, int flags), (dirfd, path, flags))

#define CREAT(name)                                                                                \
	int hr_wrap_##name(const char *path, mode_t mode)                                          \
	{                                                                                          \
		struct hr_op op;                                                                   \
                                                                                                   \
		hr_begin_path(&op, HR_OP_##name, AT_FDCWD, path, HR_ASKED_NONE);                   \
		return end_open(&op, HR_REAL(name)(path, mode), O_CREAT | O_WRONLY | O_TRUNC);     \
	}

CREAT(creat)
CREAT(creat64)

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

/* NOLINTEND(bugprone-macro-parentheses, clang-analyzer-valist.Uninitialized) */
