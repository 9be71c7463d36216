/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - declarations of all wrappers, and their common parts
 *
 * The wrapper of `read` is the C function hr_wrap_read with the symbol name read. libc's headers
 * define some names as macros, inline them, or redirect them (getc, fscanf), which does not affect
 * the exports. tests/shim/wrap compares the types of the table with those of the headers.
 *
 * Threads   As core.h: any thread, in signal handlers, after fork, and in a vfork child.
 * Lifetime  A wrapper holds no lock and no memory during the original call, which may be cancelled,
 *           or left by siglongjmp.
 */
#ifndef HEADRACE_SHIM_WRAP_WRAP_H
#define HEADRACE_SHIM_WRAP_WRAP_H

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "shim/core/core.h"

struct epoll_event;
struct iocb;
struct io_event;
struct statx; /* the headers of an old libc do not declare it */
struct __jmp_buf_tag;

#define HR_CALL(id, ret, name, params, ...)                                                        \
	typedef ret hr_fn_##name params;                                                           \
	extern hr_fn_##name hr_wrap_##name __asm__(#name) __attribute__((visibility("default")));
#include "proto/calls.def"
#undef HR_CALL

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * A glibc stream begins with a magic word, which other libcs lack. The shim reads the descriptor
 * and the state of such a stream in place, because fileno() sets errno and, in other libcs, takes
 * the stream's lock.
 */
#define HR_STREAM_MAGIC	 0xFBAD0000u
#define HR_STREAM_MASK	 0xFFFF0000u
#define HR_STREAM_EOF	 0x0010u
#define HR_STREAM_ERROR	 0x0020u
#define HR_STREAM_BACKUP 0x0100u /* ungetc() was called, and the stream reads from its characters */
#define HR_STREAM_FILE	 0x2000u /* the stream has a descriptor */

int hr__fileno_slow(FILE *fp); /* calls the original fileno(), and preserves errno */

#ifdef __GLIBC__
static inline bool hr_stream_is(const FILE *fp, uint32_t mask, uint32_t want)
{
	return ((uint32_t)fp->_flags & (HR_STREAM_MASK | mask)) == (HR_STREAM_MAGIC | want);
}

/* Returns the stream's descriptor. Negative: it has none (in memory, a cookie, NULL). */
static inline int hr_fileno(FILE *fp)
{
	if (hr_unlikely(fp == NULL))
		return -1;
	if (hr_likely(hr_stream_is(fp, HR_STREAM_FILE, HR_STREAM_FILE)))
		return fp->_fileno;
	return hr__fileno_slow(fp);
}

/* Returns the number of bytes that the stream has read ahead; 0 if it is not a glibc stream. */
static inline int64_t hr_stream_ahead(const FILE *fp)
{
	return hr_stream_is(fp, 0, 0) ? fp->_IO_read_end - fp->_IO_read_ptr : 0;
}

static inline int64_t hr_stream_pending(const FILE *fp)
{
	return hr_stream_is(fp, 0, 0) ? fp->_IO_write_ptr - fp->_IO_write_base : 0;
}

/* Whether the next character only uses the buffer. False if it is not a glibc stream. */
static inline bool hr_stream_buffered(const FILE *fp)
{
	return hr_stream_is(fp, 0, 0) &&
	       (fp->_IO_read_ptr < fp->_IO_read_end || fp->_IO_write_ptr < fp->_IO_write_end);
}
#else
#define hr_stream_is(fp, mask, want) ((void)(fp), false)
#define hr_stream_ahead(fp)	     ((void)(fp), (int64_t)0)
#define hr_stream_pending(fp)	     ((void)(fp), (int64_t)0)
#define hr_stream_buffered(fp)	     ((void)(fp), false)
#define hr_fileno(fp)		     ((fp) == NULL ? -1 : hr__fileno_slow(fp))
#endif

/* For a negative result of a reader: returns 0 at the end of the file, otherwise -errno. */
static inline int64_t hr_ret_eof(const FILE *fp, int64_t r)
{
	if (r < 0 && hr_stream_is(fp, HR_STREAM_EOF | HR_STREAM_ERROR, HR_STREAM_EOF))
		return 0;
	return hr_ret(r);
}

/* For fread and fwrite: if items were requested and none moved, like hr_ret_eof(). */
static inline int64_t hr_ret_items(const FILE *fp, size_t r, size_t asked)
{
	return r == 0 && asked > 0 ? hr_ret_eof(fp, -1) : (int64_t)r;
}

/*
 * scanf returns the number of items. The shim gets the number of bytes as the difference of the
 * stream's positions. For a stream that is not of glibc, or without a file, the number is unknown.
 */
struct hr_scan {
	struct hr_op op;
	int64_t from;
};

/* Returns the position of the next byte that the program reads or writes. Negative: unknown. */
static inline int64_t hr_stream_position(FILE *fp)
{
	int64_t position = hr_fd_position(hr_fileno(fp));

	if (position < 0 || !hr_stream_is(fp, HR_STREAM_BACKUP, 0))
		return -1;
	return position - hr_stream_ahead(fp) + hr_stream_pending(fp);
}

static inline void hr_begin_scan(struct hr_scan *s, enum hr_op_id id, FILE *fp)
{
	int fd = hr_fileno(fp);

	s->op.live = false;
	if (hr_fd_ignored(fd))
		return;
	s->from = hr_stream_position(fp);
	hr_begin_fd(&s->op, id, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
}

static inline void hr_end_scan(struct hr_scan *s, FILE *fp, int r)
{
	int64_t ret = hr_ret_eof(fp, r), to;

	if (!s->op.live)
		return;
	to = s->from >= 0 ? hr_stream_position(fp) : -1;
	if (to >= s->from && s->from >= 0)
		s->op.asked = (uint64_t)(to - s->from);
	hr_end(&s->op, ret, 0);
}

/* Returns the position in an fpos_t, which is its first word in every libc. */
static inline int64_t hr_fpos(const void *pos)
{
	return *(const int64_t *)pos;
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* Call it only with AT_EMPTY_PATH. False for bad pointers; tests of the kernel pass -1. */
static inline bool hr_path_is_empty(const char *path)
{
	return (uintptr_t)path >= 4096 && (intptr_t)path > 0 && *path == '\0';
}

/* Begins a call. If the path is empty (AT_EMPTY_PATH) or NULL (utimensat), the file is dirfd. */
static inline void hr_begin_at(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path,
			       int at_flags, uint64_t asked)
{
	if (path == NULL || ((at_flags & AT_EMPTY_PATH) && hr_path_is_empty(path)))
		hr_begin_fd(op, id, dirfd, asked, HR_OFFSET_NONE);
	else
		hr_begin_path(op, id, dirfd, path, asked);
}

static inline void hr_end_two(struct hr_op *op, int to_fd, const char *to, int64_t ret,
			      uint32_t flags)
{
	hr_file second;

	if (!op->live)
		return;
	second = hr_path_file(to_fd, to, ret >= 0);
	if (hr_file_tracked(second))
		hr_end_pair(op, second, -1, HR_OFFSET_NONE, ret, flags);
	else
		hr_end(op, ret, flags);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

/*
 * For a call that copies data from `in` to `out`. Returns the file of `out` for hr__end_copy. If a
 * file is untracked, its part of the event is empty. If both are, no event is recorded.
 */
hr_file hr__begin_copy(struct hr_op *op, enum hr_op_id id, int in, int out, uint64_t asked);
/* Records a call whose file is that of the new descriptor. A failed call has no file. */
void hr__record_made_fd(enum hr_op_id id, uint64_t start, int fd, uint32_t flags);

/* Ends a copy. Offsets: the program's variables, which the call advanced; NULL: file position. */
void hr__end_copy(struct hr_op *op, hr_file second, int out, const off64_t *in_offset,
		  const off64_t *out_offset, int64_t ret, uint32_t flags);

/* Returns the sum of the sizes. Call it after the call, if the kernel could read the iovec. */
static inline uint64_t hr_iov_bytes(const struct iovec *iov, int count)
{
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* The result of a call with an iovec. Sets op->asked, if the kernel could read the iovec. */
static inline int64_t hr_ret_vector(struct hr_op *op, const struct iovec *iov, int count, int64_t r)
{
	if (r >= 0)
		op->asked = hr_iov_bytes(iov, count);
	return hr_ret(r);
}

/* With another `how`, the call fails before it reads cb, which may then be a bad pointer. */
#define hr_aio_sync_fd(how, cb) ((how) == O_SYNC || (how) == O_DSYNC ? (cb)->aio_fildes : -1)

/* Converts the offset of preadv2 and pwritev2, in which -1 is the file position. */
static inline int64_t hr_v2_offset(off64_t offset)
{
	return offset == -1 ? HR_OFFSET_NONE : offset;
}

/*
 * Call this before a dup makes `to` a copy of `fd`, because another thread may reuse `to` after the
 * dup. First clears the entry of `to`, so that the core stops using `to` for its own connection.
 */
static inline void hr_before_dup(int fd, int to)
{
	hr_file file;

	if (fd == to)
		return;
	file = hr_fd_get(fd);
	hr_fd_clear(to);
	hr_fd_set(to, file);
}

static inline void hr_after_dup(int fd, int to, int r)
{
	if (r < 0 && fd != to)
		hr_fd_clear(to);
}

#define HR_CLOSE_RANGE_UNSHARE 2u
#define HR_CLOSE_RANGE_CLOEXEC 4u

static inline void hr_before_close_range(unsigned first, unsigned last, unsigned flags)
{
	if ((flags & HR_CLOSE_RANGE_UNSHARE) != 0)
		hr_fds_split();
	if (first <= last && !(flags & HR_CLOSE_RANGE_CLOEXEC))
		hr_fd_clear_range(first, last);
}

static inline bool hr_fcntl_dups(int cmd)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;
}

/* ---- libaio --------------------------------------------------------------------------------- */

struct hr__submission {
	struct hr_op op;
	long n_read; /* number of requests, from the first, that the shim has read */
};
void hr__submit_begin(struct hr__submission *s, long n, struct iocb *const list[]);
void hr__submit_end(struct hr__submission *s, struct iocb *const list[], long r);
void hr__requests_over(const struct io_event *events, long n);

/* ---- seccomp -------------------------------------------------------------------------------- */

/*
 * Call these before a call that may forbid system calls. Strict mode and PR_TSC_SIGSEGV also forbid
 * the time stamp counter. A call without a program does not count: libseccomp tests the kernel in
 * this way. The numbers are from linux/prctl.h and linux/seccomp.h. True: the call installs a
 * filter; if it fails, call hr_seccomp_failed().
 */
static inline bool hr_before_prctl(long option, unsigned long mode, unsigned long program)
{
	bool filter = option == 22 /* PR_SET_SECCOMP */ && mode == 2 && program != 0;

	if ((option == 22 && mode == 1) || (option == 26 /* PR_SET_TSC */ && mode == 2))
		hr_before_no_clock();
	else if (filter)
		hr_before_seccomp();
	return filter;
}

static inline bool hr_before_seccomp_call(long operation, unsigned long program)
{
	bool filter = operation == 1 && program != 0;

	if (operation == 0) /* strict mode */
		hr_before_no_clock();
	else if (filter)
		hr_before_seccomp();
	return filter;
}

/* ---- clone ---------------------------------------------------------------------------------- */

/* Call it before a clone whose child may share memory, descriptors or a working directory. */
static inline void hr_before_clone(uint64_t flags)
{
	/* Threads usually share both, and processes usually neither. */
	uint64_t unusual = (flags & CLONE_THREAD) != 0 ? ~flags : flags;

	if ((unusual & CLONE_FILES) != 0)
		hr_fds_split();
	if ((unusual & CLONE_FS) != 0)
		hr_cwd_split();
	if ((flags & CLONE_VM) == 0 || (flags & CLONE_THREAD) != 0)
		return;
	if ((flags & (CLONE_VFORK | CLONE_SETTLS)) != 0)
		hr_before_vfork();
	else
		hr_before_sharing();
}

/* New namespaces of mounts and users imply a working directory of its own. */
static inline void hr_before_unshare(uint64_t flags)
{
	if ((flags & CLONE_FILES) != 0)
		hr_fds_split();
	if ((flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER)) != 0)
		hr_cwd_split();
	hr_before_leaving();
}

/* ---- mappings ------------------------------------------------------------------------------- */

static inline uint32_t hr_map_flags(int prot, int flags)
{
	return ((uint32_t)prot & 15) | (uint32_t)flags << 4;
}

/* Begins mmap. A fixed mapping replaces others. A mapping of anonymous memory is not recorded. */
static inline void hr_begin_mmap(struct hr_op *op, enum hr_op_id id, const void *addr, size_t n,
				 int flags, int fd, int64_t offset)
{
	if (hr_unlikely(flags & MAP_FIXED))
		hr_map_remove(addr, n);
	if (flags & MAP_ANONYMOUS)
		op->live = false;
	else
		hr_begin_fd(op, id, fd, n, offset);
}

static inline void hr_end_mmap(struct hr_op *op, const void *addr, size_t n, uint32_t flags)
{
	if (!op->live)
		return;
	if (addr != MAP_FAILED)
		hr_map_add(addr, n, op->file);
	hr_end(op, addr != MAP_FAILED ? 0 : hr_ret(-1), flags);
}

/* Removes the mapping before the call: after it, another thread may get these addresses. */
static inline void hr_begin_munmap(struct hr_op *op, const void *addr, size_t n)
{
	hr_begin_map(op, HR_OP_munmap, addr, n);
	hr_map_remove(addr, n);
}

/* `to`: the address for MREMAP_FIXED, or NULL. Returns the mapping's file for hr_end_mremap(). */
static inline hr_file hr_begin_mremap(struct hr_op *op, const void *addr, size_t old, size_t n,
				      const void *to)
{
	hr_file file = hr_map_find(addr);

	if (to != NULL)
		hr_map_remove(to, n);
	hr_begin_map(op, HR_OP_mremap, addr, n);
	if (hr_file_tracked(file))
		hr_map_remove(addr, old);
	return file;
}

static inline void hr_end_mremap(struct hr_op *op, hr_file file, const void *addr, size_t old,
				 const void *r, size_t n, uint32_t flags)
{
	if (hr_file_tracked(file) && r != MAP_FAILED)
		hr_map_add(r, n, file);
	else if (hr_file_tracked(file))
		hr_map_add(addr, old, file);
	hr_end(op, r != MAP_FAILED ? 0 : hr_ret(-1), flags);
}

#endif
