/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_stdio.c - calls on streams that the table cannot describe
 *
 * A stdio call and the system calls inside it are one event, because libc's own calls do not use
 * the wrappers. wrap_open.c has the calls that open streams.
 */
#include "shim/wrap/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */

int hr__fileno_slow(FILE *fp)
{
	int saved = errno;
	int fd = HR_REAL(fileno)(fp);

	errno = saved;
	return fd;
}

/* popen opens the pipe inside libc, so only the entry of the fd table has to be cleared. */
int hr_wrap_pclose(FILE *fp)
{
	hr_fd_clear(hr_fileno(fp));
	return HR_REAL(pclose)(fp);
}

/* fflush(NULL) flushes every stream, and is an operation without a file. */
#define FFLUSH(name)                                                                               \
	int hr_wrap_##name(FILE *fp)                                                               \
	{                                                                                          \
		int fd = hr_fileno(fp);                                                            \
		struct hr_op op;                                                                   \
		int r;                                                                             \
                                                                                                   \
		if (fp != NULL && hr_fd_ignored(fd))                                               \
			return HR_REAL(name)(fp);                                                  \
		if (fp != NULL)                                                                    \
			hr_begin_fd(&op, HR_OP_##name, fd, HR_ASKED_NONE, HR_OFFSET_NONE);         \
		else                                                                               \
			hr_begin_file(&op, HR_OP_##name, HR_FILE_UNKNOWN, -1, HR_ASKED_NONE,       \
				      HR_OFFSET_NONE);                                             \
		r = HR_REAL(name)(fp);                                                             \
		hr_end(&op, hr_ret(r), 0);                                                         \
		return r;                                                                          \
	}

FFLUSH(fflush)
FFLUSH(fflush_unlocked)

/* The length is read within the operation, because the string may not be in memory yet. */
#define FPUTS(name)                                                                                \
	int hr_wrap_##name(const char *s, FILE *fp)                                                \
	{                                                                                          \
		int fd = hr_fileno(fp);                                                            \
		struct hr_op op;                                                                   \
		int r;                                                                             \
                                                                                                   \
		if (hr_fd_ignored(fd))                                                             \
			return HR_REAL(name)(s, fp);                                               \
		hr_begin_fd(&op, HR_OP_##name, fd, HR_ASKED_NONE, HR_OFFSET_NONE);                 \
		if (op.live)                                                                       \
			op.asked = strlen(s);                                                      \
		r = HR_REAL(name)(s, fp);                                                          \
		hr_end(&op, hr_ret(r), 0);                                                         \
		return r;                                                                          \
	}

FPUTS(fputs)
FPUTS(fputs_unlocked)

int hr_wrap_puts(const char *s)
{
	int fd = hr_fileno(stdout);
	struct hr_op op;
	int r;

	if (hr_fd_ignored(fd))
		return HR_REAL(puts)(s);
	hr_begin_fd(&op, HR_OP_puts, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	if (op.live)
		op.asked = strlen(s) + 1;
	r = HR_REAL(puts)(s);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

/* getw returns EOF also for a word of the file with this value. */
int hr_wrap_getw(FILE *fp)
{
	struct hr_op op;
	int64_t ret = sizeof(int);
	int r;

	hr_begin_fd(&op, HR_OP_getw, hr_fileno(fp), sizeof(int), HR_OFFSET_NONE);
	r = HR_REAL(getw)(fp);
	if (r == EOF && !hr_stream_is(fp, HR_STREAM_EOF | HR_STREAM_ERROR, 0))
		ret = hr_ret_eof(fp, r);
	hr_end(&op, ret, 0);
	return r;
}

/* NOLINTEND(bugprone-macro-parentheses) */
