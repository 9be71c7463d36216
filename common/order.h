/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - sorts numbers, the smallest first; pure functions */
#ifndef HEADRACE_COMMON_ORDER_H
#define HEADRACE_COMMON_ORDER_H

#include <stdint.h>
#include <stdlib.h>

static inline int hr__double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline int hr__int64_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline int hr_uint64_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* No number is NaN. */
static inline void hr_doubles_sort(double *list, size_t n)
{
	if (n > 0)
		qsort(list, n, sizeof(*list), hr__double_compare);
}

static inline void hr_int64s_sort(int64_t *list, size_t n)
{
	if (n > 0)
		qsort(list, n, sizeof(*list), hr__int64_compare);
}

static inline void hr_uint64s_sort(uint64_t *list, size_t n)
{
	if (n > 0)
		qsort(list, n, sizeof(*list), hr_uint64_compare);
}

#endif
