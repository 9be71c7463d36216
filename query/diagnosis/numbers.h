/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_NUMBERS_H
#define HEADRACE_QUERY_DIAGNOSIS_NUMBERS_H

#include <stdlib.h>

static inline int hr__numbers_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void hr__numbers_sort(double *list, size_t n)
{
	if (n > 0)
		qsort(list, n, sizeof(*list), hr__numbers_compare);
}

#endif
