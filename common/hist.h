/* SPDX-License-Identifier: Apache-2.0 */
/* hist.h - log2 histograms: bin i counts values in [2^i, 2^(i+1)), bin 0 also zero; any thread */
#ifndef HEADRACE_COMMON_HIST_H
#define HEADRACE_COMMON_HIST_H

#include <stddef.h>
#include <stdint.h>

#define HR_HIST_BINS 64u

static inline unsigned hr_log2_bin(uint64_t v)
{
	return 63u - (unsigned)__builtin_clzll(v | 1);
}

/*
 * Writes the bins that are not empty to `pairs` as (bin, count). `pairs` has room for 2 * n
 * numbers. Returns how many numbers were written. n is a multiple of 4, because the loop checks
 * four bins at a time, which are mostly empty.
 */
static inline size_t hr_hist_sparse(const uint32_t *bins, size_t n, uint64_t *pairs)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i += 4) {
		if (!(bins[i] | bins[i + 1] | bins[i + 2] | bins[i + 3]))
			continue;
		for (size_t k = i; k < i + 4; k++) {
			if (!bins[k])
				continue;
			pairs[used++] = k;
			pairs[used++] = bins[k];
		}
	}
	return used;
}

#endif
