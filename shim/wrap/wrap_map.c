/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_map.c - mappings of tracked files
 *
 * Allocators often map and unmap anonymous memory. For such a call, the wrapper only makes a
 * comparison and, while no file is mapped, one load.
 */
#include "shim/wrap/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */

#define MMAP(name, type)                                                                           \
	void *hr_wrap_##name(void *addr, size_t n, int prot, int flags, int fd, type offset)       \
	{                                                                                          \
		struct hr_op op;                                                                   \
		void *r;                                                                           \
                                                                                                   \
		hr_begin_mmap(&op, HR_OP_##name, addr, n, flags, fd, offset);                      \
		r = HR_REAL(name)(addr, n, prot, flags, fd, offset);                               \
		hr_end_mmap(&op, r, n, hr_map_flags(prot, flags));                                 \
		return r;                                                                          \
	}

MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

int hr_wrap_munmap(void *addr, size_t n)
{
	struct hr_op op;
	int r;

	hr_begin_munmap(&op, addr, n);
	r = HR_REAL(munmap)(addr, n);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

void *hr_wrap_mremap(void *addr, size_t old, size_t n, int flags, ...)
{
	struct hr_op op;
	void *to = NULL;
	hr_file file;
	va_list ap;
	void *r;

	va_start(ap, flags);
	/* clang's analyzer does not understand va_start if libc's name is an asm label. */
	if (flags & MREMAP_FIXED)
		to = va_arg(ap, void *); /* NOLINT(clang-analyzer-valist.Uninitialized) */
	va_end(ap);
	file = hr_begin_mremap(&op, addr, old, n, to);
	r = HR_REAL(mremap)(addr, old, n, flags, to);
	hr_end_mremap(&op, file, addr, old, r, n, (uint32_t)flags);
	return r;
}

/* NOLINTEND(bugprone-macro-parentheses) */
