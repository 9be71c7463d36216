/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - sorts numbers; pure functions */
#ifndef HEADRACE_MODEL_ORDER_H
#define HEADRACE_MODEL_ORDER_H

#include <stdlib.h>

static inline int hr__double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts numbers, the smallest first. None is NaN. */
static inline void hr_doubles_sort(double *list, size_t n)
{
	qsort(list, n, sizeof(*list), hr__double_compare);
}

#endif
