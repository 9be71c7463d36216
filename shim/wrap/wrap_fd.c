/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_fd.c - descriptors: ranges of closes, dup, and copies between two descriptors
 *
 * The fd table has no lock, so the order matters. An entry changes before a call that frees its
 * number (also in HR_WRAP_CLOSE), and immediately after a call that returns a new number.
 */
#include "shim/wrap/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */

int hr_wrap_close_range(unsigned first, unsigned last, int flags)
{
	hr_before_close_range(first, last, (unsigned)flags);
	return HR_REAL(close_range)(first, last, flags);
}

void hr_wrap_closefrom(int first)
{
	hr_before_close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0);
	HR_REAL(closefrom)(first);
}

int hr_wrap_dup(int fd)
{
	struct hr_op op;
	int r;

	hr_begin_fd(&op, HR_OP_dup, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	r = HR_REAL(dup)(fd);
	if (r >= 0)
		hr_fd_set(r, hr_fd_get(fd));
	hr_end(&op, hr_ret(r), 0);
	return r;
}

#define DUP_TO(name, params, args, flags)                                                          \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		int r;                                                                             \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, fd, HR_ASKED_NONE, HR_OFFSET_NONE);                 \
		hr_before_dup(fd, to);                                                             \
		r = HR_REAL(name) args;                                                            \
		hr_after_dup(fd, to, r);                                                           \
		hr_end(&op, hr_ret(r), (uint32_t)(flags));                                         \
		return r;                                                                          \
	}

DUP_TO(dup2, (int fd, int to), (fd, to), 0)
DUP_TO(dup3, (int fd, int to, int flags), (fd, to, flags), flags)

/* The argument is an int, a pointer, or missing. The wrapper always forwards one word. */
#define FCNTL(name)                                                                                \
	int hr_wrap_##name(int fd, int cmd, ...)                                                   \
	{                                                                                          \
		struct hr_op op;                                                                   \
		va_list ap;                                                                        \
		void *arg;                                                                         \
		int r;                                                                             \
                                                                                                   \
		va_start(ap, cmd);                                                                 \
		arg = va_arg(ap, void *);                                                          \
		va_end(ap);                                                                        \
		if (hr_fd_ignored(fd) && !hr_fcntl_dups(cmd))                                      \
			return HR_REAL(name)(fd, cmd, arg);                                        \
		hr_begin_fd(&op, HR_OP_##name, fd, HR_ASKED_NONE, HR_OFFSET_NONE);                 \
		r = HR_REAL(name)(fd, cmd, arg);                                                   \
		if (r >= 0 && hr_fcntl_dups(cmd))                                                  \
			hr_fd_set(r, hr_fd_get(fd));                                               \
		hr_end(&op, hr_ret(r), (uint32_t)cmd);                                             \
		return r;                                                                          \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

int hr_wrap_ioctl(int fd, unsigned long request, ...)
{
	struct hr_op op;
	va_list ap;
	void *arg;
	int r;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (hr_fd_ignored(fd))
		return HR_REAL(ioctl)(fd, request, arg);
	hr_begin_fd(&op, HR_OP_ioctl, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	r = HR_REAL(ioctl)(fd, request, arg);
	hr_end(&op, hr_ret(r), (uint32_t)request);
	return r;
}

void hr_wrap_sync(void)
{
	struct hr_op op;

	hr_begin_file(&op, HR_OP_sync, HR_FILE_UNKNOWN, -1, HR_ASKED_NONE, HR_OFFSET_NONE);
	HR_REAL(sync)();
	hr_end(&op, 0, 0);
}

hr_file hr__begin_copy(struct hr_op *op, enum hr_op_id id, int in, int out, uint64_t asked)
{
	hr_file second = hr_fd_get(out);

	if (hr_file_tracked(hr_fd_get(in)))
		hr_begin_fd(op, id, in, asked, HR_OFFSET_NONE);
	else
		hr_begin_file(op, id, hr_file_tracked(second) ? HR_FILE_UNKNOWN : HR_FILE_IGNORED,
			      -1, asked, HR_OFFSET_NONE);
	return second;
}

/* If the size is 0, the kernel does not read the offset, which may then be a bad pointer. */
static inline int64_t before_copy(const off64_t *offset, uint64_t asked, int64_t ret)
{
	return offset != NULL && asked > 0 && ret >= 0 ? *offset - ret : HR_OFFSET_NONE;
}

void hr__end_copy(struct hr_op *op, hr_file second, int out, const off64_t *in_offset,
		  const off64_t *out_offset, int64_t ret, uint32_t flags)
{
	bool to_file = hr_file_tracked(second);

	if (!op->live)
		return;
	if (hr_file_tracked(op->file))
		op->offset = before_copy(in_offset, op->asked, ret);
	hr_end_pair(op, second, to_file ? out : -1,
		    to_file ? before_copy(out_offset, op->asked, ret) : HR_OFFSET_NONE, ret, flags);
}

#define SENDFILE(name, type)                                                                       \
	ssize_t hr_wrap_##name(int out, int in, type *offset, size_t n)                            \
	{                                                                                          \
		struct hr_op op;                                                                   \
		hr_file second;                                                                    \
		ssize_t r;                                                                         \
                                                                                                   \
		if (hr_fd_ignored(in) && hr_fd_ignored(out))                                       \
			return HR_REAL(name)(out, in, offset, n);                                  \
		second = hr__begin_copy(&op, HR_OP_##name, in, out, n);                            \
		r = HR_REAL(name)(out, in, offset, n);                                             \
		hr__end_copy(&op, second, out, (const off64_t *)offset, NULL, hr_ret(r), 0);       \
		return r;                                                                          \
	}

_Static_assert(sizeof(off_t) == sizeof(off64_t), "64-bit only");
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define COPY(name)                                                                                 \
	ssize_t hr_wrap_##name(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t n, \
			       unsigned flags)                                                     \
	{                                                                                          \
		struct hr_op op;                                                                   \
		hr_file second;                                                                    \
		ssize_t r;                                                                         \
                                                                                                   \
		if (hr_fd_ignored(in) && hr_fd_ignored(out))                                       \
			return HR_REAL(name)(in, in_offset, out, out_offset, n, flags);            \
		second = hr__begin_copy(&op, HR_OP_##name, in, out, n);                            \
		r = HR_REAL(name)(in, in_offset, out, out_offset, n, flags);                       \
		hr__end_copy(&op, second, out, in_offset, out_offset, hr_ret(r), flags);           \
		return r;                                                                          \
	}

COPY(copy_file_range)
COPY(splice)

/* NOLINTEND(bugprone-macro-parentheses) */
