/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bigmem.h - memory for tables much larger than caches
 *
 * A look-up in such a table misses the TLB, too. In a virtual machine the page walk takes longer
 * than the load, and a prefetch waits for it. So large tables request huge pages, which most
 * systems grant (transparent_hugepage=madvise). Any thread.
 */
#ifndef HEADRACE_COMMON_BIGMEM_H
#define HEADRACE_COMMON_BIGMEM_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HR_HUGE_BYTES (UINT64_C(2) << 20)

/* Like malloc: the caller frees the memory, and NULL means that no memory is left. */
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
