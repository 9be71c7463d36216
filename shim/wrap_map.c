/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_map.c - mappings of tracked files
 *
 * Allocators map and unmap anonymous memory all the time: that costs a compare and, while no file is
 * mapped, the look at an empty list.
 */
#include <sys/mman.h>

#include "shim/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameter lists, types and names take none */

/* A fixed mapping replaces what was there. */
static inline void before_fixed(const void *addr, size_t n, int flags)
{
	if (hr_unlikely(flags & MAP_FIXED))
		hr_map_remove(addr, n);
}

static inline void *end_mmap(struct hr_op *op, void *addr, size_t n, uint32_t flags)
{
	if (op->live && addr != MAP_FAILED)
		hr_map_add(addr, n, op->file);
	hr_end(op, addr != MAP_FAILED ? 0 : hr_ret(-1), flags);
	return addr;
}

#define MMAP(name, type)                                                                           \
	void *hr_wrap_##name(void *addr, size_t n, int prot, int flags, int fd, type offset)       \
	{                                                                                          \
		struct hr_op op;                                                                   \
                                                                                                   \
		before_fixed(addr, n, flags);                                                      \
		if (flags & MAP_ANONYMOUS)                                                         \
			return HR_REAL(name)(addr, n, prot, flags, fd, offset);                    \
		hr_begin_fd(&op, HR_OP_##name, fd, n, offset);                                     \
		return end_mmap(&op, HR_REAL(name)(addr, n, prot, flags, fd, offset), n,           \
				hr_map_flags(prot, flags));                                        \
	}

MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

/* Removed before the call: afterwards the addresses may already be another mapping's. */
int hr_wrap_munmap(void *addr, size_t n)
{
	struct hr_op op;
	int r;

	hr_begin_map(&op, HR_OP_munmap, addr, n);
	hr_map_remove(addr, n);
	r = HR_REAL(munmap)(addr, n);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

void *hr_wrap_mremap(void *addr, size_t old, size_t n, int flags, ...)
{
	hr_file file = hr_map_find(addr);
	struct hr_op op;
	void *to = NULL;
	va_list ap;
	void *r;

	va_start(ap, flags);
	if (flags &
	    MREMAP_FIXED) /* the analyzer does not know va_start where libc's name is a label */
		to = va_arg(ap, void *); /* NOLINT(clang-analyzer-valist.Uninitialized) */
	va_end(ap);
	if (to != NULL)
		hr_map_remove(to, n);
	hr_begin_map(&op, HR_OP_mremap, addr, n);
	if (hr_file_tracked(file))
		hr_map_remove(addr, old);
	r = HR_REAL(mremap)(addr, old, n, flags, to);
	if (hr_file_tracked(file) && r != MAP_FAILED)
		hr_map_add(r, n, file);
	else if (hr_file_tracked(file))
		hr_map_add(addr, old, file);
	hr_end(&op, r != MAP_FAILED ? 0 : hr_ret(-1), (uint32_t)flags);
	return r;
}

/* Returns an error number. */
int hr_wrap_posix_madvise(void *addr, size_t n, int advice)
{
	struct hr_op op;
	int r;

	hr_begin_map(&op, HR_OP_posix_madvise, addr, n);
	r = HR_REAL(posix_madvise)(addr, n, advice);
	hr_end(&op, -(int64_t)r, (uint32_t)advice);
	return r;
}

/* NOLINTEND(bugprone-macro-parentheses) */
