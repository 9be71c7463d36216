/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bigmem.h - memory for tables far larger than caches
 *
 * Purpose   A look-up in such a table misses the TLB, too. The page walk, in a virtual machine longer than the wait for the
 *           data, is not hidden by a prefetch: the prefetch itself waits for it. So large tables ask for huge pages, which
 *           most systems lend to those who ask (transparent_hugepage=madvise); elsewhere small ones do.
 * Threads   Any.
 */
#ifndef HEADRACE_COMMON_BIGMEM_H
#define HEADRACE_COMMON_BIGMEM_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HR_HUGE_BYTES (UINT64_C(2) << 20)

/* As malloc: to be freed with free(), NULL when memory is out. */
static inline void *hr_big_alloc(size_t bytes)
{
	size_t whole = (bytes + HR_HUGE_BYTES - 1) & ~(size_t)(HR_HUGE_BYTES - 1);
	void *p;

	if (bytes < HR_HUGE_BYTES)
		return malloc(bytes);
	p = aligned_alloc(HR_HUGE_BYTES, whole);
	if (p)
		(void)madvise(p, whole, MADV_HUGEPAGE);
	return p;
}

#endif
